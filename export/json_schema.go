package export

// The JSON export, as it is written and read: AIPerf's document, with our own part under "scrapestat". A field with
// omitzero is left out when it has no value. The tag layout says what is written on one line: the value (line) or each
// element of the list (lines).

type jsonExport struct {
	Schema  string             `json:"schema_version"`
	Tool    string             `json:"aiperf_version"`
	ID      string             `json:"benchmark_id,omitzero"`
	Summary *jsonSummary       `json:"summary"`
	Phase   string             `json:"metrics_phase,omitzero"`
	Metrics object[jsonMetric] `json:"metrics"`
	Warmup  object[jsonMetric] `json:"warmup_metrics,omitzero"`
	Config  struct{}           `json:"input_config"`
	Extras  *jsonExtras        `json:"scrapestat,omitzero"`
}

type jsonSummary struct {
	Configured []string            `json:"endpoints_configured"`
	Successful []string            `json:"endpoints_successful"`
	Start      string              `json:"start_time"`
	End        string              `json:"end_time"`
	Info       object[jsonFetches] `json:"endpoint_info"`
	Phases     *jsonPhases         `json:"phase_time_ranges,omitzero"` // of schema 1.1
}

type jsonPhases struct {
	Profiling jsonPeriod `json:"profiling,omitzero"`
	Warmup    jsonPeriod `json:"warmup,omitzero"`
}

// jsonPeriod is a window, a phase or a part of one.
type jsonPeriod struct {
	Name       string `json:"name,omitzero"`
	Kind       string `json:"kind,omitzero"` // of a phase that a load generator told
	Phase      string `json:"phase,omitzero"`
	StartNS    int64  `json:"start_ns"`
	EndNS      int64  `json:"end_ns"`
	PhaseEndNS scalar `json:"phase_end_ns,omitzero"`
}

// jsonWindow is the window with how it was found; of several recordings it is that of the first.
type jsonWindow struct {
	jsonPeriod
	Rule      string            `json:"rule,omitzero"`
	Parts     list[jsonPeriod]  `json:"parts,omitzero" layout:"lines"`
	Seconds   scalar            `json:"seconds,omitzero"`
	Low       scalar            `json:"seconds_low,omitzero"`
	High      scalar            `json:"seconds_high,omitzero"`
	Start     *jsonEdge         `json:"start,omitzero" layout:"line"`
	End       *jsonEdge         `json:"end,omitzero" layout:"line"`
	Command   *jsonPeriod       `json:"command,omitzero" layout:"line"`
	Recording *jsonPeriod       `json:"recording,omitzero" layout:"line"`
	Segments  list[jsonSegment] `json:"segments,omitzero" layout:"lines"`
	Probes    list[jsonSegment] `json:"probes,omitzero" layout:"lines"`
	Ramp      scalar            `json:"ramp_s,omitzero"`
	Drain     scalar            `json:"drain_s,omitzero"`
	InFlight  scalar            `json:"in_flight_at_start,omitzero"`
}

type jsonEdge struct {
	Kind     string `json:"kind"`
	AtNS     int64  `json:"at_ns"`
	LowNS    int64  `json:"low_ns"`
	HighNS   int64  `json:"high_ns"`
	Endpoint string `json:"endpoint,omitzero"` // that told, as Family
	Family   string `json:"family,omitzero"`
}

type jsonSegment struct {
	StartNS  int64  `json:"start_ns"`
	EndNS    int64  `json:"end_ns"`
	Requests scalar `json:"requests"`
}

type jsonLate struct {
	Endpoint int    `json:"endpoint"`
	Family   string `json:"family"`
	AtLeast  int64  `json:"at_least"`
	AtMost   int64  `json:"at_most"`
	Moved    int64  `json:"moved"`
	CutNS    int64  `json:"cut_ns,omitzero"`
	Exact    bool   `json:"exact"`
}

