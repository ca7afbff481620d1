package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// KindSummary is a summary of MLPerf's endpoints benchmark: result_summary.json, old or new, or final_snapshot.json.
// It has statistics and no requests, so [File.Summarise] reads it and [File.Stream] fails with [ErrSummary].
const KindSummary = "mlperf-summary"

// ErrSummary is the error of a file with statistics alone.
var ErrSummary = errors.New("it is a summary of MLPerf's endpoints benchmark and has no requests; take events.jsonl " +
	"or the events database of that run (scrapestat requests report and validate read the summary itself)")

// Percentiles of a summary whose method is none of Methods.
const (
	methodHDR     = "hdr_approximate" // of a run that did not end: from a histogram
	methodUnknown = "unknown"
)

// maxSummary is the largest summary in bytes; real ones have some kilobytes.
const maxSummary = 16 << 20

// num is a number of a summary. It is not ok where the summary has null, nothing, something else, or a number that
// float64 does not hold.
type num struct {
	v    float64
	text string
	ok   bool
}

func (n *num) UnmarshalJSON(data []byte) error {
	*n = num{}
	if len(data) > 400 { // no number of a benchmark
		return nil
	}
	v, err := strconv.ParseFloat(string(data), 64)
	if err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
		*n = num{v, string(data), true}
	}
	return nil
}

// count is a number of requests, -1 when there is none.
func (n num) count() int {
	if !n.ok || n.v < 0 || n.v > 1<<53 || n.v != math.Trunc(n.v) {
		return -1
	}
	return int(n.v)
}

// nums are numbers by name; what is no object is none. Percentiles come as "99.0", or as "99" from old versions.
type nums map[string]num

func (m *nums) UnmarshalJSON(data []byte) error {
	*m = nil
	var out map[string]num
	if json.Unmarshal(data, &out) == nil {
		*m = out
	}
	return nil
}

func (m nums) at(p float64) num {
	if n := m[key(p, true)]; n.ok {
		return n
	}
	return m[key(p, false)]
}

// rollup is the statistics of one value as both files have them: a snapshot with count and sum_sq, a result with avg,
// std_dev and a histogram.
type rollup struct {
	Count       num  `json:"count"`
	Total       num  `json:"total"`
	Min         num  `json:"min"`
	Max         num  `json:"max"`
	SumSq       num  `json:"sum_sq"`
	Avg         num  `json:"avg"`
	StdDev      num  `json:"std_dev"`
	Percentiles nums `json:"percentiles"`
	Early       nums `json:"early_stopping_percentiles"`
	Histogram   bins `json:"histogram"`
}

// bins is the counts of a result's histogram; a snapshot's has another form, which is not needed.
type bins []num

func (b *bins) UnmarshalJSON(data []byte) error {
	*b = nil
	var h struct {
		Counts []num `json:"counts"`
	}
	if json.Unmarshal(data, &h) == nil {
		*b = h.Counts
	}
	return nil
}

// n is how many values there are, -1 when that cannot be told. A result does not say it: total / avg does.
func (s *rollup) n() int {
	if s.Count.ok {
		return s.Count.count()
	}
	if s.Total.ok && s.Avg.ok && s.Avg.v > 0 {
		if r := s.Total.v / s.Avg.v; r < 1<<53 && math.Abs(r-math.Round(r)) < 1e-6*max(r, 1) {
			return int(math.Round(r))
		}
	}
	sum := 0
	for _, c := range s.Histogram {
		if c.count() < 0 || sum > 1<<53 {
			return -1
		}
		sum += c.count()
	}
	if len(s.Histogram) == 0 {
		return -1
	}
	return sum
}

