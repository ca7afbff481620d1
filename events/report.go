package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// The denominators of the time per output token.
const (
	PerNMinus1    = "n-1"               // (latency - TTFT) / (n-1), as vLLM and AIPerf
	PerAfterFirst = "after-first-chunk" // (latency - TTFT) / tokens after the first chunk, as MLPerf
	PerN          = "n"                 // (latency - TTFT) / n
)

// Denominators are the values of ReportOptions.TPOT.
var Denominators = []string{PerNMinus1, PerAfterFirst, PerN}

// ReportOptions say what a report shows. The zero value is the default.
type ReportOptions struct {
	Window Window
	Method string   // of percentiles: one of Methods, "" is Linear
	TPOT   string   // one of Denominators, "" is PerNMinus1
	Weight string   // one of Weights, "" is WeightBoth
	Limits []Target // what a request must keep to be good: see Report.Goodput
	// MLPerfKeys writes percentile 99 as "99.0".
	MLPerfKeys bool
}

// Report is what a window of a session says. Times are nanoseconds, rates are per second. Nothing that is missing is
// 0: it is a Value or a Distribution with a reason.
//
// A report of a summary ([File.Summarise]) has Summary set, and -1 for counts of requests that it does not have.
type Report struct {
	Summary      string // KindSummary, or "" when it was made of requests
	Window       string
	FromNS, ToNS int64 // 0 when the window has no such end
	Duration     Value // seconds

	Issued    int // requests of the window
	Completed int // those that ended, well or not
	Succeeded int
	Failed    int // with or without an end
	InFlight  int // without an end
	Outside   int // requests of the session that the window leaves out

	QPS    Value // successes per second
	QPSAll Value // completions per second, failed ones too
	TPS    Value // output tokens per second
	// Goodput is the successes per second that keep all of Limits. GoodMissing of the successes lack a value to judge by
	// and are not good.
	Goodput     Value
	GoodMissing int

	TTFT       Distribution // successes
	Latency    Distribution // successes
	LatencyAll Distribution // failed ones too
	TPOT       Distribution // one value per request
	TPOTTokens Distribution // each value as often as the request has such tokens
	PerToken   string       // the denominator of both
	Weight     string       // one of Weights: which of both outputs show
	ISL, OSL   Distribution // tokens

	Finish, Errors, TokenSources []Count
	Warnings                     []metric.Warning
}

// Count is how many requests say so. Name "" is those that say nothing.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

func (o *ReportOptions) validate() error {
	o.Method = cmp.Or(o.Method, Linear)
	o.TPOT = cmp.Or(o.TPOT, PerNMinus1)
	o.Weight = cmp.Or(o.Weight, WeightBoth)
	if !slices.Contains(Weights, o.Weight) {
		return fmt.Errorf("report requests: unknown weighting %q (known: %s)", o.Weight, strings.Join(Weights, ", "))
	}
	if !slices.Contains(Methods, o.Method) {
		return fmt.Errorf("report requests: unknown percentile method %q (known: %s)", o.Method, strings.Join(Methods, ", "))
	}
	if !slices.Contains(Denominators, o.TPOT) {
		return fmt.Errorf("report requests: unknown denominator %q of the time per output token (known: %s)", o.TPOT,
			strings.Join(Denominators, ", "))
	}
	return nil
}

// Summarise computes the report of a session.
func Summarise(s *Session, o ReportOptions) (*Report, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	sp, err := s.apply(o.Window)
	if err != nil {
		return nil, err
	}
	r := &Report{Window: sp.window.Name, FromNS: sp.from, ToNS: sp.to, Duration: sp.duration, PerToken: o.TPOT,
		Weight: o.Weight, Issued: len(sp.requests), Outside: len(s.Requests) - len(sp.requests),
		Warnings: append([]metric.Warning{}, s.Warnings...)}
	r.count(sp)
	r.distributions(sp.requests, o)
	r.goodput(sp, o)
	r.warnings(s, sp)
	return r, nil
}

func (r *Report) count(sp span) {
	finish, errs, sources := map[string]int{}, map[string]int{}, map[string]int{}
	tokens, counted := 0, 0
	for _, q := range sp.requests {
		if q.CompleteNS != 0 {
			r.Completed++
		} else {
			r.InFlight++
		}
		switch q.Status {
		case Succeeded:
			r.Succeeded++
			finish[q.Finish]++
			sources[q.Source]++
		case Failed:
			r.Failed++
			errs[q.Error]++
		}
		if q.CompleteNS != 0 && q.Output >= 0 {
			tokens, counted = tokens+q.Output, counted+1
		}
	}
	r.Finish, r.Errors, r.TokenSources = counts(finish), counts(errs), counts(sources)
	r.QPS = per(float64(max(r.Succeeded-sp.minus, 0)), sp.duration)
	r.QPSAll = per(float64(max(r.Completed-sp.minus, 0)), sp.duration)
	if r.TPS = per(float64(tokens), sp.duration); counted == 0 {
		r.TPS = unknown("no request has a token count (see --tokenizer)")
	}
}

