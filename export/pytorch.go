package export

import (
	"cmp"
	"io"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/query"
	"github.com/scrapestat/scrapestat/summary"
)

// PyTorch writes the numbers of all of an engine as records of the PyTorch benchmark database, as vLLM's benchmarks do:
// one for each quantity that engines have in common, statistic and model. Names begin with server_, times are in
// milliseconds. What is not certain is left out.
func PyTorch(w io.Writer, r *summary.Run, _ Options) error {
	var rows []query.Row
	families := map[string]bool{} // quantities that families are
	for row := range query.Stats(r, query.Options{Levels: []string{query.LevelFleet}, Spans: []string{query.SpanWindow}}) {
		if certain(row) && row.Quantity != "" {
			rows = append(rows, *row)
			families[row.Quantity] = families[row.Quantity] || row.Kind != "derived"
		}
	}
	records := []texttab.Object{}
	for i := range rows {
		row := &rows[i]
		word := strings.TrimSuffix(row.Quantity, "_s")
		if row.Kind == "derived" && (families[row.Quantity] || families[strings.TrimSuffix(word, "_mean")+"_s"]) {
			continue // the family says it
		}
		if row.Kind == "histogram" && (row.Stat == "count" || row.Stat == "rate" || row.Stat == "sum") {
			continue // n says it
		}
		records = append(records, pytorchRecord(r, row))
	}
	return texttab.WriteJSON(w, records)
}

func pytorchRecord(r *summary.Run, row *query.Row) texttab.Object {
	name, factor := "server_"+row.Quantity, 1.0
	if row.Unit == "seconds" {
		name, factor = "server_"+strings.TrimSuffix(row.Quantity, "_s"), 1e3
	}
	switch row.Stat {
	case "value":
	case "avg", "time_avg":
		name += "_mean"
	default:
		name += "_" + row.Stat
	}
	if row.Unit == "seconds" {
		name += "_ms"
	}
	extra := texttab.NewObject()
	bounds := func(key string, v float64) {
		if !math.IsNaN(v) {
			extra = extra.With(key, []any{v * factor})
		}
	}
	bounds("low", row.Low)
	bounds("high", row.High)
	if row.N >= 0 {
		extra = extra.With("n", row.N)
	}
	model := r.Tags["model"]
	for name, value := range row.Labels.All() {
		if strings.HasPrefix(name, "model") {
			model = cmp.Or(value, model)
		} else {
			extra = extra.With(name, value)
		}
	}
	info := texttab.NewObject("args", r.Tags, "run_id", r.ID, "phase", r.Window.Phase,
		"window_s", float64(r.Window.PhaseEndNS-r.Window.StartNS)/1e9, "scrapestat_version", toolVersion(r),
		"engine", row.Engine)
	return texttab.NewObject("benchmark", texttab.NewObject("name", "scrapestat", "extra_info", info),
		"model", texttab.NewObject("name", model),
		"metric", texttab.NewObject("name", name, "benchmark_values", []any{row.Value * factor},
			"extra_info", extra.With("series", int64(row.Series))))
}