// summaryFile is either file, with the names of both.
type summaryFile struct {
	State   *string `json:"state"`
	Pending num     `json:"n_pending_tasks"`
	Metrics []struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Value num    `json:"value"`
		rollup
	} `json:"metrics"`

	Complete  *bool   `json:"complete"`
	Issued    num     `json:"n_samples_issued"`
	Completed num     `json:"n_samples_completed"`
	Failed    num     `json:"n_samples_failed"`
	Duration  num     `json:"duration_ns"`
	LoadGen   num     `json:"legacy_loadgen_window_duration_ns"`
	Mode      string  `json:"tpot_reporting_mode"`
	TTFT      *rollup `json:"ttft"`
	TPOT      *rollup `json:"tpot"`
	Latency   *rollup `json:"latency"`
	OSL       *rollup `json:"output_sequence_lengths"`

	isl     *rollup
	total   int // all issued, also those outside of tracking; -1 when unknown
	finish  []Count
	method  string
	popStd  bool // StdDev is that of a population
	options ReportOptions
}

// Summarise reads a file of [KindSummary], once, as the report that it holds: numbers stay as the benchmark computed
// them, and what it did not write is missing with the reason. Its method of percentiles and its time per output token
// win over those of o; a warning tells so. Of the windows it has tracked and maybe loadgen, or mlperf-legacy before
// April 2026.
func (f *File) Summarise(o ReportOptions) (*Report, error) {
	if f.Kind != KindSummary {
		return nil, fmt.Errorf("summarise %s: it is of kind %s and has requests; only %s is read like this", f.path, f.Kind,
			KindSummary)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := summaryFile{total: -1, options: o}
	size := min(f.o.MaxSize, maxSummary)
	if err := json.NewDecoder(&limited{f.in, size, size}).Decode(&s); err != nil {
		return nil, fmt.Errorf("read %s file %s: %w", f.Kind, f.path, err)
	}
	if s.Metrics != nil {
		s.fromSnapshot()
	}
	r, err := s.report()
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", f.path, err)
	}
	return r, nil
}

// fromSnapshot fills the fields of a result from the metrics of a snapshot. Of two with the same name the last one
// counts, as in MLPerf's own reader.
func (s *summaryFile) fromSnapshot() {
	const finish = "tracked_finish_reason_"
	reasons := map[string]int{}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if m.Type == "series" {
			switch m.Name {
			case "ttft_ns":
				s.TTFT = &m.rollup
			case "tpot_ns":
				s.TPOT = &m.rollup
			case "sample_latency_ns":
				s.Latency = &m.rollup
			case "osl":
				s.OSL = &m.rollup
			case "isl":
				s.isl = &m.rollup
			}
			continue
		}
		switch m.Name {
		case "tracked_samples_issued":
			s.Issued = m.Value
		case "tracked_samples_completed":
			s.Completed = m.Value
		case "tracked_samples_failed":
			s.Failed = m.Value
		case "tracked_duration_ns":
			s.Duration = m.Value
		case "legacy_loadgen_window_duration_ns":
			s.LoadGen = m.Value
		case "total_samples_issued":
			s.total = m.Value.count()
		default:
			if name, ok := strings.CutPrefix(m.Name, finish); ok && m.Value.count() > 0 && len(reasons) < 100 {
				reasons[cut(name)] = m.Value.count()
			}
		}
	}
	s.finish = counts(reasons)
}

// report makes the report of what the file says.
func (s *summaryFile) report() (*Report, error) {
	old := s.Mode != "" // only reports before April 2026 name a mode
	o := &s.options
	r := &Report{Summary: KindSummary, Weight: o.Weight, PerToken: PerAfterFirst, Finish: s.finish,
		Issued: s.Issued.count(), Completed: s.Completed.count(), Failed: s.Failed.count(), Succeeded: -1, InFlight: -1,
		Outside: -1}
	if s.finish == nil {
		r.Finish = []Count{}
	}
	r.Errors, r.TokenSources, r.Warnings = []Count{}, []Count{}, []metric.Warning{}
	minus, err := s.window(r, old)
	if err != nil {
		return nil, err
	}
	if r.Issued >= 0 && r.Completed >= 0 {
		r.InFlight = max(r.Issued-r.Completed, 0)
	}
	if s.total >= 0 && r.Issued >= 0 {
		r.Outside = max(s.total-r.Issued, 0)
	}
	s.setMethod(old)
	s.rates(r, minus)
	s.values(r, old)
	if r.Goodput = unknown("no limit of TTFT, TPOT or latency was given"); slices.ContainsFunc(o.Limits,
		func(t Target) bool { return t.perRequest() }) {
		r.Goodput = unknown("a summary has no requests to judge")
	}
	s.warn(r, old)
	return r, nil
}

