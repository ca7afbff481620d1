package summary

import (
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// What makes an endpoint's polls worth a warning: the same body for so long, in
// so many polls.
const (
	frozenFor   = 60 * time.Second
	frozenPolls = 10
)

// health tells what the order of the polls says that their sums do not: that a
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
			out = append(out, metric.Warning{Code: "late_start", Text: fmt.Sprintf(
				"the first %d polls failed: metrics came %v after the first poll, and counters count from there", failed, time.Duration(p.at-start).Round(time.Millisecond))})
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
		out = append(out, metric.Warning{Code: "stale_target", Text: fmt.Sprintf(
			"the body stayed the same, byte for byte, for %v: the server was idle, or its metrics stand still", time.Duration(longest).Round(time.Second))})
	}
	return out
}
