package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// aiperfFooter returns the key/value metadata of AIPerf's file. What this tool has no such thing of (a Python, a
// benchmark configuration) is named as AIPerf names what it does not know. The time of the export is the end of the
// window, so that a second export gives the same bytes.
func aiperfFooter(r *summary.Run, l *aiperfLayout) map[string]string {
	start, end := r.Window.StartNS, r.Window.EndNS
	var urls []string
	for _, e := range delivered(r) {
		urls = append(urls, e.URL)
	}
	slices.Sort(urls)
	labels := slices.Sorted(maps.Values(l.names))
	series, types := countSeries(r)
	return map[string]string{
		"aiperf.schema_version":             "1.0",
		"aiperf.version":                    toolVersion(r),
		"aiperf.benchmark_id":               r.ID,
		"aiperf.export_timestamp_utc":       pythonISO(end),
		"aiperf.exporter":                   "ServerMetricsParquetExporter",
		"aiperf.hostname":                   cmp.Or(r.Host, "unknown"),
		"aiperf.python_version":             "unknown",
		"aiperf.pyarrow_version":            "unknown",
		"aiperf.time_filter_start_ns":       strconv.FormatInt(start, 10),
		"aiperf.time_filter_end_ns":         strconv.FormatInt(end, 10),
		"aiperf.profiling_duration_ns":      strconv.FormatInt(end-start, 10),
		"aiperf.profiling_duration_seconds": string(appendFloat(nil, float64(end-start)/1e9)),
		"aiperf.input_config":               "{}",
		"aiperf.model_names":                "[]",
		"aiperf.concurrency":                "None",
		"aiperf.endpoint_urls":              jsonText(urls),
		"aiperf.endpoint_count":             strconv.Itoa(len(urls)),
		"aiperf.label_columns":              jsonText(labels),
		"aiperf.label_count":                strconv.Itoa(len(labels)),
		"aiperf.metric_count":               strconv.Itoa(series),
		"aiperf.metric_type_counts":         types,
		"aiperf.schema_note": "Label columns vary by endpoint/model. Use union_by_name=true for " +
			"cross-file queries.",
		"scrapestat.layout": LayoutAIPerf,
		"scrapestat.run":    runFacts(r),
		"scrapestat.labels": jsonText(renamed(l.names)), // by column
	}
}

// countSeries counts the series of the file, in all and by type as JSON.
func countSeries(r *summary.Run) (n int, types string) {
	var counts [metric.GaugeHistogram + 1]int
	for i := range r.Metrics {
		if m := &r.Metrics[i]; exportedType(m.Type) {
			for j := range m.Series {
				if !r.Endpoints[m.Series[j].Endpoint].Client() {
					n++
					counts[m.Type]++
				}
			}
		}
	}
	return n, fmt.Sprintf(`{"gauge":%d,"counter":%d,"histogram":%d,"unknown":%d}`, counts[metric.Gauge],
		counts[metric.Counter], counts[metric.Histogram], counts[metric.Unknown])
}

// runFacts returns what the run was, as JSON. Both layouts have it under "scrapestat.run".
func runFacts(r *summary.Run) string {
	type phase struct {
		Name    string `json:"name"`
		StartNS int64  `json:"start_ns"`
		EndNS   int64  `json:"end_ns"`
	}
	type endpoint struct {
		URL    string `json:"url"`
		Name   string `json:"name,omitempty"`
		Source string `json:"source,omitempty"`
	}
	facts := struct {
		ID        string            `json:"id"`
		Version   string            `json:"version"`
		Command   []string          `json:"command,omitempty"`
		Tags      map[string]string `json:"tags,omitempty"`
		Window    phase             `json:"window"`
		Phases    []phase           `json:"phases"`
		Endpoints []endpoint        `json:"endpoints"`
	}{ID: r.ID, Version: r.Version, Command: r.Command, Tags: r.Tags,
		Window: phase{r.Window.Phase, r.Window.StartNS, r.Window.EndNS}, Phases: []phase{}, Endpoints: []endpoint{}}
	for _, p := range r.Phases {
		facts.Phases = append(facts.Phases, phase{p.Name, p.StartNS, p.EndNS})
	}
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		facts.Endpoints = append(facts.Endpoints, endpoint{e.URL, e.Name, e.Source})
	}
	return jsonText(facts)
}

// jsonText returns v as compact JSON. The values are texts and numbers of ours, which always have a JSON form.
func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// pythonISO prints a time as Python's isoformat does in UTC.
func pythonISO(ns int64) string {
	t := time.Unix(0, ns).UTC().Truncate(time.Microsecond)
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02T15:04:05+00:00")
	}
	return t.Format("2006-01-02T15:04:05.000000+00:00")
}