// window finds the length that rates are of.
func (s *summaryFile) window(r *Report, old bool) (minus int, err error) {
	length, has := s.Duration, WindowTracked
	want := s.options.Window.Name
	switch {
	case old && (want == "" || want == WindowTracked || want == WindowLegacy):
		has = WindowLegacy
	case !old && (want == "" || want == WindowTracked):
	case !old && want == WindowLoadGen:
		length, has, minus = s.LoadGen, WindowLoadGen, 1
	case old:
		return 0, fmt.Errorf("an old summary has no requests to make the window %q of; it has %s", want, WindowLegacy)
	default:
		return 0, fmt.Errorf("a summary has no requests to make the window %q of; it has %s and %s", want, WindowTracked,
			WindowLoadGen)
	}
	r.Window = has
	if r.Duration = unknown("the summary has no length of the window %s", has); length.ok && length.v > 0 {
		r.Duration = known(length.v * seconds)
	}
	return minus, nil
}

func (s *summaryFile) setMethod(old bool) {
	switch {
	case old:
		s.method, s.popStd = Linear, true
	case s.State == nil:
		s.method = methodUnknown
	case *s.State == "complete":
		s.method = Lower
	default:
		s.method = methodHDR
	}
}

// rates divides the counts. The completed requests of a summary have the failed ones among them, as far as those ended.
func (s *summaryFile) rates(r *Report, minus int) {
	r.QPS, r.QPSAll = unknown("the summary has no count of completed requests"),
		unknown("the summary has no count of completed requests")
	if r.Completed >= 0 {
		r.QPSAll = per(float64(max(r.Completed-minus, 0)), r.Duration)
		switch {
		case r.Failed == 0:
			r.Succeeded, r.QPS = r.Completed, r.QPSAll
		case r.Failed < 0:
			r.QPS = unknown("the summary does not say how many requests failed; QPS of all has them")
		default:
			r.QPS = unknown("the completed requests of a summary have failed ones among them; QPS of all has them")
		}
	}
	if r.TPS = unknown("the summary has no output tokens"); s.OSL != nil && s.OSL.n() > 0 && s.OSL.Total.ok &&
		s.OSL.Total.v >= 0 {
		r.TPS = per(s.OSL.Total.v, r.Duration)
		r.TokenSources = []Count{{N: s.OSL.n()}}
	}
}

// values makes the distributions.
func (s *summaryFile) values(r *Report, old bool) {
	r.TTFT = s.distribution(s.TTFT, "times to the first chunk (did the run stream?)")
	r.LatencyAll = s.distribution(s.Latency, "latencies")
	r.OSL = s.distribution(s.OSL, "output tokens")
	r.ISL = s.distribution(s.isl, "prompt tokens")
	if r.Latency = r.LatencyAll; r.Failed != 0 {
		r.Latency = Distribution{Method: s.method, Reason: "the summary's latencies are of failed requests too: see " +
			"latency of all"}
	}
	tpot := s.distribution(s.TPOT, "times per output token (did the run stream, with a tokenizer?)")
	none := func(weight string) Distribution {
		return Distribution{Method: s.method, Reason: "the summary has it weighted by " + weight + " alone"}
	}
	if old && strings.HasPrefix(strings.ToLower(s.Mode), "token") {
		tpot.Method = InvertedCDF
		r.TPOT, r.TPOTTokens = none("token"), tpot
	} else {
		r.TPOT, r.TPOTTokens = tpot, none("request")
	}
}

