package export

// The forms of the JSON documents that ReadJSON reads: only what it uses, so
// unknown fields of later versions are skipped.

type jsonExport struct {
	Schema  string                `json:"schema_version"`
	Tool    string                `json:"aiperf_version"`
	ID      string                `json:"benchmark_id"`
	Summary *jsonSummary          `json:"summary"`
	Metrics map[string]jsonMetric `json:"metrics"`
	Extras  *jsonExtras           `json:"scrapestat"`
}

type jsonSummary struct {
	Configured []string               `json:"endpoints_configured"`
	Start      string                 `json:"start_time"`
	End        string                 `json:"end_time"`
	Info       map[string]jsonFetches `json:"endpoint_info"`
	Phases     map[string]jsonPeriod  `json:"phase_time_ranges"`
}

type jsonPeriod struct {
	StartNS int64 `json:"start_ns"`
	EndNS   int64 `json:"end_ns"`
}

type jsonFetches struct {
	Total          int      `json:"total_fetches"`
	First          int64    `json:"first_fetch_ns"`
	Last           int64    `json:"last_fetch_ns"`
	Latency        float64  `json:"avg_fetch_latency_ms"`
	Unique         int      `json:"unique_updates"`
	FirstUpdate    int64    `json:"first_update_ns"`
	LastUpdate     int64    `json:"last_update_ns"`
	AvgInterval    float64  `json:"avg_update_interval_ms"`
	MedianInterval *float64 `json:"median_update_interval_ms"`
}

type jsonMetric struct {
	Type   string       `json:"type"`
	Help   string       `json:"description"`
	Unit   string       `json:"unit"`
	Series []jsonSeries `json:"series"`
}

type jsonSeries struct {
	URL     string             `json:"endpoint_url"`
	Labels  map[string]string  `json:"labels"`
	Stats   map[string]float64 `json:"stats"`
	Buckets map[string]float64 `json:"buckets"`
	Slices  []jsonSlice        `json:"timeslices"`
}

type jsonSlice struct {
	StartNS  int64              `json:"start_ns"`
	EndNS    int64              `json:"end_ns"`
	Complete *bool              `json:"is_complete"`
	Total    float64            `json:"total"`
	Rate     float64            `json:"rate"`
	Avg      float64            `json:"avg"`
	Min      float64            `json:"min"`
	Max      float64            `json:"max"`
	Count    float64            `json:"count"`
	Sum      float64            `json:"sum"`
	Share    float64            `json:"active_share"`
	Buckets  map[string]float64 `json:"buckets"`
	Status   string             `json:"status"` // of derived quantities
	Value    *float64           `json:"value"`
}

type jsonExtras struct {
	Schema    int               `json:"schema_version"`
	Version   string            `json:"version"`
	Tags      map[string]string `json:"tags"`
	Command   []string          `json:"command"`
	Host      string            `json:"host"`
	OriginNS  int64             `json:"origin_ns"`
	Limits    map[string]int64  `json:"limits"`
	Window    *jsonWindow       `json:"window"`
	Options   *jsonOptions      `json:"options"`
	Endpoints []jsonEndpoint    `json:"endpoints"`
	Units     map[string]string `json:"units"`
	Series    []jsonNote        `json:"series"`
	Derived   []jsonDerived     `json:"derived"`
	Others    []jsonOther       `json:"metrics"`
	Conflicts []struct {
		Name   string     `json:"name"`
		Metric jsonMetric `json:"metric"`
	} `json:"conflicting_metrics"`
}

type jsonWindow struct {
	Phase      string `json:"phase"`
	StartNS    int64  `json:"start_ns"`
	EndNS      int64  `json:"end_ns"`
	PhaseEndNS int64  `json:"phase_end_ns"`
}

type jsonOptions struct {
	Resets    string    `json:"counter_resets"`
	Estimator string    `json:"estimator"`
	SliceNS   int64     `json:"slice_ns"`
	Quantiles []float64 `json:"quantiles"`
}

type jsonEndpoint struct {
	URL      string            `json:"url"`
	Name     string            `json:"name"`
	Source   string            `json:"source"`
	Labels   map[string]string `json:"labels"`
	Declared []string          `json:"declared_without_sample"`
}

type jsonNote struct {
	Metric      string                  `json:"metric"`
	Type        string                  `json:"type"`
	Endpoint    int                     `json:"endpoint"`
	Labels      map[string]string       `json:"labels"`
	Samples     int                     `json:"samples"`
	Resets      int                     `json:"resets"`
	Gaps        int                     `json:"gaps"`
	NonFinite   int                     `json:"non_finite"`
	Single      bool                    `json:"single_sample"`
	Native      bool                    `json:"native"`
	Percentiles map[string]jsonEstimate `json:"percentiles"`
}

type jsonEstimate struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

type jsonDerived struct {
	Pack        string            `json:"pack"`
	Name        string            `json:"name"`
	Unit        string            `json:"unit"`
	Endpoint    int               `json:"endpoint"`
	Labels      map[string]string `json:"labels"`
	Status      string            `json:"status"`
	Value       *float64          `json:"value"`
	Shown       *float64          `json:"shown"`
	Numerator   *float64          `json:"numerator"`
	Denominator *float64          `json:"denominator"`
	Families    []string          `json:"families"`
	Flags       []string          `json:"flags"`
	Slices      []jsonSlice       `json:"timeslices"`
}

type jsonOther struct {
	jsonMetric
	Name   string `json:"name"`
	Series []struct {
		jsonSeries
		Samples   int                 `json:"samples"`
		Stats     map[string]any      `json:"stats"`
		Quantiles map[string]*float64 `json:"server_quantiles"`
	} `json:"series"`
}
