package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// probes is how many connections are made to see who answers.
const probes = 8

// processes asks on new connections, as a balancer sends each of them where it likes, and tells when several processes
// answer or older bodies come. A poll that fails ends it.
func (e *exam) processes(ctx context.Context) {
	t := continuity.New(continuity.Options{})
	var b metric.SnapshotBuilder
	var from, to int64
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range probes {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(e.o.Pause / 4)
		e.p.Close()
		reply := e.p.Ask(ctx, scrape.ProbeRequest{Path: e.path})
		if !reply.Outcome.Stored() {
			return
		}
		if i == 0 {
			from = reply.SentNS
		}
		// A second apart: stretches of milliseconds tell nothing of the pace of a counter.
		to = from + int64(i)*int64(time.Second)
		s := &metric.Snapshot{Seq: uint64(i), SentNS: to, Outcome: reply.Outcome}
		rebuild(&b, &reply.Snapshot, s)
		if _, err := t.Step(s); err != nil {
			return
		}
	}
	c := t.Target(from, to)
	const remedy = "name each replica as a target (--kubernetes-inference-pods finds them), or give the workers of one " +
		"server a common store (PROMETHEUS_MULTIPROC_DIR)"
	switch {
	case c.Status == continuity.Refused:
		e.r.add(Warning, "several_processes", fmt.Sprintf("%d new connections were answered by several processes, which "+
			"nothing tells apart: a run would refuse all counters", probes), remedy)
	case c.Processes > 1:
		e.r.add(Warning, "several_processes", fmt.Sprintf("%d new connections were answered by %d processes: a run would "+
			"have lower bounds of all counters", probes, c.Processes), remedy)
	case c.HeldBodies > 0:
		e.r.add(Note, "older_bodies", fmt.Sprintf("%d of %d answers were older than one before: a cache stands before the "+
			"server; a run leaves such answers out", c.HeldBodies, probes), "")
	case !c.Status.Certain() || c.Restarts > 0 || c.Dips > 0:
		e.r.add(Warning, "values_fell", fmt.Sprintf("in %d answers counters fell: the server restarts, or several "+
			"processes answer", probes), remedy)
	}
}

// rebuild gives a builder, which knows the polls before, the body of a poll of its own dictionary.
func rebuild(b *metric.SnapshotBuilder, from, to *metric.Snapshot) {
	d := &from.DictDelta
	for i, slot := range from.Delta.Slots {
		id := d.Slots[slot]
		series := &d.Series[id.Series]
		f := &d.Families[series.Family]
		b.SetInteger(b.Slot(b.Series(b.Family(f.Name, f.Type, f.Help, f.Unit), series.Labels), id), from.Delta.Bits[i])
	}
	b.Finish(to)
}
