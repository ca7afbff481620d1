package report

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// derived lists every quantity with its status, where that was asked for: of each endpoint, and of the endpoints of an
// engine together.
func (t *pageBuilder) derived() {
	tab := newTable("derived", "derived", hidden("pack"), words("name", "DERIVED"), hidden("target"), hidden("labels"),
		hidden("unit"), hidden("question"), number("value", "VALUE"), words("status", "STATUS"), hidden("flags"),
		hidden("numerator"), hidden("denominator"), hidden("families"), words("help", "WHAT IT IS"), face("OF"))
	add := func(d *summary.Derived, target string) {
		switch {
		case d.Pack == catalog.TritonPerfAnalyzerPack:
		case t.o.Metric != nil && !headline.Called(t.o.Metric, d.Name, d.Canonical), t.o.Metric == nil && !t.o.Derived:
		default:
			of := d.Labels.String()
			if len(t.run.Endpoints) > 1 {
				of = strings.TrimSpace(target + " " + of)
			}
			tab.row(append([]cell{raw(d.Pack), str(d.Name), raw(optional(target)), raw(d.Labels), raw(optional(d.Unit)),
				raw(d.Category.String()), t.derivedCell(d), both(strings.Join(append([]string{d.Status.String()}, d.Flags...), " "),
					d.Status.String()), raw(d.Flags)}, append(parts(d), raw(d.Families), opt(d.Help), only(of))...)...)
		}
	}
	for i := range t.run.Derived {
		add(&t.run.Derived[i], t.run.Endpoints[t.run.Derived[i].Endpoint].Shown())
	}
	if len(t.run.Combined) > 0 && len(t.run.Combined[0].Endpoints) > 1 {
		for i := range t.run.Combined[0].Derived {
			add(&t.run.Combined[0].Derived[i], "all")
		}
	}
	t.add(tab)
}

// groups tells the headline quantities by the labels that were asked for, every quantity with Options.Derived.
func (t *pageBuilder) groups() {
	if len(t.run.Combined) < 2 {
		return
	}
	tab := newTable("groups", "quantities by "+t.byTitle(), hidden("pack"), words("name", "QUANTITY"),
		words("group", "GROUP"), hidden("labels"), hidden("targets"), hidden("unit"), number("value", "VALUE"),
		words("status", "NOTE"), face("OF"))
	var order []string
	seen := map[string]bool{}
	for _, q := range questionOrder {
		for _, g := range t.run.Combined[1:] {
			for _, d := range g.Derived {
				if d.Category == q && !seen[d.Pack+"\xff"+d.Name] {
					seen[d.Pack+"\xff"+d.Name] = true
					order = append(order, d.Pack+"\xff"+d.Name)
				}
			}
		}
	}
	for _, name := range order {
		for i := range t.run.Combined[1:] {
			g := &t.run.Combined[1+i]
			for k := range g.Derived {
				d := &g.Derived[k]
				if d.Pack+"\xff"+d.Name != name || !d.Headline && !t.o.Derived ||
					t.o.Metric != nil && !headline.Called(t.o.Metric, d.Name, d.Canonical) {
					continue
				}
				rest := d.Labels
				for name := range g.Labels.All() {
					rest = rest.Without(name)
				}
				of := ""
				if rest.Len() > 0 {
					of = rest.String()
				}
				tab.row(raw(d.Pack), str(d.Name), both(g.Labels.String(), g.Labels), raw(d.Labels), raw(int64(len(g.Endpoints))),
					raw(optional(d.Unit)), t.derivedCell(d), both(derivedNote(d), d.Status.String()), only(of))
			}
		}
	}
	t.add(tab)
}