type jsonFetches struct {
	Total          int    `json:"total_fetches"`
	First          int64  `json:"first_fetch_ns"`
	Last           int64  `json:"last_fetch_ns"`
	Latency        scalar `json:"avg_fetch_latency_ms,omitzero"`
	Unique         int    `json:"unique_updates"`
	FirstUpdate    int64  `json:"first_update_ns"`
	LastUpdate     int64  `json:"last_update_ns"`
	Duration       scalar `json:"duration_seconds,omitzero"`
	AvgInterval    scalar `json:"avg_update_interval_ms,omitzero"`
	MedianInterval scalar `json:"median_update_interval_ms,omitzero"`
}

type jsonMetric struct {
	Name   string           `json:"name,omitzero"` // where it is no key
	Type   string           `json:"type"`
	Help   string           `json:"description"`
	Unit   string           `json:"unit,omitzero"`
	Note   string           `json:"note,omitzero"`
	Series list[jsonSeries] `json:"series"`
}

type jsonSeries struct {
	URL         string               `json:"endpoint_url,omitzero"` // but in files of phases, which tell it once
	Labels      labels               `json:"labels,omitzero"`
	Samples     scalar               `json:"samples,omitzero"` // of types that AIPerf does not know
	Native      bool                 `json:"native,omitzero"`
	Last        stats                `json:"stats_of_last_sample,omitzero"`
	Stats       stats                `json:"stats,omitzero"`
	Quantiles   object[scalar]       `json:"server_quantiles,omitzero" layout:"line"`
	Buckets     buckets              `json:"buckets,omitzero"`
	Percentiles object[jsonEstimate] `json:"percentiles,omitzero"`
	Slices      list[jsonSlice]      `json:"timeslices,omitzero"`
}

type jsonSlice struct {
	StartNS  int64   `json:"start_ns"`
	EndNS    int64   `json:"end_ns"`
	Complete *bool   `json:"is_complete,omitzero"` // nil for true
	Samples  scalar  `json:"samples,omitzero"`
	Count    scalar  `json:"count,omitzero"`
	Sum      scalar  `json:"sum,omitzero"`
	Total    scalar  `json:"total,omitzero"`
	Rate     scalar  `json:"rate,omitzero"`
	Avg      scalar  `json:"avg,omitzero"`
	Min      scalar  `json:"min,omitzero"`
	Max      scalar  `json:"max,omitzero"`
	Share    scalar  `json:"active_share,omitzero"`
	Buckets  buckets `json:"buckets,omitzero"`
	Status   string  `json:"status,omitzero"` // of derived quantities
	Value    scalar  `json:"value,omitzero"`
	Shown    scalar  `json:"shown,omitzero"`
}

type jsonEstimate struct {
	Value scalar   `json:"value,omitzero"`
	Low   scalar   `json:"low,omitzero"`
	High  scalar   `json:"high,omitzero"`
	Flags []string `json:"flags,omitzero" layout:"line"`
}

type jsonExtras struct {
	Schema          int                `json:"schema_version"`
	Version         string             `json:"version"`
	RunID           string             `json:"run_id"`
	Tags            map[string]string  `json:"tags"`
	Command         []string           `json:"command" layout:"line"`
	Host            string             `json:"host,omitzero"`
	OriginNS        int64              `json:"origin_ns"`
	Window          *jsonWindow        `json:"window,omitzero"`
	Late            list[jsonLate]     `json:"late,omitzero" layout:"lines"`
	WarmupWindow    *jsonPeriod        `json:"warmup_window,omitzero" layout:"line"`
	Phases          list[jsonPeriod]   `json:"phases" layout:"lines"`
	Options         *jsonOptions       `json:"options"`
	Limits          map[string]int64   `json:"limits"`
	Endpoints       list[jsonEndpoint] `json:"endpoints"`
	Warnings        list[jsonWarning]  `json:"warnings,omitzero" layout:"lines"`
	UnknownFamilies []string           `json:"unknown_families,omitzero" layout:"line"`
	Units           map[string]string  `json:"units"` // where AIPerf's rules miss one or get it wrong
	Series          list[jsonNote]     `json:"series" layout:"lines"`
	Aggregates      *jsonAggregates    `json:"aggregates,omitzero"`
	Latencies       list[jsonLatency]  `json:"latencies,omitzero"`
	Derived         list[jsonDerived]  `json:"derived,omitzero"`
	Fleet           list[jsonFleet]    `json:"fleet,omitzero"`
	Others          list[jsonMetric]   `json:"metrics,omitzero"` // of types that AIPerf does not know
	OthersWarmup    list[jsonMetric]   `json:"warmup_metrics,omitzero"`
	Conflicts       list[jsonConflict] `json:"conflicting_metrics,omitzero"`
	ConflictsWarmup list[jsonConflict] `json:"conflicting_warmup_metrics,omitzero"`
}

