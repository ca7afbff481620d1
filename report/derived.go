package report

import (
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// derived prints a compact table per kind of server, or with TextOptions.Derived
// every quantity.
func (t *text) derived() {
	t.tritonModels()
	t.tritonPerfAnalyzer()
	if !t.o.Derived {
		return
	}
	var tab texttab.Table
	tab.Header("DERIVED", "VALUE", "STATUS", "OF")
	tab.Right(1)
	rows := 0
	for i := range t.run.Derived {
		d := &t.run.Derived[i]
		if d.Pack == catalog.TritonPerfAnalyzerPack || t.o.Metric != nil && !t.o.Metric.MatchString(d.Name) {
			continue
		}
		rows++
		tab.Row(d.Name, derivedCell(d), derivedNote(d), t.derivedOf(d))
	}
	t.table("derived", &tab, rows)
}

// derivedOf names what a quantity is of.
func (t *text) derivedOf(d *summary.Derived) string {
	labels := d.Labels.String()
	if len(t.run.Endpoints) < 2 {
		return labels
	}
	return endpointName(&t.run.Endpoints[d.Endpoint]) + " " + labels
}

// derivedCell is the value as people read it, a dash where there is none.
func derivedCell(d *summary.Derived) string {
	if d == nil || !d.Status.Defined() {
		return "-"
	}
	unit := d.Unit
	switch unit {
	case "requests", "instances", "inferences", "count":
		return number(d.Shown)
	}
	if strings.HasSuffix(unit, "/s") {
		return number(d.Shown)
	}
	return units.Format(d.Shown, unit)
}

// derivedNote is the status where it is not ok, and the flags.
func derivedNote(d *summary.Derived) string {
	var words []string
	if d.Status != catalog.OK {
		words = append(words, d.Status.String())
	}
	return strings.Join(append(words, d.Flags...), " ")
}

// scopes walks the derived quantities of a pack by endpoint, model and version,
// in their order.
func (t *text) scopes(pack string, each func(endpoint int, model metric.Labels, named map[string]*summary.Derived)) {
	type key struct {
		endpoint int
		model    metric.Labels
	}
	var order []key
	groups := map[key]map[string]*summary.Derived{}
	for i := range t.run.Derived {
		d := &t.run.Derived[i]
		if d.Pack != pack {
			continue
		}
		k := key{d.Endpoint, d.Labels.Only("model", "version")}
		if groups[k] == nil {
			groups[k] = map[string]*summary.Derived{}
			order = append(order, k)
		}
		name := d.Name
		if weight, ok := d.Labels.Get("weight"); ok {
			name += " " + weight
		} else if d.Labels.Len() > k.model.Len() {
			continue // of one batch size or response
		}
		groups[k][name] = d
	}
	for _, k := range order {
		each(k.endpoint, k.model, groups[k])
	}
}

// tritonColumns are the columns of the table of models: a heading and what of the
// derived quantities stands under it.
var tritonColumns = [...]struct{ head, name string }{
	{"REQ/S", "request_rate"}, {"FAIL", "failure_ratio"}, {"REQUEST", "avg_request_seconds"}, {"QUEUE", "avg_queue_seconds"},
	{"INPUT", "avg_compute_input_seconds"}, {"INFER", "avg_compute_infer_seconds"}, {"OUTPUT", "avg_compute_output_seconds"},
	{"OVERHEAD", "avg_overhead_seconds"}, {"HITS", "cache_hit_ratio"}, {"BATCH", "avg_batch_size"}, {"P99", "batch_size_p99 execution"},
	{"INFLIGHT", "mean_inflight"}, {"QUEUED", "mean_queue_depth"}, {"BUSY", "busy_instances"}, {"FIRST", "first_response_seconds"},
	{"NEXT", "next_response_seconds"},
}

// tritonModels prints a row per model and version of Triton's statistics.
// Columns without any value are left out.
func (t *text) tritonModels() {
	var rows [][]string
	used := make([]bool, len(tritonColumns))
	t.scopes(catalog.TritonPack, func(endpoint int, model metric.Labels, named map[string]*summary.Derived) {
		if named["triton_derived_request_rate"] == nil {
			return
		}
		row := []string{t.modelName(endpoint, model)}
		for i, c := range tritonColumns {
			cell := derivedCell(named["triton_derived_"+c.name])
			used[i] = used[i] || cell != "-"
			row = append(row, cell)
		}
		rows = append(rows, append(row, tritonDoubts(named)))
	})
	var tab texttab.Table
	head := []string{"MODEL"}
	for i, c := range tritonColumns {
		if used[i] {
			tab.Right(len(head))
			head = append(head, c.head)
		}
	}
	tab.Header(append(head, "NOTES")...)
	for _, row := range rows {
		cells := row[:1:1]
		for i := range tritonColumns {
			if used[i] {
				cells = append(cells, row[i+1])
			}
		}
		tab.Row(append(cells, row[len(row)-1])...)
	}
	t.table("models (Triton statistics)", &tab, len(rows))
}

// tritonDoubts says what is wrong with the statistics of a model.
func tritonDoubts(named map[string]*summary.Derived) string {
	var words []string
	for _, what := range []string{"resets", "invariant_violations", "torn_reads", "implausible"} {
		if d := named["triton_derived_"+what]; d != nil && d.Value > 0 {
			words = append(words, strings.ReplaceAll(what, "_", " ")+" "+number(d.Value))
		}
	}
	if d := named["triton_derived_avg_overhead_seconds"]; d != nil && len(d.Flags) > 0 {
		words = append(words, "overhead "+strings.Join(d.Flags, " "))
	}
	return strings.Join(words, ", ")
}

func (t *text) modelName(endpoint int, model metric.Labels) string {
	name, _ := model.Get("model")
	if version, _ := model.Get("version"); version != "" {
		name += " v" + version
	}
	if len(t.run.Endpoints) > 1 {
		name = endpointName(&t.run.Endpoints[endpoint]) + " " + name
	}
	return name
}

// tritonPerfAnalyzer prints what perf_analyzer would, when it was asked for.
func (t *text) tritonPerfAnalyzer() {
	if !t.o.PACompat {
		return
	}
	columns := []string{"request", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss", "compute", "overhead"}
	var tab texttab.Table
	head := []string{"MODEL"}
	for i, c := range columns {
		tab.Right(i + 1)
		head = append(head, strings.ToUpper(strings.ReplaceAll(c, "_", " ")))
	}
	tab.Header(append(head, "NOTES")...)
	rows := 0
	t.scopes(catalog.TritonPerfAnalyzerPack, func(endpoint int, model metric.Labels, named map[string]*summary.Derived) {
		row := []string{t.modelName(endpoint, model)}
		note := ""
		for _, c := range columns {
			d := named["triton_pa_"+c+"_us"]
			if d == nil {
				row = append(row, "-")
				continue
			}
			row = append(row, itoa(int(d.Value)))
			note = derivedNote(d)
		}
		rows++
		tab.Row(append(row, note)...)
	})
	t.table("perf_analyzer's whole microseconds", &tab, rows)
}
