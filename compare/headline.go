package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/headline"
)

// Phase is a phase of a run, analysed by itself.
type Phase struct {
	Name string // "high", or "high/2" where it occurs again
	Input
}

// Line is a judged quantity of a side against the base.
type Line struct {
	headline.Row
	Phase, Engine, Model string // "" where there is only one
	Side                 int    // into Result.Sides
	// From and To are the values of the base and of the side: of repeats their mean on the scale of the judgement. NaN is
	// none.
	From, To float64
	judge.Result
	Notes []string // letters of Result.Caveats
	// Lacks reports whether a value is missing that the base has, or has a status that forbids a verdict.
	Lacks  bool
	single bool
}

// Beside is a quantity that is printed beside the headline and not judged.
type Beside struct {
	headline.Row
	Phase, Engine, Model string
	Side                 int
	From, To             float64 // means of the runs, NaN for none
}

// LoadChange is a load that differs between the sides by more than 2 %.
type LoadChange struct {
	Beside
	// Beyond reports whether chance does not explain it: its interval of 99 % is on one side of none.
	Beyond bool
}

// leastLoadChange is the share from which on a load is told to differ.
const leastLoadChange = 0.02

// section is what is compared by itself: an engine and a model, within a phase.
type section struct {
	phase, engine, model string
	groups               [][]*headline.Group // by side, then run; nil for a run without
}

// headlines judges the values that decide.
func (c *comparer) headlines(inputs []Input) {
	var rows []judge.Row
	r := c.result
	for _, s := range c.sections(inputs) {
		for side := 1; side < len(c.sides); side++ {
			for _, def := range headline.Rows() {
				if line, row, ok := c.line(&s, side, def); ok {
					r.Headline, rows = append(r.Headline, line), append(rows, row)
				}
			}
			c.beside(&s, side)
		}
	}
	for i, v := range judge.Judge(rows, c.o.Alpha) {
		l := &r.Headline[i]
		l.Result = v
		if !math.IsNaN(v.Base) {
			l.From, l.To = v.Base, v.Other
		}
		if w := rows[i].Within; l.single && l.Verdict == judge.NotJudged && min(w[0].DF, w[1].DF) > 0 {
			l.Evidence = judge.WithinRun
		}
	}
	r.Caveats = catalog.SortCaveats(r.Caveats)
}

// sections finds what all sides have in common: phase by phase where every run was analysed so, by engine and model.
func (c *comparer) sections(inputs []Input) (out []section) {
	phases := map[string]int{}
	var names []string
	for i := range inputs {
		for _, p := range inputs[i].Phases {
			if phases[p.Name]++; phases[p.Name] == 1 {
				names = append(names, p.Name)
			}
		}
	}
	common := 0
	for _, name := range names {
		if phases[name] != len(inputs) {
			continue
		}
		common++
		runs := make([]Input, len(inputs))
		for i := range inputs {
			list := inputs[i].Phases
			runs[i] = list[slices.IndexFunc(list, func(p Phase) bool { return p.Name == name })].Input
		}
		out = append(out, c.engines(name, runs)...)
	}
	if common == 0 {
		return c.engines("", inputs)
	}
	for _, name := range names {
		if phases[name] != len(inputs) {
			c.result.PhasesLeft = append(c.result.PhasesLeft, name)
		}
	}
	return out
}

// engines pairs the headlines of runs by engine and model; where every run has one of them, they meet whatever they
// are called.
func (c *comparer) engines(phase string, inputs []Input) (out []section) {
	at := map[[2]string]int{}
	all := make([][]headline.Group, len(inputs))
	single := true
	for i := range inputs {
		if all[i] = inputs[i].Values; all[i] == nil {
			all[i] = headline.Of(inputs[i].Run, c.o.Catalog)
		}
		single = single && len(all[i]) == 1
	}
	for i := range all {
		side := c.stocks[i].side
		for j := range all[i] {
			g := &all[i][j]
			k := [2]string{g.Engine, g.Model}
			if single {
				k = [2]string{}
			}
			n, ok := at[k]
			if !ok {
				n = len(out)
				at[k] = n
				out = append(out, section{phase, k[0], k[1], make([][]*headline.Group, len(c.sides))})
			}
			out[n].groups[side] = append(out[n].groups[side], g)
		}
	}
	return out
}

// pair is the values of a row: of the base, and of a side.
type pair [2][]*headline.Value

// values finds a row in the groups of a section.
func (s *section) values(side int, def *headline.Row, of func(*headline.Group) []headline.Value) (p pair, any bool) {
	for n, at := range []int{0, side} {
		for _, g := range s.groups[at] {
			list := of(g)
			for i := range list {
				if list[i].ID == def.ID && list[i].Stat == def.Stat {
					p[n] = append(p[n], &list[i])
					any = true
				}
			}
		}
	}
	return p, any
}