type jsonWarning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

type jsonOptions struct {
	Resets    string    `json:"counter_resets"`
	Estimator string    `json:"estimator"`
	SliceNS   int64     `json:"slice_ns"`
	Quantiles []float64 `json:"quantiles" layout:"line"`
}

// jsonConflict is a metric whose name belongs to another type already.
type jsonConflict struct {
	Name   string     `json:"name"`
	Metric jsonMetric `json:"metric"`
}

// jsonEndpoint is the account of an endpoint: every poll that was due and every line that came.
type jsonEndpoint struct {
	URL        string            `json:"url"`
	Name       string            `json:"name,omitzero"`
	Source     string            `json:"source"`
	Labels     labels            `json:"labels,omitzero"`
	Lives      list[jsonLife]    `json:"lives,omitzero" layout:"lines"`
	Window     jsonPeriod        `json:"window" layout:"line"`
	Scheduled  int               `json:"scheduled"`
	Unread     int               `json:"unreadable,omitzero"`
	OK         int               `json:"ok"`
	Outcomes   object[int]       `json:"outcomes" layout:"line"`
	InWindow   object[int]       `json:"outcomes_in_window" layout:"line"`
	FirstError *jsonPollError    `json:"first_error,omitzero" layout:"line"`
	LastError  *jsonPollError    `json:"last_error,omitzero" layout:"line"`
	Lines      int64             `json:"lines"`
	Stored     int64             `json:"stored"`
	Dropped    list[jsonDrop]    `json:"dropped" layout:"lines"`
	LimitsHit  object[int]       `json:"limits_hit,omitzero" layout:"line"`
	Bytes      int64             `json:"body_bytes"`
	Families   int               `json:"families"`
	SeriesN    int               `json:"series"`
	Continuity *jsonContinuity   `json:"continuity,omitzero"`
	Late       jsonLateness      `json:"lateness_ms" layout:"line"`
	Fetches    *jsonFetches      `json:"fetches_in_window,omitzero" layout:"line"`
	Warmup     *jsonFetches      `json:"fetches_in_warmup,omitzero" layout:"line"`
	GapsN      int               `json:"gaps_count,omitzero"`
	Gaps       list[jsonGap]     `json:"gaps,omitzero" layout:"lines"`
	Declared   []string          `json:"declared_without_sample,omitzero" layout:"line"`
	Warnings   list[jsonWarning] `json:"warnings,omitzero" layout:"lines"`
}

type jsonLife struct {
	AtNS   int64  `json:"at_ns"`
	Event  string `json:"event"` // came or went
	Reason string `json:"reason"`
}

type jsonPollError struct {
	AtNS    int64  `json:"at_ns"`
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
}

type jsonDrop struct {
	Reason string `json:"reason"`
	Lines  int    `json:"lines"`
	First  string `json:"first"`
}

type jsonLateness struct {
	Mean scalar `json:"mean"`
	P99  scalar `json:"p99"`
	Max  scalar `json:"max"`
}

type jsonGap struct {
	LastOK int64 `json:"last_ok_ns,omitzero"`
	NextOK int64 `json:"next_ok_ns,omitzero"`
	Polls  int   `json:"failed_polls"`
}

