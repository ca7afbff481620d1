// Package headline reads out of a summary.Run the few values that a comparison is judged by and those that are printed
// beside them. A quantity is a canonical id of package catalog with a statistic; engines meet in it, families do not.
//
// Values come with what their noise is estimated from: sums or bucket counts of the complete timeslices. Nothing is
// judged here. Functions keep nothing of their arguments and start no goroutines.
package headline

import (
	"cmp"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/histest"
)

// Row is a quantity with a statistic.
type Row struct {
	ID   string // the word for it: "ttft"
	Stat string // "mean", "p99"; "" of a quantity that has no statistics
	// Title is what it is called on screens.
	Title  string
	Unit   string // as package units names it
	Better catalog.Direction
	// Share is set for a share of 0 to 1, whose Margin is a difference.
	Share bool
	// Margin is the least relative change worth a verdict, Floor the least absolute one, in Unit.
	Margin, Floor float64

	family, derived string // canonical ids: of a histogram, and of the derived quantity
}

// Name is what the row is called in lists and on command lines: "ttft_p99".
func (r *Row) Name() string {
	if r.Stat == "" {
		return r.ID
	}
	return r.ID + "_" + r.Stat
}

// Quantile is the share that the statistic means, 0.99 of "p99"; ok is false for one that is no percentile.
func (r *Row) Quantile() (q float64, ok bool) {
	p, ok := histest.Percentile(r.Stat)
	return p / 100, ok
}

// Rows returns what is judged, in the order of screens.
func Rows() []Row {
	const lower, higher = catalog.LowerBetter, catalog.HigherBetter
	return []Row{
		{ID: "request_rate", Title: "request rate", Unit: "requests/s", Better: higher, Margin: 0.02,
			derived: "request_rate"},
		{ID: "output_tok_s", Title: "output tokens", Unit: "tokens/s", Better: higher, Margin: 0.02,
			derived: "output_tok_s"},
		{ID: "error_ratio", Title: "errors", Unit: "ratio", Better: lower, Share: true, Margin: 0.001,
			derived: "error_ratio"},
		latency("ttft", "TTFT", "mean", 0.03, 1e-3), latency("ttft", "TTFT", "p99", 0.05, 1e-3),
		latency("itl", "ITL", "mean", 0.03, 1e-4), latency("itl", "ITL", "p99", 0.05, 1e-4),
		latency("tpot", "TPOT", "mean", 0.03, 1e-4), latency("tpot", "TPOT", "p99", 0.05, 1e-4),
		latency("e2e", "E2E", "mean", 0.03, 1e-3), latency("e2e", "E2E", "p99", 0.05, 1e-3),
		latency("queue", "queue", "mean", 0.05, 1e-3),
		latency("audio_ttfp", "first audio", "mean", 0.05, 0),
		{ID: "rtf", Stat: "p99", Title: "real-time factor p99", Unit: "ratio", Better: lower, Margin: 0.05, family: "rtf"},
		{ID: "j_per_token", Title: "energy per token", Unit: "joule", Better: lower, Margin: 0.05, derived: "j_per_token"},
	}
}

func latency(word, title, stat string, margin, floor float64) Row {
	r := Row{ID: word, Stat: stat, Title: title + " " + stat, Unit: "seconds", Better: catalog.LowerBetter, Margin: margin,
		Floor: floor, family: word + "_s"}
	if stat == "mean" {
		r.derived = word + "_mean_s"
	}
	return r
}

// load are the quantities that say what servers were asked for. The rate is first of all a result.
func load() []Row {
	return []Row{
		{ID: "isl", Stat: "mean", Title: "ISL", Unit: "tokens", derived: "isl_mean"},
		{ID: "osl", Stat: "mean", Title: "OSL", Unit: "tokens", derived: "osl_mean"},
		{ID: "request_rate", Title: "request rate", Unit: "requests/s", derived: "request_rate"},
	}
}

// context are quantities that are printed and never judged.
func context() []Row {
	list := []Row{
		{ID: "kv_usage", Title: "KV", Unit: "ratio", derived: "kv_usage"},
		{ID: "running", Title: "running", Unit: "requests", derived: "running"},
		{ID: "waiting", Title: "waiting", Unit: "requests", derived: "waiting"},
		{ID: "preemption", Title: "preemptions per request", derived: "preemption"},
	}
	for _, r := range Rows() {
		if r.Stat == "mean" && r.ID != "queue" {
			r.Stat, r.Title, r.derived = "p50", "p50 "+r.Title[:len(r.Title)-len(" mean")], ""
			list = append(list, r)
		}
	}
	return list
}

// quantity is what the catalog calls the row of an engine, of which its notes speak.
func (r *Row) quantity(engine string) catalog.Quantity {
	id := r.family
	if r.Stat == "mean" || id == "" {
		id = cmp.Or(r.derived, id)
	}
	return catalog.Quantity{ID: id, Engine: engine}
}
