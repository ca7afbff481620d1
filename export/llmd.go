package export

import (
	"cmp"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/query"
	"github.com/scrapestat/scrapestat/summary"
)

// llmdVersion is that of the benchmark report of llm-d which [LLMD] writes.
const llmdVersion = "0.2.1"

// llmdField is where the report has a family or quantity: of a counter what it gained since the window began.
type llmdField struct {
	kind    string // of the rows
	names   []string
	series  string // in time_series
	whole   string // in aggregate, "" for nowhere
	units   string
	percent bool // the rows have a ratio
}

// llmdFields are those of an engine, its GPUs and the endpoint picker. A name is that of a quantity, or begins with
// : or _ and is the end of a family's.
var llmdFields = []llmdField{
	{kind: "gauge", names: []string{"kv_usage"}, series: "kv_cache_usage", whole: "kv_cache_usage", units: "fraction"},
	{kind: "gauge", names: []string{"running"}, series: "num_requests_running", whole: "running_requests",
		units: "count"},
	{kind: "gauge", names: []string{"waiting"}, series: "num_requests_waiting", whole: "waiting_requests",
		units: "count"},
	{kind: "counter", names: []string{"preemption"}, series: "num_preemptions", whole: "preemptions", units: "count"},
	{kind: "counter", names: []string{"input_tokens"}, series: "prompt_tokens", units: "count"},
	{kind: "counter", names: []string{"output_tokens"}, series: "generation_tokens", units: "count"},
	{kind: "counter", names: []string{"prefix_query"}, series: "prefix_cache_queries", units: "count"},
	{kind: "counter", names: []string{"prefix_hit"}, series: "prefix_cache_hits", units: "count"},
	{kind: "derived", names: []string{"prefix_hit_ratio"}, series: "prefix_cache_hit_rate", whole: "cache_hit_rate",
		units: "percent", percent: true},
	{kind: "counter", names: []string{":external_prefix_cache_queries"}, series: "external_prefix_cache_queries",
		units: "count"},
	{kind: "counter", names: []string{":external_prefix_cache_hits"}, series: "external_prefix_cache_hits",
		units: "count"},
	{kind: "derived", names: []string{"external_hit_ratio"}, series: "external_prefix_cache_hit_rate",
		units: "percent", percent: true},
	{kind: "gauge", names: []string{"_DEV_GPU_UTIL"}, series: "gpu_utilization", whole: "gpu_utilization",
		units: "percent"},
	{kind: "gauge", names: []string{"_DEV_POWER_USAGE"}, series: "power_consumption", whole: "power_consumption",
		units: "Watts"},
	{kind: "gauge", names: []string{"_DEV_FB_USED"}, series: "gpu_memory_usage", whole: "gpu_memory_usage",
		units: "MiB"},
	{kind: "gauge", names: []string{"_average_kv_cache_utilization"}, series: "pool_avg_kv_cache_utilization",
		units: "fraction"},
	{kind: "gauge", names: []string{"_average_queue_size"}, series: "pool_avg_queue_size", units: "count"},
	{kind: "gauge", names: []string{"_average_running_requests"}, series: "pool_avg_running_requests", units: "count"},
	{kind: "gauge", names: []string{"_ready_endpoints", "_ready_pods"}, series: "pool_ready_pods", units: "count"},
}

// picker is the engine whose families speak of a pool of others.
const picker = "llm-d-epp"

// has reports whether a row is of the field.
func (f *llmdField) has(row *query.Row) bool {
	return row.Kind == f.kind && slices.ContainsFunc(f.names, func(name string) bool {
		if name[0] == '_' || name[0] == ':' {
			return strings.HasSuffix(row.Metric, name)
		}
		return row.Engine != picker && (name == row.Quantity || name == row.Metric)
	})
}

// llmdSeries is what a target has of a field, by statistic.
type llmdSeries struct {
	metric string
	whole  map[string]float64
	slices []llmdSlice // in time order
}

type llmdSlice struct {
	startNS, endNS int64
	stats          map[string]float64
}

// llmdTarget is a component of the report.
type llmdTarget struct {
	endpoint *summary.Endpoint
	picks    bool
	fields   map[*llmdField]*llmdSeries
}

// LLMD writes the benchmark report of llm-d, version 0.2.1, with results.observability.components: a component for each
// target that has a field of it. It is a report of its own, or Options.Into with these components. Points are the
// slices of the run; of counters they are what was gained since the window began. What is not certain is left out.
func LLMD(w io.Writer, r *summary.Run, o Options) error {
	components := []texttab.Object{}
	for _, t := range llmdTargets(r) {
		components = append(components, t.component(r))
	}
	if o.Into != nil {
		return texttab.WriteJSON(w, o.Into.with(components))
	}
	at := texttab.NewObject("start", llmdTime(r.Window.StartNS), "end", llmdTime(r.Window.PhaseEndNS),
		"duration", "PT"+jsonNumber(float64(r.Window.PhaseEndNS-r.Window.StartNS)/1e9)+"S")
	observability := texttab.NewObject("components", components)
	return texttab.WriteJSON(w, texttab.NewObject("version", llmdVersion,
		"run", texttab.NewObject("uid", r.ID, "time", at), "results", texttab.NewObject("observability", observability)))
}