// mean is that of the values of a side, NaN without one.
func (p *pair) mean(n int) float64 {
	sum, k := 0.0, 0.0
	for _, v := range p[n] {
		if v.Missing == "" {
			sum, k = sum+v.Value, k+1
		}
	}
	return sum / k
}

// line makes a row of the headline ready to be judged; false when neither side has it.
func (c *comparer) line(s *section, side int, def headline.Row) (Line, judge.Row, bool) {
	p, ok := s.values(side, &def, func(g *headline.Group) []headline.Value { return g.Values })
	if !ok {
		return Line{}, judge.Row{}, false
	}
	def.Margin = c.margin(&def)
	l := Line{Row: def, Phase: s.phase, Engine: s.engine, Model: s.model, Side: side, From: p.mean(0), To: p.mean(1)}
	row := judge.Row{Share: def.Share, Margin: def.Margin, Floor: def.Floor, Better: judge.Lower}
	switch def.Better {
	case catalog.HigherBetter:
		row.Better = judge.Higher
	case catalog.Neutral:
		row.Better = judge.Neutral
	}
	row.Base, row.Other = valuesOf(p[0]), valuesOf(p[1])
	if c.o.Noise != nil {
		row.History = c.o.Noise(s.phase, s.engine, s.model, def.Name())
	}
	l.single = len(row.Base) == 1 && len(row.Other) == 1
	row.Reason, l.Lacks = c.notJudged(&p, side)
	if row.Reason == "" {
		row.Reason = layouts(&p)
	}
	if l.single {
		c.alone(&p, &row, &l)
	}
	c.notes(&p, &row, &l)
	return l, row, true
}

// margin is the least change of a row worth a verdict. That of all rows is relative: a share has its own.
func (c *comparer) margin(def *headline.Row) float64 {
	if m, ok := c.o.Margins[def.Name()]; ok {
		return m
	}
	if m, ok := c.o.Margins[""]; ok && !def.Share {
		return m
	}
	return def.Margin
}

func valuesOf(list []*headline.Value) (out []float64) {
	for _, v := range list {
		if v.Missing == "" {
			out = append(out, v.Value)
		}
	}
	return out
}

// notJudged tells why a row has no verdict for want of values that may be judged, and whether a gate must not pass.
func (c *comparer) notJudged(p *pair, side int) (reason string, lacks bool) {
	names := [2]string{c.sides[0], c.sides[side]}
	for n, at := range []int{0, side} {
		has := 0
		for _, v := range p[n] {
			if v.Unsure != "" {
				return v.Unsure, true
			}
			if v.Missing == "" {
				has++
			} else {
				reason = cmp.Or(reason, fmt.Sprintf("%s: %s", names[n], v.Missing))
			}
		}
		if runs := len(c.result.Sides[at].Runs); has < runs {
			reason = cmp.Or(reason, fmt.Sprintf("%s has it in %d of %d runs", names[n], has, runs))
			lacks = lacks || n == 1 && len(p[0]) > 0
		}
	}
	return reason, lacks
}

// layouts tells why percentiles of different estimators or buckets cannot be judged: only where all provable intervals
// are apart is the difference not one of the buckets.
func layouts(p *pair) string {
	var first *headline.Value
	for _, v := range slices.Concat(p[0], p[1]) {
		if _, ok := v.Quantile(); !ok || v.Missing != "" {
			continue
		}
		if first == nil {
			first = v
		}
		if v.Estimator != first.Estimator {
			return fmt.Sprintf("percentiles of different estimators: %s and %s", cmp.Or(first.Estimator, "unknown"),
				cmp.Or(v.Estimator, "unknown"))
		}
		if v.Bounds != nil && first.Bounds != nil && !slices.Equal(v.Bounds, first.Bounds) &&
			!apart(p[0], p[1]) && !apart(p[1], p[0]) {
			return "the buckets differ: see the mean"
		}
	}
	return ""
}

func apart(a, b []*headline.Value) bool {
	for _, x := range a {
		for _, y := range b {
			if !(x.High < y.Low) {
				return false
			}
		}
	}
	return true
}

// fewestAbove is how many observations must lie above a percentile of a single run for it to be judged.
const fewestAbove = 10

