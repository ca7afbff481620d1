package aiperf

import "github.com/scrapestat/scrapestat/metric"

// span is the time from the first line with a tag to the last.
type span struct{ first, last int64 }

// tag notes the phase that a line says it was scraped in.
func (i *reader) tag(rec *record) {
	if rec.Phase != metric.PhaseWarmup && rec.Phase != metric.PhaseProfiling {
		return
	}
	s, ok := i.tagged[rec.Phase]
	if !ok {
		s = span{rec.AtNS, rec.AtNS}
	}
	i.tagged[rec.Phase] = span{min(s.first, rec.AtNS), max(s.last, rec.AtNS)}
}

// marks are the phases of the tags.
func (i *reader) marks() []metric.Mark {
	profiling, ok := i.tagged[metric.PhaseProfiling]
	if !ok {
		return nil
	}
	var out []metric.Mark
	if warmup, ok := i.tagged[metric.PhaseWarmup]; ok && warmup.first < profiling.first {
		out = append(out, metric.Mark{Name: metric.PhaseWarmup, AtNS: warmup.first})
	}
	return append(out, metric.Mark{Name: metric.PhaseProfiling, AtNS: profiling.first},
		metric.Mark{Name: metric.MarkEnd, AtNS: profiling.last})
}
