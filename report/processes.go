package report

import (
	"fmt"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/summary"
)

// processes tells who answered, where that was not one process without an event.
func (t *pageBuilder) processes() {
	tab := newTable("processes", "processes", words("target", "TARGET"), number("processes", "ANSWERED BY"),
		number("restarts", "RESTARTS"), number("older_bodies", "OLDER BODIES"), number("dips", "DIPS"),
		words("numbers", "NUMBERS"), hidden("status"), hidden("same_as"))
	plain := true
	for i := range t.run.Endpoints {
		e := &t.run.Endpoints[i]
		c := &e.Continuity
		if judged := c.Processes > 0 || c.Status == continuity.Refused; judged && e.Ledger.StoredPolls() > 0 {
			plain = plain && e.SameAs == 0 && c.Processes == 1 && c.Restarts+c.HeldBodies+c.Dips == 0
			answered := tally(c.Processes)
			if c.Processes == 0 {
				answered.Text = "several"
			}
			tab.row(str(e.Shown()), answered, tally(c.Restarts), tally(c.HeldBodies), tally(c.Dips),
				only(t.numbersOf(e)), raw(c.Status.String()), raw(t.firstOf(e)))
		}
	}
	if !plain {
		t.add(tab)
	}
}

// firstOf names the target that is the same server and comes before, "" for none.
func (t *pageBuilder) firstOf(e *summary.Endpoint) string {
	if e.SameAs == 0 {
		return ""
	}
	return t.run.Endpoints[e.SameAs-1].Shown()
}

// numbersOf is what the events of a target mean for its numbers.
func (t *pageBuilder) numbersOf(e *summary.Endpoint) string {
	if e.SameAs > 0 {
		return "those of " + t.firstOf(e) + ": the same server, counted once"
	}
	switch c := &e.Continuity; c.Status {
	case continuity.Refused:
		return "refused: values of several processes"
	case continuity.LowerBound:
		return fmt.Sprintf("lower bounds: %d processes", c.Processes)
	case continuity.Ambiguous:
		return "ambiguous: two readings"
	case continuity.Corrected:
		return "corrected for restarts"
	}
	return "certain"
}
