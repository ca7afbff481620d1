package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/sweep"
	"github.com/scrapestat/scrapestat/units"
)

// cost is the line of what a million tokens of answers of an engine cost, over all its models, with the formula; none
// where nothing tells what an hour costs, or where the engine has no such tokens. A rate that is not certain has no
// cost, and the reason.
func (t *pageBuilder) cost(e *engine) []string {
	rate, status := math.NaN(), ""
	for i := range e.fleet {
		d := &e.fleet[i]
		if d.Canonical != "output_tok_s" || !d.Headline || !d.Status.Defined() {
			continue
		}
		if !d.Status.Certain() {
			status = strings.ReplaceAll(d.Status.String(), "_", " ")
		}
		if math.IsNaN(rate) {
			rate = 0
		}
		rate += d.Value
	}
	if !(t.o.PerHour > 0) || math.IsNaN(rate) {
		return nil
	}
	tab := newTable("cost", "", words("engine", ""), number("per_hour", ""), words("currency", ""),
		number("output_tok_s", ""), number("per_million_tokens", ""), words("status", ""))
	tab.programs = true
	per, there := sweep.CostPerMillion(t.o.PerHour, rate), status == "" && rate > 0
	tab.row(raw(e.title), raw(t.o.PerHour), raw(t.o.Currency), raw(rate), float(per, there, ""), opt(status))
	t.add(tab)
	text := fmt.Sprintf("%s per million output tokens: %s an hour / (%s × 3600) × 10^6",
		money(per, t.o.Currency), money(t.o.PerHour, t.o.Currency), units.Format(rate, "tokens/s"))
	if !there {
		text = "- per million output tokens: output_tok_s is " + strings.TrimSpace(units.Format(rate, "tokens/s")+" "+status)
	}
	return t.labelled("cost", text)
}

// money is an amount with its currency, if that is told.
func money(v float64, currency string) string {
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, currency))
}