// jsonNote is what is to be said of a series beyond its statistics: how often it was reset or away, what is doubtful,
// and the bounds its percentiles provably lie in.
type jsonNote struct {
	Metric       string                `json:"metric"`
	Type         string                `json:"type,omitzero"` // where the name is not enough
	Endpoint     int                   `json:"endpoint"`
	Labels       labels                `json:"labels,omitzero"`
	Samples      int                   `json:"samples"`
	Resets       int                   `json:"resets,omitzero"`
	Gaps         int                   `json:"gaps,omitzero"`
	NonFinite    int                   `json:"non_finite,omitzero"`
	Single       bool                  `json:"single_sample,omitzero"`
	Exact        uint64                `json:"total_exact,omitzero"` // above what a double holds
	Increase     *jsonIncrease         `json:"increase,omitzero" layout:"line"`
	Native       bool                  `json:"native,omitzero"`
	CreatedNS    int64                 `json:"created_ns,omitzero"`
	Percentiles  object[jsonEstimate]  `json:"percentiles,omitzero"`
	Slices       list[jsonPercentiles] `json:"slice_percentiles,omitzero"`
	Exemplars    list[jsonExemplar]    `json:"exemplars,omitzero"`
	Distribution *jsonDistribution     `json:"distribution,omitzero"`
	Warnings     list[jsonWarning]     `json:"warnings,omitzero"`
}

// jsonPercentiles are those of a slice.
type jsonPercentiles struct {
	StartNS     int64                `json:"start_ns"`
	EndNS       int64                `json:"end_ns"`
	Percentiles object[jsonEstimate] `json:"percentiles"`
}

type jsonExemplar struct {
	Above  string `json:"above,omitzero"` // of a native bucket
	LE     string `json:"le,omitzero"`
	Labels labels `json:"labels,omitzero"`
	Value  scalar `json:"value,omitzero"`
	AtNS   int64  `json:"at_ns,omitzero"`
	SeenNS int64  `json:"seen_ns"`
}

// jsonDistribution has the exact statistics of single events.
type jsonDistribution struct {
	Lines    jsonExact  `json:"lines"`
	Requests *jsonExact `json:"requests,omitzero"`
}

type jsonExact struct {
	Count int    `json:"count"`
	Sum   scalar `json:"sum,omitzero"`
	Avg   scalar `json:"avg,omitzero"`
	Min   scalar `json:"min,omitzero"`
	Max   scalar `json:"max,omitzero"`
	P50   scalar `json:"p50,omitzero"`
	P90   scalar `json:"p90,omitzero"`
	P95   scalar `json:"p95,omitzero"`
	P99   scalar `json:"p99,omitzero"`
	P999  scalar `json:"p99.9,omitzero"`
}

// jsonAggregates are the series taken together, where that was asked for, and by which labels they are kept apart.
type jsonAggregates struct {
	By     []string            `json:"by" layout:"line"`
	Groups list[jsonAggregate] `json:"groups"`
}

// jsonLatency is a time that engines have in common, over all endpoints of an engine.
type jsonLatency struct {
	Canonical string `json:"canonical"`
	Engine    string `json:"engine"`
	jsonAggregate
}