// scopes walks the derived quantities of a pack by endpoint, model and version, in their order.
func (t *pageBuilder) scopes(pack string, each func(endpoint int, model metric.Labels,
	named map[string]*summary.Derived)) {
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

// tritonColumns are the columns of the table of models: a heading and what of the derived quantities stands under it.
var tritonColumns = [...]struct{ head, name string }{
	{"REQ/S", "request_rate"}, {"FAIL", "failure_ratio"}, {"REQUEST", "avg_request_seconds"},
	{"QUEUE", "avg_queue_seconds"},
	{"INPUT", "avg_compute_input_seconds"}, {"INFER", "avg_compute_infer_seconds"},
	{"OUTPUT", "avg_compute_output_seconds"},
	{"OVERHEAD", "avg_overhead_seconds"}, {"HITS", "cache_hit_ratio"}, {"BATCH", "avg_batch_size"},
	{"P99", "batch_size_p99 execution"},
	{"INFLIGHT", "mean_inflight"}, {"QUEUED", "mean_queue_depth"}, {"BUSY", "busy_instances"},
	{"FIRST", "first_response_seconds"},
	{"NEXT", "next_response_seconds"},
}

// tritonModels has a row per model and version of Triton's statistics.
func (t *pageBuilder) tritonModels(e *engine) *table {
	tab := newTable("triton_models", "models (Triton statistics)", hidden("engine"), hidden("target"), hidden("labels"),
		face("MODEL"))
	t.limit(tab, firstQuantities, "--all")
	for i, c := range tritonColumns {
		tab.Columns = append(tab.Columns, spare(number(strings.ReplaceAll(c.name, " ", "_"), c.head), i))
	}
	tab.Columns = append(tab.Columns, words("doubts", "NOTES"))
	t.scopes(catalog.TritonPack, func(endpoint int, model metric.Labels, named map[string]*summary.Derived) {
		if named["triton_derived_request_rate"] == nil {
			return
		}
		row := []cell{raw(e.title), raw(t.run.Endpoints[endpoint].Shown()), raw(model), only(t.modelName(endpoint, model))}
		for _, c := range tritonColumns {
			d := named["triton_derived_"+c.name]
			value := t.derivedCell(d)
			if value.Value != nil && d.Unit != "seconds" && d.Unit != "ratio" { // the head says what is counted
				value.Text = digits(d.Shown)
			}
			row = append(row, value)
		}
		tab.row(append(row, opt(tritonDoubts(named)))...)
	})
	for i := len(tab.Columns) - 2; i >= 4; i-- { // those without any value
		if !tab.has(i) {
			tab.Columns[i].Head = ""
		}
	}
	return tab
}

// has reports whether some row has a value in a column.
func (t *table) has(column int) bool {
	return slices.ContainsFunc(t.Rows, func(row []cell) bool { return row[column].Value != nil })
}

// tritonDoubts says what is wrong with the statistics of a model.
func tritonDoubts(named map[string]*summary.Derived) string {
	var words []string
	for _, what := range []string{"resets", "invariant_violations", "torn_reads", "implausible"} {
		if d := named["triton_derived_"+what]; d != nil && d.Value > 0 {
			words = append(words, strings.ReplaceAll(what, "_", " ")+" "+digits(d.Value))
		}
	}
	if d := named["triton_derived_avg_overhead_seconds"]; d != nil && len(d.Flags) > 0 {
		words = append(words, "overhead "+strings.Join(d.Flags, " "))
	}
	return strings.Join(words, ", ")
}

func (t *pageBuilder) modelName(endpoint int, model metric.Labels) string {
	name, _ := model.Get("model")
	if version, _ := model.Get("version"); version != "" {
		name += " v" + version
	}
	if len(t.run.Endpoints) > 1 {
		name = t.run.Endpoints[endpoint].Shown() + " " + name
	}
	return name
}

// perfAnalyzer tells what perf_analyzer would, when it was asked for.
func (t *pageBuilder) perfAnalyzer() {
	if !t.o.PACompat {
		return
	}
	columns := []string{"request", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss",
		"compute", "overhead"}
	tab := newTable("perf_analyzer", "perf_analyzer's whole microseconds", hidden("target"), hidden("labels"),
		face("MODEL"))
	for _, c := range columns {
		tab.Columns = append(tab.Columns, number(c+"_us", strings.ToUpper(strings.ReplaceAll(c, "_", " "))))
	}
	tab.Columns = append(tab.Columns, words("note", "NOTES"))
	t.scopes(catalog.TritonPerfAnalyzerPack, func(endpoint int, model metric.Labels, named map[string]*summary.Derived) {
		row := []cell{raw(t.run.Endpoints[endpoint].Shown()), raw(model), only(t.modelName(endpoint, model))}
		note := ""
		for _, c := range columns {
			d := named["triton_pa_"+c+"_us"]
			if d == nil {
				row = append(row, only("-"))
				continue
			}
			row = append(row, tally(int64(d.Value)))
			note = derivedNote(d)
		}
		tab.row(append(row, opt(note))...)
	})
	t.add(tab)
}