// distribution takes the statistics over. Those that fail to make sense are none.
func (s *summaryFile) distribution(in *rollup, what string) Distribution {
	d := Distribution{Method: s.method}
	if in == nil || !in.Total.ok && !in.Count.ok && !in.Avg.ok || in.Count.ok && in.Count.v == 0 {
		d.Reason = "the summary has no " + what
		return d
	}
	n := in.n()
	if n < 1 || !in.Total.ok || !in.Min.ok || !in.Max.ok || in.Min.v > in.Max.v {
		d.Reason = "the summary's " + what + " lack their number, total, minimum or maximum"
		return d
	}
	d.N, d.Total, d.Min, d.Max, d.Mean = n, in.Total.v, in.Min.v, in.Max.v, in.Total.v/float64(n)
	s.deviation(&d, in)
	var missing []string
	for _, p := range Grid {
		q := Quantile{Key: key(p, s.options.MLPerfKeys), P: p}
		v, early := in.Percentiles.at(p), in.Early.at(p)
		q.Value, q.Missing, q.Early, q.HasEarly = v.v, !v.ok, early.v, early.ok
		d.Quantiles = append(d.Quantiles, q)
		if q.Missing {
			missing = append(missing, "p"+key(p, false))
		}
	}
	if len(missing) > 0 {
		d.Reason = "the summary has no " + strings.Join(missing, ", ")
	}
	return d
}

// deviation sets the standard deviations. From sums it takes n*sum_sq - total^2 in enough digits: both are near 10^30
// for latencies, and their difference is what counts.
func (s *summaryFile) deviation(d *Distribution, in *rollup) {
	n := float64(d.N)
	d.StdDev, d.PopStdDev = unknown("the summary has no deviation"), math.NaN()
	switch {
	case in.SumSq.ok:
		total, sq := exact(in.Total), exact(in.SumSq)
		room := new(big.Float).SetPrec(4096)
		diff := room.Sub(room.Mul(sq, big.NewFloat(n)), new(big.Float).SetPrec(4096).Mul(total, total))
		v, _ := diff.Float64()
		if math.IsInf(v, 0) {
			return
		}
		d.PopStdDev = math.Sqrt(max(v, 0)) / n
	case in.StdDev.ok && in.StdDev.v >= 0 && s.popStd:
		d.PopStdDev = in.StdDev.v
	case in.StdDev.ok && in.StdDev.v >= 0:
		d.PopStdDev = in.StdDev.v * math.Sqrt((n-1)/n)
	default:
		return
	}
	if d.StdDev = unknown("one value has no deviation"); d.N > 1 {
		d.StdDev = known(d.PopStdDev * math.Sqrt(n/(n-1)))
	}
}

// exact is an integer with all its digits, as sums of nanoseconds are written, or else what float64 holds: an exponent
// of a billion would take the memory of its digits.
func exact(n num) *big.Float {
	f := new(big.Float).SetPrec(4096)
	if i, ok := new(big.Int).SetString(n.text, 10); ok {
		return f.SetInt(i)
	}
	return f.SetFloat64(n.v)
}

// warn tells what of the report is not as it was asked for, or not whole.
func (s *summaryFile) warn(r *Report, old bool) {
	add := func(ok bool, code, format string, args ...any) {
		if ok {
			r.Warnings = append(r.Warnings, metric.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
		}
	}
	o := &s.options
	add(r.Window != o.Window.Name && o.Window.Name != "", "summary_window", "the window is %s, the one this summary has",
		r.Window)
	add(s.method != o.Method, "summary_percentiles",
		"percentiles are by the method %s, as the summary has them, not by %s", s.method, o.Method)
	add(o.TPOT != PerAfterFirst && s.TPOT != nil, "summary_tpot",
		"the time per output token is that of %s, as the summary has it, not of %s", PerAfterFirst, o.TPOT)
	add(r.Failed > 0, "summary_failed", "%d requests failed; a summary has them in the latency of all, and those with a "+
		"first chunk in the TTFT", r.Failed)
	switch {
	case old:
	case s.State == nil:
		add(true, "summary_incomplete", "the summary does not say whether the run ended as it should")
	case *s.State != "complete":
		add(true, "summary_incomplete", "the run's state is %q: the numbers are of a part of it, and percentiles are "+
			"approximate", cut(*s.State))
	case s.Pending.ok && s.Pending.v > 0, s.Complete != nil && !*s.Complete:
		add(true, "summary_incomplete", "not all texts were counted when the summary was made: TPOT and tokens are of a "+
			"part of the requests")
	}
}