type jsonAggregate struct {
	Metric      string               `json:"metric"`
	Type        string               `json:"type"`
	Labels      labels               `json:"labels,omitzero"`
	Series      int                  `json:"series"`
	LeftOut     int                  `json:"left_out,omitzero"`
	Resets      int                  `json:"resets,omitzero"`
	Refused     string               `json:"refused,omitzero"`
	Total       scalar               `json:"total,omitzero"`
	Rate        scalar               `json:"rate,omitzero"`
	Exact       uint64               `json:"total_exact,omitzero"`
	Rule        string               `json:"rule,omitzero"`
	TimeAvg     scalar               `json:"time_avg,omitzero"`
	Min         scalar               `json:"min,omitzero"`
	Max         scalar               `json:"max,omitzero"`
	Stats       stats                `json:"stats,omitzero"`
	Quantiles   object[scalar]       `json:"server_quantiles,omitzero" layout:"line"`
	Slices      list[jsonSlice]      `json:"timeslices,omitzero"`
	Count       scalar               `json:"count,omitzero"`
	Sum         scalar               `json:"sum,omitzero"`
	Avg         scalar               `json:"avg,omitzero"`
	CountRate   scalar               `json:"count_rate,omitzero"`
	SumRate     scalar               `json:"sum_rate,omitzero"`
	Buckets     buckets              `json:"buckets,omitzero"`
	Percentiles object[jsonEstimate] `json:"percentiles,omitzero"`
	Skew        *jsonSkew            `json:"skew,omitzero"`
	Warnings    list[jsonWarning]    `json:"warnings,omitzero" layout:"lines"`
}

type jsonSkew struct {
	Replicas int    `json:"replicas"`
	Ratio    scalar `json:"max_over_mean,omitzero"`
	Endpoint int    `json:"endpoint"`
	Labels   labels `json:"labels,omitzero"`
}

// jsonFleet has the quantities of several endpoints together, or of a group that was asked for.
type jsonFleet struct {
	Labels    labels            `json:"labels,omitzero"`
	Endpoints []int             `json:"endpoints" layout:"line"`
	Derived   list[jsonDerived] `json:"derived"`
}

// jsonDerived is a derived quantity. One without a value has none: its status tells why.
type jsonDerived struct {
	Pack        string          `json:"pack"`
	Name        string          `json:"name"`
	Unit        string          `json:"unit,omitzero"`
	Canonical   string          `json:"canonical,omitzero"`
	Category    string          `json:"question,omitzero"`
	Better      string          `json:"better,omitzero"`
	Headline    bool            `json:"headline,omitzero"`
	Endpoint    scalar          `json:"endpoint,omitzero"`
	Labels      labels          `json:"labels,omitzero"`
	Status      string          `json:"status"`
	Value       scalar          `json:"value,omitzero"`
	Shown       scalar          `json:"shown,omitzero"` // where it differs from the value
	Low         scalar          `json:"low,omitzero"`   // where the status is ambiguous or lower_bound
	High        scalar          `json:"high,omitzero"`
	Numerator   scalar          `json:"numerator,omitzero"`
	Denominator scalar          `json:"denominator,omitzero"`
	Families    []string        `json:"families" layout:"line"`
	Flags       []string        `json:"flags,omitzero" layout:"line"`
	Slices      list[jsonSlice] `json:"timeslices,omitzero" layout:"lines"`
}

// jsonIncrease is what a series gained where that is not certain, or not what AIPerf's part shows.
type jsonIncrease struct {
	Status   string  `json:"status"`
	Type     string  `json:"type,omitzero"`  // of a refused series, which has no other place
	Value    scalar  `json:"value,omitzero"` // none of what is refused
	Low      scalar  `json:"low,omitzero"`
	High     scalar  `json:"high,omitzero"` // null is no bound
	Sum      scalar  `json:"sum,omitzero"`
	Buckets  buckets `json:"buckets,omitzero"`
	Restarts int     `json:"restarts,omitzero"`
}

// jsonContinuity is what happened to the processes behind an endpoint.
type jsonContinuity struct {
	Status    string          `json:"status"`
	Processes int             `json:"processes"` // 0: several, which nothing tells apart
	Restarts  int             `json:"restarts"`
	Held      int             `json:"older_bodies"`
	Dips      int             `json:"dips"`
	SameAs    *int            `json:"same_as,omitzero"` // index of the endpoint that is the same server
	Events    list[jsonEvent] `json:"events" layout:"lines"`
	Lost      int             `json:"events_left_out,omitzero"`
}

type jsonEvent struct {
	AtNS    int64  `json:"at_ns"`
	Kind    string `json:"kind"`
	Process int    `json:"process"`
	Text    string `json:"text,omitzero"`
}
