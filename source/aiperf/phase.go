package aiperf

import (
	"cmp"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// tag is the phase that a line was scraped in; releases before named phases write Benchmark alone.
type tag struct {
	Benchmark string `json:"benchmark_phase"` // warmup or profiling
	Index     *int   `json:"phase_index"`
	Profiling *int   `json:"profiling_index"`
	Name      string `json:"phase_name"`
	Kind      string `json:"phase_kind"`
}

// span is a phase, with the times of its first and last line.
type span struct {
	tag
	first, last int64
}

// maxPhases bounds how many phases of a file are told apart.
const maxPhases = 10_000

// noteTag notes the phase that a line says it was scraped in.
func (i *reader) noteTag(rec *record) {
	t := rec.tag
	t.Kind = cmp.Or(t.Kind, t.Benchmark)
	if t.Kind != metric.PhaseWarmup && t.Kind != metric.PhaseProfiling {
		return
	}
	if mark := (metric.Mark{Name: t.Name}); mark.Validate() != nil || t.Name == metric.MarkEnd {
		t.Name = t.Kind
	}
	for k := len(i.tagged) - 1; k >= 0; k-- {
		s := &i.tagged[k]
		if !s.same(&t) {
			if t.Index == nil && rec.AtNS >= s.last {
				break // it changed
			}
			continue
		}
		s.first, s.last = min(s.first, rec.AtNS), max(s.last, rec.AtNS)
		return
	}
	if len(i.tagged) < maxPhases {
		i.tagged = append(i.tagged, span{t, rec.AtNS, rec.AtNS})
	}
}

// same reports whether two lines are of one phase, if no other one was between them.
func (t *tag) same(other *tag) bool {
	if t.Index == nil || other.Index == nil {
		return t.Index == other.Index && t.Kind == other.Kind && t.Name == other.Name
	}
	return *t.Index == *other.Index
}

// marks are the phases of the tags.
func (i *reader) marks() []metric.Mark {
	if !slices.ContainsFunc(i.tagged, func(s span) bool { return s.Kind == metric.PhaseProfiling }) {
		return nil
	}
	slices.SortStableFunc(i.tagged, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var out []metric.Mark
	last, end := int64(0), int64(0)
	for _, s := range i.tagged {
		if from, to := i.exact(&s); from > end || len(out) == 0 {
			s.first, s.last = min(s.first, from), max(s.last, to)
		} else {
			s.last = max(s.last, to)
		}
		out, end = append(out, metric.Mark{Name: s.Name, AtNS: s.first, Kind: s.Kind}), max(end, s.first)
		last = max(last, s.last)
	}
	return append(out, metric.Mark{Name: metric.MarkEnd, AtNS: last})
}

// exact is when the phase of some lines began and ended by the export, else by the lines.
func (i *reader) exact(s *span) (from, to int64) {
	for _, p := range i.o.Types.Phases {
		if p.Name == s.Name && p.StartNS <= s.first && s.last <= p.EndNS {
			return p.StartNS, p.EndNS
		}
	}
	return s.first, s.last
}