// alone adds what single runs show of their noise.
func (c *comparer) alone(p *pair, row *judge.Row, l *Line) {
	var above [2]float64
	var bucket [2]int
	for n := range p {
		v := p[n][0]
		row.Events[n], row.Trials[n] = v.Events, v.Trials
		if q, ok := l.Quantile(); ok {
			row.Within[n] = judge.Quantile(v.Value, q, histograms(v))
			above[n] = v.Count * (1 - q)
			bucket[n], _ = slices.BinarySearch(v.Bounds, v.Value)
			continue
		}
		row.Within[n] = judge.Ratio(v.Num, v.Den)
	}
	if _, ok := l.Quantile(); !ok || row.Reason != "" || p[0][0].Count == 0 || p[1][0].Count == 0 {
		return
	}
	switch same := slices.Equal(p[0][0].Bounds, p[1][0].Bounds); {
	case min(above[0], above[1]) < fewestAbove:
		row.Reason = fmt.Sprintf("only %.1f and %.1f observations above", above[0], above[1])
	case same && bucket[0] == bucket[1]:
		row.Reason = "both lie in one bucket"
	}
}

func histograms(v *headline.Value) []judge.Histogram {
	out := make([]judge.Histogram, len(v.Cum))
	for i, cum := range v.Cum {
		out[i] = judge.Histogram{Bounds: v.Bounds, Cum: cum}
	}
	return out
}

// notes adds the caveats between what the sides measure: some of them forbid to call a change good or bad.
func (c *comparer) notes(p *pair, row *judge.Row, l *Line) {
	if len(p[0]) == 0 || len(p[1]) == 0 {
		return
	}
	a, b := p[0][0].Quantity, p[1][0].Quantity
	list := c.o.Catalog.Comparability(a, b)
	if a != b {
		list = slices.Concat(list, c.o.Catalog.Caveats(a), c.o.Catalog.Caveats(b))
	}
	for _, x := range catalog.SortCaveats(list) {
		l.Notes = append(l.Notes, x.Letter)
		c.result.Caveats = append(c.result.Caveats, x)
		if x.Forbids {
			row.Better = judge.Neutral
		}
	}
}

// beside adds the load and the context of a section.
func (c *comparer) beside(s *section, side int) {
	seen := map[string]headline.Row{}
	var names []string
	of := [2]func(*headline.Group) []headline.Value{
		func(g *headline.Group) []headline.Value { return g.Load },
		func(g *headline.Group) []headline.Value { return g.Context }}
	for kind := range of {
		clear(seen)
		names = names[:0]
		for _, groups := range s.groups {
			for _, g := range groups {
				for _, v := range of[kind](g) {
					if _, ok := seen[v.Name()]; !ok {
						seen[v.Name()] = v.Row
						names = append(names, v.Name())
					}
				}
			}
		}
		for _, name := range slices.Compact(names) {
			def := seen[name]
			p, _ := s.values(side, &def, of[kind])
			b := Beside{Row: def, Phase: s.phase, Engine: s.engine, Model: s.model, Side: side, From: p.mean(0), To: p.mean(1)}
			if kind == 1 {
				c.result.Context = append(c.result.Context, b)
				continue
			}
			if change := math.Abs(b.To/b.From - 1); change > leastLoadChange && !math.IsInf(change, 0) {
				c.result.LoadDiffers = append(c.result.LoadDiffers, LoadChange{b, beyondChance(&p)})
			}
		}
	}
}

// beyondChance reports whether the interval of 99 % of a load's change excludes none. Arrivals without slices are
// counts, as random as those of Poisson.
func beyondChance(p *pair) bool {
	row := judge.Row{Base: valuesOf(p[0]), Other: valuesOf(p[1])}
	if len(row.Base) == 1 && len(row.Other) == 1 {
		for n := range p {
			i := slices.IndexFunc(p[n], func(v *headline.Value) bool { return v.Missing == "" })
			v := p[n][i]
			row.Within[n] = judge.Ratio(v.Num, v.Den)
			if row.Within[n].DF == 0 && v.ID == "request_rate" && v.Count > 0 {
				row.Within[n] = judge.Estimate{Value: v.Value, Err: 1 / math.Sqrt(v.Count), DF: math.Inf(1)}
			}
		}
	}
	out := judge.Judge([]judge.Row{row}, 0.01)[0]
	return out.Evidence != judge.None && (out.Low > 0 || out.High < 0)
}

// checkRepeats refuses a run that is given twice for one side: it is no second one.
func checkRepeats(inputs []Input) error {
	type window struct{ start, end int64 }
	seen := map[[2]string][]window{}
	for i := range inputs {
		in := &inputs[i]
		k, w := [2]string{in.Side, in.Run.ID}, window{in.Run.Window.StartNS, in.Run.Window.EndNS}
		for _, x := range seen[k] {
			if in.Run.ID != "" && (w == x || w.start < x.end && x.start < w.end) {
				return fmt.Errorf("side %s has the same run twice: %s", in.Side, in.Path)
			}
		}
		seen[k] = append(seen[k], w)
	}
	return nil
}
