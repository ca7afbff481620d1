package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
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

// Gate is what a run and its repeats are against the last levels of their configuration.
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

// Gate holds runs of one configuration, repeats of each other, against the last level of each series. What the file has
// of them is left out of it.
func (f *File) Gate(ctx context.Context, entries []*Entry, q Query) (*Gate, error) {
	g := &Gate{}
	none, err := f.unknown(ctx, entries[0])
	if none != "" || err != nil {
		g.None = none
		return g, err
	}
	q.Fingerprint = entries[0].Fingerprint
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
			if l, ok := s.against(entries); !ok {
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

// Same tells in what an entry is no repeat of another one; "" for nothing.
func (e *Entry) Same(o *Entry) string {
	if e.own(&o.Run) || o.own(&e.Run) {
		return "the same run twice"
	}
	var names []string
	for _, d := range Differ(e.facts, o.facts) {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return "another configuration: it differs in " + strings.Join(names, ", ")
}

// own reports whether a run of the file is this one, or a part of it.
func (e *Entry) own(r *Run) bool {
	id, _, _ := strings.Cut(e.ID, "@")
	return r.ID == id || strings.HasPrefix(r.ID, id+"@")
}

// ownOf reports whether a run of the file is one of entries.
func ownOf(entries []*Entry) func(*Run) bool {
	return func(r *Run) bool {
		return slices.ContainsFunc(entries, func(e *Entry) bool { return e.own(r) })
	}
}

// against makes the line of entries; false when neither they nor the level have a value.
func (s *Series) against(entries []*Entry) (l GateLine, ok bool) {
	own := ownOf(entries)
	base := s.Base(own)
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
	var v *Value
	has := 0
	for _, e := range entries {
		switch v = e.value(s); {
		case v == nil:
			continue
		case v.Note != "":
			r.Reason = v.Note
		default:
			r.Other = append(r.Other, v.Value)
		}
		has++
	}
	if r.Reason == "" && has < len(entries) {
		if r.Reason = "the run has no value of it"; len(entries) > 1 {
			r.Reason = fmt.Sprintf("%d of %d runs have a value of it", has, len(entries))
		}
	}
	if r.Reason != "" {
		l.Lacks = last.Run == s.At(len(s.Line)-1).Run
		return l, has > 0 || l.Lacks
	}
	if len(base) < FewestRuns {
		levels := s.levels()
		r.History = s.noise(levels[:len(levels)-1], own)
	}
	single := len(r.Other) == 1
	if len(base) == 1 && single {
		r.Within = [2]judge.Estimate{{Value: last.Value, Err: last.ErrLog, DF: last.DF}, {Value: v.Value, Err: v.ErrLog,
			DF: v.DF}}
	}
	const aboveTail = 10
	switch df := float64(len(base)-1) + r.History.DF; {
	case df < FewestRuns-1:
		r.Reason = fmt.Sprintf("%d comparable runs, %d are needed", len(base), FewestRuns)
	case single && v.Beyond > 0 && v.Beyond < aboveTail:
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
	skip := ownOf(entries)
	known, most := map[Key]judge.Noise{}, 0.0
	for s, err := range f.Series(ctx, q, runs) {
		if err != nil {
			return nil, "", err
		}
		k := s.Key
		k.Fingerprint = ""
		noise := s.Noise(skip)
		most = max(most, noise.DF)
		known[k] = noise
		k.Engine, k.Target = "", ""
		known[k] = cmp.Or(known[k], noise)
	}
	if most < FewestRuns-1 {
		none = fmt.Sprintf("the history has too few other runs of this configuration to tell how they vary: %d are needed",
			FewestRuns)
	}
	return func(phase, engine, model, row string) judge.Noise {
		return cmp.Or(known[Key{"", phase, engine, model, row}], known[Key{"", phase, engine, "", row}])
	}, none, nil
}