// counts sorts by number, then name.
func counts(m map[string]int) []Count {
	out := []Count{}
	for name, n := range m {
		out = append(out, Count{name, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	return out
}

// TTFT is the time to the first chunk with content, in nanoseconds.
func (q *Request) TTFT() (ns float64, ok bool) {
	return float64(q.FirstNS - q.IssuedNS), q.FirstNS != 0 && q.FirstNS >= q.IssuedNS
}

// Latency is the time to the end, in nanoseconds.
func (q *Request) Latency() (ns float64, ok bool) {
	return float64(q.CompleteNS - q.IssuedNS), q.CompleteNS != 0 && q.CompleteNS >= q.IssuedNS
}

// TPOT is the time per output token in nanoseconds, with the tokens it was divided by.
func (q *Request) TPOT(denominator string) (ns float64, tokens int, ok bool) {
	if q.FirstNS == 0 || q.CompleteNS < q.FirstNS {
		return 0, 0, false
	}
	switch denominator {
	case PerAfterFirst:
		tokens = q.AfterFirst
	case PerN:
		tokens = q.Output
	default:
		tokens = q.Output - 1
	}
	if tokens <= 0 {
		return 0, 0, false
	}
	return float64(q.CompleteNS-q.FirstNS) / float64(tokens), tokens, true
}

// gather collects a value of requests and says of how many it is missing.
type gather struct {
	values  []float64
	missing int
}

func (g *gather) add(v float64, ok bool) {
	if ok {
		g.values = append(g.values, v)
	} else {
		g.missing++
	}
}

func (g *gather) distribution(o ReportOptions, why string) Distribution {
	d := distribute(g.values, o.Method, o.MLPerfKeys)
	d.Missing = g.missing
	switch {
	case g.missing > 0:
		d.Reason = fmt.Sprintf("%d of %d requests %s", g.missing, g.missing+len(g.values), why)
	case d.N == 0:
		d.Reason = "no request of the window is asked for it"
	}
	return d
}

// distributions computes all distributions. TTFT and TPOT are of successes: a failure has no last token.
func (r *Report) distributions(requests []*Request, o ReportOptions) {
	var ttft, latency, all, tpot, isl, osl gather
	var weighted []Weighted
	for _, q := range requests {
		if q.CompleteNS != 0 {
			all.add(q.Latency())
		}
		if q.Status != Succeeded {
			continue
		}
		ttft.add(q.TTFT())
		latency.add(q.Latency())
		isl.add(float64(q.Input), q.Input >= 0)
		osl.add(float64(q.Output), q.Output >= 0)
		v, n, ok := q.TPOT(o.TPOT)
		if tpot.add(v, ok); ok {
			weighted = append(weighted, Weighted{v, n})
		}
	}
	r.TTFT = ttft.distribution(o, "have no first chunk")
	r.Latency = latency.distribution(o, "end before they begin")
	r.LatencyAll = all.distribution(o, "end before they begin")
	r.TPOT = tpot.distribution(o, whyNoTPOT(o.TPOT))
	r.ISL = isl.distribution(o, "have no count of prompt tokens (see --tokenizer)")
	r.OSL = osl.distribution(o, "have no count of output tokens (see --tokenizer)")
	r.TPOTTokens = distributeWeighted(weighted, o.MLPerfKeys)
	r.TPOTTokens.Missing, r.TPOTTokens.Reason = r.TPOT.Missing, r.TPOT.Reason
}

func whyNoTPOT(denominator string) string {
	switch denominator {
	case PerAfterFirst:
		return "have no first chunk, or no count of tokens after it (see --tokenizer)"
	case PerN:
		return "have no first chunk or no count of output tokens (see --tokenizer)"
	}
	return "have no first chunk, or no second token, or no count of output tokens (see --tokenizer)"
}

// goodput counts the successes that keep all limits.
func (r *Report) goodput(sp span, o ReportOptions) {
	limits := slices.DeleteFunc(slices.Clone(o.Limits), func(t Target) bool { return !t.perRequest() })
	if len(limits) == 0 {
		r.Goodput = unknown("no limit of TTFT, TPOT or latency was given")
		return
	}
	good := 0
	for _, q := range sp.requests {
		if q.Status != Succeeded {
			continue
		}
		keeps, lacks := true, false
		for _, t := range limits {
			v, ok := t.of(q, o.TPOT)
			lacks = lacks || !ok
			keeps = keeps && ok && v <= t.Value
		}
		if lacks {
			r.GoodMissing++
		}
		if keeps {
			good++
		}
	}
	r.Goodput = per(float64(good), sp.duration)
}

func (r *Report) warnings(s *Session, sp span) {
	add := func(ok bool, code, format string, args ...any) {
		if ok {
			r.Warnings = append(r.Warnings, metric.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
		}
	}
	add(sp.warn != "", "last_issued_failed", "%s: the loadgen window ends with it, so it may be far too short", sp.warn)
	add(s.Orphans > 0, "events_orphaned", "%d events fit no request in flight", s.Orphans)
	add(s.Unknown > 0, "events_unknown", "%d events are of an unknown type", s.Unknown)
	add(s.BadData > 0, "event_data_unreadable", "the data of %d events could not be read", s.BadData)
	add(s.SessionErrors > 0, "session_errors", "%d errors belong to no request", s.SessionErrors)
	add(len(r.TokenSources) > 1, "tokens_mixed", "tokens were counted in different ways; compare nothing but times")
}

func quoteJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // cannot happen: strings always encode
		return []byte(`""`)
	}
	return b
}
