package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/compare/judge"
)

// GateLine is a quantity of a run against the last level of its series.
type GateLine struct {
	Series *Series
	From   float64 // mean of the level
	Row    judge.Row
	judge.Result
	Lacks bool // a value is missing that the level has, or has a status that forbids a verdict
}

// Gate is what a run is against the last levels of its configuration.
type Gate struct {
	Lines []GateLine // of the headline, judged together
	Load  []GateLine // of what servers were asked for, where it differs beyond chance
	Runs  int        // of the longest level
	// None is why nothing is comparable: no run of this configuration, or too few.
	None string
}

// The shares of gates and of looks at the load that may err.
const (
	gateAlpha = 0.05
	loadAlpha = 0.01
)

// Gate holds a run that is not in the file, or is left out of it, against the last level of each series.
func (f *File) Gate(ctx context.Context, e *Entry, q Query) (*Gate, error) {
	g := &Gate{}
	none, err := f.unknown(ctx, e)
	if none != "" || err != nil {
		g.None = none
		return g, err
	}
	q.Fingerprint = e.Fingerprint
	runs, _, err := f.Runs(ctx, q)
	if err != nil {
		return nil, err
	}
	all := q
	all.Quantities = loads
	for _, query := range []Query{q, all} {
		for s, err := range f.Series(ctx, query, runs) {
			if err != nil {
				return nil, err
			}
			if l, ok := s.against(e); !ok {
				continue
			} else if s.Kind == Headline {
				g.Lines, g.Runs = append(g.Lines, l), max(g.Runs, len(l.Row.Base))
			} else if l.differs() {
				g.Load = append(g.Load, l)
			}
		}
	}
	rows := make([]judge.Row, len(g.Lines))
	for i := range g.Lines {
		rows[i] = g.Lines[i].Row
	}
	evidence := false
	for i, r := range judge.Judge(rows, gateAlpha) {
		g.Lines[i].Result = r
		evidence = evidence || r.Verdict != judge.NotJudged
	}
	if !evidence {
		g.None = fmt.Sprintf("%d comparable runs, %d are needed", g.Runs, FewestRuns)
	}
	return g, nil
}

// unknown tells why the file has nothing of the configuration of a run; "" where it has.
func (f *File) unknown(ctx context.Context, e *Entry) (string, error) {
	if !e.Judged() {
		return "no headline: no quantity of this run has a canonical id", nil
	}
	configs, err := f.Configs(ctx)
	if err != nil || configs[e.Fingerprint] != nil {
		return "", err
	}
	nearest, least := "", []Setting(nil)
	for fp, facts := range configs {
		d := Differ(facts, e.facts)
		if nearest == "" || len(d) < len(least) || len(d) == len(least) && fp < nearest {
			nearest, least = fp, d
		}
	}
	if nearest == "" {
		return "0 comparable runs, the history is empty", nil
	}
	var names []string
	for _, d := range least[:min(len(least), 3)] {
		names = append(names, d.Name)
	}
	return fmt.Sprintf("no history for this configuration (nearest: %s, differs in %s)", nearest,
		strings.Join(names, ", ")), nil
}

// own reports whether a run of the file is this one, or a part of it.
func (e *Entry) own(r *Run) bool {
	id, _, _ := strings.Cut(e.ID, "@")
	return r.ID == id || strings.HasPrefix(r.ID, id+"@")
}

// against makes the line of an entry; false when neither has a value to be held against the other.
func (s *Series) against(e *Entry) (l GateLine, ok bool) {
	base := s.Base(e.own)
	if len(base) == 0 {
		return l, false
	}
	l = GateLine{Series: s, Row: judge.Row{Share: s.Share, Margin: s.Margin, Floor: s.Floor,
		Better: map[string]judge.Direction{"lower": judge.Lower, "higher": judge.Higher}[s.Better]}}
	for _, p := range base {
		l.Row.Base = append(l.Row.Base, p.Value)
		l.From += p.Value / float64(len(base))
	}
	r, last := &l.Row, base[len(base)-1]
	v := e.value(s)
	if v == nil || v.Note != "" {
		recent := last.Run == s.At(len(s.Line)-1).Run
		l.Lacks, r.Reason = recent, "the run has no value of it"
		if v != nil {
			r.Reason = v.Note
		}
		return l, v != nil || recent
	}
	r.Other = []float64{v.Value}
	if len(base) < FewestRuns {
		levels := s.levels()
		r.History = s.noise(levels[:len(levels)-1], e.own)
	}
	if len(base) == 1 {
		r.Within = [2]judge.Estimate{{Value: last.Value, Err: last.ErrLog, DF: last.DF}, {Value: v.Value, Err: v.ErrLog,
			DF: v.DF}}
	}
	const aboveTail = 10
	switch df := float64(len(base)-1) + r.History.DF; {
	case df < FewestRuns-1:
		r.Reason = fmt.Sprintf("%d comparable runs, %d are needed", len(base), FewestRuns)
	case v.Beyond > 0 && v.Beyond < aboveTail:
		r.Reason = fmt.Sprintf("only %.1f observations above", v.Beyond)
	}
	return l, true
}

// value is that of a series; nil for none.
func (e *Entry) value(s *Series) *Value {
	for i := range e.Values {
		v := &e.Values[i]
		if (Key{e.Fingerprint, v.Phase, v.Engine, v.Target, v.Quantity}) == s.Key && v.Unit == s.Unit {
			return v
		}
	}
	return nil
}

// differs judges a quantity of the load by itself.
func (l *GateLine) differs() bool {
	l.Result = judge.Judge([]judge.Row{l.Row}, loadAlpha)[0]
	return l.Verdict != judge.NotJudged && math.Abs(l.Change) > defaultMargin && (l.Low > 0 || l.High < 0)
}

// Noises returns how the runs of a configuration vary, less those of entries: a function of phase, engine, model and
// quantity, where "" stands for the only engine; none is why there is nothing.
func (f *File) Noises(ctx context.Context, entries []*Entry) (of func(phase, engine, model, row string) judge.Noise,
	none string, err error) {
	if none, err = f.unknown(ctx, entries[0]); none != "" || err != nil {
		return nil, none, err
	}
	q := Query{Fingerprint: entries[0].Fingerprint}
	runs, _, err := f.Runs(ctx, q)
	if err != nil {
		return nil, "", err
	}
	skip := func(r *Run) bool {
		for _, e := range entries {
			if e.own(r) {
				return true
			}
		}
		return false
	}
	known := map[Key]judge.Noise{}
	for s, err := range f.Series(ctx, q, runs) {
		if err != nil {
			return nil, "", err
		}
		k := s.Key
		k.Fingerprint = ""
		noise := s.Noise(skip)
		known[k] = noise
		k.Engine, k.Target = "", ""
		known[k] = cmp.Or(known[k], noise)
	}
	return func(phase, engine, model, row string) judge.Noise {
		return cmp.Or(known[Key{"", phase, engine, model, row}], known[Key{"", phase, engine, "", row}])
	}, "", nil
}
