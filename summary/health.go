package summary

import (
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// What makes an endpoint's polls worth a warning: the same body for so long, in so many polls.
const (
	frozenFor   = 60 * time.Second
	frozenPolls = 10
)

// health warns of what the order of the polls shows and their sums do not: that a
// target came late, and that it stood still.
func (l *ledger) health() (out []metric.Warning) {
	failed, start := 0, int64(0)
	var since, longest int64 // of the body that is shown; of the longest stretch of one
	same, most := 0, 0
	for i, p := range l.polls {
		if i == 0 {
			start = p.at
		}
		if !p.outcome.Stored() {
			failed++
			continue
		}
		if failed == i && failed > 0 {
			out = append(out, metric.Warnf("late_start",
				"the first %d polls failed: metrics came %v after the first poll, and counters count from there",
				failed, time.Duration(p.at-start).Round(time.Millisecond)))
		}
		if !p.repeat {
			since, same = p.at, 0
			continue
		}
		if same++; p.at-since > longest {
			longest, most = p.at-since, same
		}
	}
	if longest >= int64(frozenFor) && most >= frozenPolls {
		out = append(out, metric.Warnf("stale_target",
			"the body stayed the same, byte for byte, for %v: the server was idle, or its metrics stand still",
			time.Duration(longest).Round(time.Second)))
	}
	return out
}

// warnProcesses tells of families that have a series for each process, as Python's prometheus_client in
// multiprocess mode: which of them to look at is not obvious, and most of them may stand still.
func (r *Run) warnProcesses() {
	var names []string
	for i := range r.Metrics {
		m := &r.Metrics[i]
		seen := map[string]bool{}
		for j := range m.Series {
			if _, ok := m.Series[j].Labels.Get("pid"); !ok {
				continue
			}
			key := fmt.Sprint(m.Series[j].Endpoint, m.Series[j].Labels.Without("pid"))
			if seen[key] {
				names = append(names, m.Name)
				break
			}
			seen[key] = true
		}
	}
	if len(names) == 0 {
		return
	}
	text := names[0]
	if len(names) > 1 {
		text = fmt.Sprintf("%s and %d more", names[0], len(names)-1)
	}
	r.Warnings = append(r.Warnings, metric.Warning{Code: "process_series", Text: text +
		": series differ in the label pid only, one for each process of the server; --by with its other labels takes " +
		"counters and histograms together, of gauges the latest process counts"})
}
