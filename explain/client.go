package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// client names the load generator where it was busy for most of the window and nobody waited at the server, as the
// finding at that place; where somebody did wait, or that is not known, it is a fact that contributes.
func (x *explanation) client(at int) {
	share := x.facts.clientBusy(x.rules.ClientBusy)
	x.ClientSeen = !math.IsNaN(share)
	if !(share >= x.rules.ClientMost) {
		return
	}
	queued := slices.ContainsFunc(x.Findings, func(f Finding) bool {
		return strings.Contains(f.ID, "queue_") || f.ID == "rejections"
	})
	if waited := x.facts.waitingShare(); queued || !(waited < x.rules.Queue) {
		x.Contributing = append(x.Contributing, Contribution{ID: "client", Says: fmt.Sprintf(
			"the load generator was busy for %.3g %% of the window: what it measured may hold its own queues", 100*share)})
		return
	}
	x.Findings = slices.Insert(x.Findings, at, Finding{"client", math.NaN(), share})
	for _, q := range x.facts.Beside {
		if strings.HasPrefix(q.Name, "client_") {
			x.Quantities = append(slices.Clip(x.Quantities), q)
		}
	}
}

// clientBusy is the share of the timeslices that tell of the load generator in which it, or a thread of it, was busy at
// least so much; it is not a number where fewer than five tell, or less than a fourth of the window.
func (f *Facts) clientBusy(least float64) float64 {
	told, busy := 0, 0
	n := max(len(f.ClientCPU), len(f.ClientThread))
	for j := range n {
		cpu, ok := shown(f.ClientCPU, j)
		thread, ok2 := shown(f.ClientThread, j)
		if ok || ok2 {
			told++
		}
		if cpu >= least || thread >= least {
			busy++
		}
	}
	if told < 5 || 4*told < n {
		return math.NaN()
	}
	return float64(busy) / float64(told)
}

// waitingShare is the share of those in the server that waited; it is not a number where that is not shown.
func (f *Facts) waitingShare() float64 {
	waiting, all := 0.0, 0.0
	for j, v := range f.inside(f.slices()) {
		all += v
		for i := range f.Replicas {
			waiting += at(f.Replicas[i].Waiting, j)
		}
	}
	if !(all > 0) {
		return math.NaN()
	}
	return waiting / all
}
