package export

import (
	"strings"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// endpoint writes the account of an endpoint: every poll that was due and every
// line that came.
func (d *document) endpoint(e *summary.Endpoint) {
	l := &e.Ledger
	d.open('{')
	d.strField("url", e.URL)
	if e.Name != "" {
		d.strField("name", e.Name)
	}
	d.strField("source", e.Source)
	if e.Labels.Len() > 0 {
		d.stringMap("labels", e.Labels.Map())
	}
	d.lives(e.Lives)
	d.key("window")
	d.openInline('{')
	d.intField("start_ns", e.StartNS)
	d.intField("end_ns", e.EndNS)
	d.close('}')
	d.intField("scheduled", int64(l.Scheduled))
	d.intField("ok", int64(l.Outcomes[metric.OK]))
	d.outcomes("outcomes", &l.Outcomes)
	d.outcomes("outcomes_in_window", &l.InWindow)
	d.pollError("first_error", &l.FirstError)
	d.pollError("last_error", &l.LastError)
	d.intField("lines", l.Lines)
	d.intField("stored", l.Stored)
	d.drops("dropped", l.Dropped)
	d.limitsHit(l)
	d.intField("body_bytes", l.Bytes)
	d.intField("families", int64(l.Families))
	d.intField("series", int64(l.SeriesN))
	d.key("lateness_ms")
	d.openInline('{')
	d.floatField("mean", float64(l.Late.Mean)/1e6)
	d.floatField("p99", float64(l.Late.P99)/1e6)
	d.floatField("max", float64(l.Late.Max)/1e6)
	d.close('}')
	d.someFetches("fetches_in_window", e.InWindow)
	d.someFetches("fetches_in_warmup", e.InWarmup)
	d.gaps(e)
	if len(e.Declared) > 0 {
		d.stringList("declared_without_sample", e.Declared)
	}
	d.warnings(e.Warnings)
	d.close('}')
}

// outcomes writes how polls ended; outcomes that did not occur are left out.
func (d *document) outcomes(name string, counts *[metric.Outcomes]int) {
	d.key(name)
	d.openInline('{')
	for o, n := range counts {
		d.count(metric.Outcome(o).String(), n)
	}
	d.close('}')
}

func (d *document) pollError(name string, p *summary.PollError) {
	if *p == (summary.PollError{}) {
		return
	}
	d.key(name)
	d.openInline('{')
	d.intField("at_ns", p.AtNS)
	d.strField("outcome", p.Outcome.String())
	d.strField("text", p.Text)
	d.close('}')
}

func (d *document) drops(name string, drops []metric.Drop) {
	d.key(name)
	d.open('[')
	for _, drop := range drops {
		d.elem()
		d.openInline('{')
		d.strField("reason", drop.Reason)
		d.intField("lines", int64(drop.Lines))
		d.strField("first", drop.First)
		d.close('}')
	}
	d.close(']')
}

// limitsHit names the limits that cost polls or lines.
func (d *document) limitsHit(l *summary.Ledger) {
	var hit []metric.Drop
	for _, drop := range l.Dropped {
		if strings.HasSuffix(drop.Reason, "_limit") {
			hit = append(hit, drop)
		}
	}
	polls := l.Outcomes[metric.TooLarge]
	if len(hit) == 0 && polls == 0 {
		return
	}
	d.key("limits_hit")
	d.openInline('{')
	d.count("polls_too_large", polls)
	for _, drop := range hit {
		d.intField(drop.Reason+"_lines", int64(drop.Lines))
	}
	d.close('}')
}

func (d *document) someFetches(name string, f *summary.FetchStats) {
	if f == nil {
		return
	}
	d.key(name)
	d.openInline('{')
	d.fetches(f)
	d.close('}')
}

// lives writes when a target came and went.
func (d *document) lives(list []metric.TargetEvent) {
	if len(list) == 0 {
		return
	}
	d.key("lives")
	d.open('[')
	for _, l := range list {
		d.elem()
		d.openInline('{')
		d.intField("at_ns", l.AtNS)
		if l.Gone {
			d.strField("event", "went")
		} else {
			d.strField("event", "came")
		}
		d.strField("reason", l.Reason)
		d.close('}')
	}
	d.close(']')
}

func (d *document) gaps(e *summary.Endpoint) {
	if e.GapsN == 0 {
		return
	}
	d.intField("gaps_count", int64(e.GapsN))
	d.key("gaps")
	d.open('[')
	for _, g := range e.Gaps {
		d.elem()
		d.openInline('{')
		if g.StartNS != 0 {
			d.intField("last_ok_ns", g.StartNS)
		}
		if g.EndNS != 0 {
			d.intField("next_ok_ns", g.EndNS)
		}
		d.intField("failed_polls", int64(g.Polls))
		d.close('}')
	}
	d.close(']')
}