func llmdTime(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z") }

func jsonNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// llmdTargets are the targets of a run that have a field, in their order.
func llmdTargets(r *summary.Run) (out []*llmdTarget) {
	at := map[string]*llmdTarget{}
	for i := range r.Endpoints {
		if e := &r.Endpoints[i]; e.SameAs == 0 && at[e.URL] == nil {
			out = append(out, &llmdTarget{endpoint: e, fields: map[*llmdField]*llmdSeries{}})
			at[e.URL] = out[len(out)-1]
		}
	}
	o := query.Options{Levels: []string{query.LevelGroup}, By: []string{summary.ByEndpoint},
		Spans: []string{query.SpanWindow, query.SpanSlice},
		Stats: []string{"avg", "time_avg", "min", "max", "total", "value"}}
	for row := range query.Stats(r, o) {
		t := at[row.URL]
		if t == nil {
			continue
		}
		t.picks = t.picks || row.Engine == picker
		i := slices.IndexFunc(llmdFields, func(f llmdField) bool { return f.has(row) })
		if i >= 0 && certain(row) {
			t.add(&llmdFields[i], row)
		}
	}
	return slices.DeleteFunc(out, func(t *llmdTarget) bool { return len(t.fields) == 0 })
}

// add takes a row, unless another family has been the field before or another part of the target is the same.
func (t *llmdTarget) add(f *llmdField, row *query.Row) {
	id := row.Metric + row.Labels.String()
	s := t.fields[f]
	if s == nil {
		s = &llmdSeries{metric: id, whole: map[string]float64{}}
		t.fields[f] = s
	}
	switch {
	case s.metric != id:
	case row.Span == query.SpanWindow:
		s.whole[row.Stat] = row.Value
	default:
		if n := len(s.slices); n == 0 || s.slices[n-1].startNS != row.StartNS {
			s.slices = append(s.slices, llmdSlice{row.StartNS, row.EndNS, map[string]float64{}})
		}
		s.slices[len(s.slices)-1].stats[row.Stat] = row.Value
	}
}

// role is what llm-d calls such a component.
func (t *llmdTarget) role() string {
	names := []string{t.endpoint.Name}
	for name, value := range t.endpoint.Labels.All() {
		if name == "role" || strings.HasSuffix(name, "_role") {
			names = append(names, value)
		}
	}
	for _, role := range []string{"prefill", "decode"} {
		if slices.ContainsFunc(names, func(s string) bool { return strings.Contains(strings.ToLower(s), role) }) {
			return role + "-engine"
		}
	}
	if t.picks {
		return "epp"
	}
	return "inference-engine"
}

func (t *llmdTarget) component(r *summary.Run) texttab.Object {
	replica := t.endpoint.Name
	if u, err := url.Parse(t.endpoint.URL); err == nil {
		replica = cmp.Or(replica, u.Host)
	}
	var whole, series texttab.Object
	for i := range llmdFields {
		f := &llmdFields[i]
		s := t.fields[f]
		if s == nil {
			continue
		}
		if o := f.statistics(s.whole); f.whole != "" && len(o) > 0 {
			whole = whole.With(f.whole, texttab.NewObject("units", f.units).With(pairs(o)...))
		}
		if points := f.points(s, r.Window.StartNS); len(points) > 0 {
			series = series.With(f.series, texttab.NewObject("units", f.units, "series", points))
		}
	}
	o := texttab.NewObject("component_label", t.role(), "replica_id", cmp.Or(replica, t.endpoint.URL))
	return o.Known("aggregate", whole, "time_series", series).With("raw_data_path", ".")
}

func pairs(o texttab.Object) (out []any) {
	for _, f := range o {
		out = append(out, f.Name, f.Value)
	}
	return out
}

// statistics are those of gauges, and the mean of what is one number.
func (f *llmdField) statistics(stats map[string]float64) (out texttab.Object) {
	factor := 1.0
	if f.percent {
		factor = 100
	}
	take := func(name string, of ...string) {
		for _, stat := range of {
			if v, ok := stats[stat]; ok {
				out = out.With(name, v*factor)
				return
			}
		}
	}
	take("mean", "avg", "time_avg", "total", "value")
	take("min", "min")
	take("max", "max")
	return out
}

// points are those of the slices.
func (f *llmdField) points(s *llmdSeries, startNS int64) (out []texttab.Object) {
	gained := 0.0
	if f.kind == "counter" && len(s.slices) > 0 {
		out = append(out, texttab.NewObject("ts", llmdTime(startNS), "value", gained))
	}
	for i := range s.slices {
		x := &s.slices[i]
		if f.kind == "counter" {
			gained += x.stats["total"]
			out = append(out, texttab.NewObject("ts", llmdTime(x.endNS), "value", gained))
		} else if o := f.statistics(x.stats); len(o) > 0 {
			out = append(out, texttab.NewObject("ts", llmdTime(x.startNS)).With(pairs(o)...))
		}
	}
	return out
}

// certain reports whether a row is a number that others may take as it is.
func certain(row *query.Row) bool {
	switch row.Status {
	case catalog.OK.String(), catalog.BornInWindow.String(), catalog.ResetCorrected.String():
		return true
	}
	return false
}
