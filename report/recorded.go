package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// recordedLines tell what the records of single requests are worth, with the estimates that they stand for.
func (t *pageBuilder) recordedLines(e *engine) (out []string) {
	var order []string
	by := map[string][]*summary.Recorded{}
	for i := range t.run.Recorded {
		x := &t.run.Recorded[i]
		if x.Engine != e.id || e.second {
			continue
		}
		of := x.Reason
		if x.Status == summary.Proven {
			of = fmt.Sprintf("exact, of all %d requests", x.Records)
		} else if x.Status != summary.Bounded {
			of = "estimates: " + x.Reason
		}
		if by[of] == nil {
			order = append(order, of)
		}
		by[of] = append(by[of], x)
	}
	for _, of := range order {
		var names, estimates []string
		for _, x := range by[of] {
			w, _, _ := headline.Parse(x.ID)
			names = append(names, cmp.Or(w.Name, x.ID))
			if x.Usable() {
				estimates = append(estimates, cmp.Or(w.Name, x.ID)+" "+t.estimatesOf(x))
			}
		}
		text := strings.Join(names, ", ") + " " + of
		if estimates != nil {
			text += "; by the buckets alone " + strings.Join(estimates, ", ")
		}
		out = append(out, t.labelled("records", text)...)
	}
	return out
}

// estimatesOf are the percentiles that are shown as the histogram alone has them.
func (t *pageBuilder) estimatesOf(x *summary.Recorded) string {
	var parts []string
	for _, q := range t.shownQuantiles() {
		if q < len(x.Percentiles) && x.Percentiles[q].Estimate != nil && !math.IsNaN(*x.Percentiles[q].Estimate) {
			parts = append(parts, units.Format(*x.Percentiles[q].Estimate, "seconds"))
		}
	}
	return strings.Join(parts, "/")
}
