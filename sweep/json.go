package sweep

import (
	"io"
	"maps"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// WriteJSON writes sweeps as a JSON document of the schema scrapestat.sweep. The same sweeps give the same bytes.
func WriteJSON(w io.Writer, sweeps []*Sweep) error {
	return texttab.NewObject("schema", "scrapestat.sweep", "schema_version", 1,
		"sweeps", texttab.NewList(sweeps, func(s **Sweep) texttab.Object { return (*s).json() }),
		"ratios", texttab.NewList(Ratios(sweeps), func(r *Ratio) texttab.Object {
			return texttab.NewObject("sweep", r.Sweep, "base", r.Base, "load", r.Load, "row", r.Row, "ratio", r.Ratio,
				"interpolated", r.Interpolated)
		}),
		"crossings", texttab.NewList(Crossings(sweeps), func(c *Crossing) texttab.Object {
			return texttab.NewObject("sweep", c.Sweep, "base", c.Base, "row", c.Row, "low", c.Low, "high", c.High)
		})).WriteJSON(w)
}

func (s *Sweep) json() texttab.Object {
	c := &s.Capacity
	var knee any
	if s.Knee != nil && len(s.Points) > 1 {
		knee = texttab.NewObject("load", s.Knee.Load, "edge", s.Knee.Edge)
	}
	table := s.Table(false)
	objects := table.Objects()
	at := map[*Point]int{}
	for i := range s.Points {
		at[&s.Points[i]] = i
	}
	o := texttab.NewObject("name", s.Name).Known("engine", s.Engine).With("unit", s.Unit,
		"points", texttab.NewList(s.Points, func(p *Point) texttab.Object { return s.point(p, objects[at[p]]) }),
		"capacity", texttab.NewObject("status", c.Status, "x", c.X, "output_tok_s", c.TokS, "low", c.Low, "high", c.High,
			"falling", c.Falling, "doubted", append([]float64{}, c.Doubted...), "repeats", c.Repeats),
		"knee", knee,
		"slo", texttab.NewList(s.SLO, (*Bracket).json), "limit", s.Limit, "limit_at", s.LimitAt)
	return o.Known("gpus", s.GPUs, "cost_per_hour", s.PerHour, "currency", s.Currency, "notes", s.Notes)
}

// point is a row of the table with what only programs read.
func (s *Sweep) point(p *Point, row texttab.Object) texttab.Object {
	o := texttab.NewObject("label", p.Label, "run", p.Run, "start_ns", p.StartNS, "end_ns", p.EndNS, "seconds", p.Seconds,
		"measured", p.Measured, "accumulation", p.Accumulation, "accumulation_error", p.Err, "queue_share", p.QueueShare,
		"refused_share", p.Refused).Known("why", p.Why, "missing", p.Missing, "doubt", p.Doubt)
	o = append(o, row...)
	bounds, why := texttab.Object{}, texttab.Object{}
	for _, name := range slices.Sorted(maps.Keys(p.Values)) {
		v := p.Value(name)
		if v.Why != "" {
			why = why.With(name, v.Why)
		} else if v.Low != v.Value || v.High != v.Value {
			bounds = bounds.With(name, [2]*float64{finite(v.Low), finite(v.High)})
		}
	}
	o = o.With("bounds", bounds, "absent", why, "headroom", s.headroom(p))
	if len(p.Repeats) > 1 {
		o = o.With("repeats", texttab.NewList(p.Repeats, func(r *Point) texttab.Object {
			return texttab.NewObject("run", r.Run, "label", r.Label, "start_ns", r.StartNS, "end_ns", r.EndNS, "x", r.X,
				"state", string(r.State)).Known("why", r.Why)
		}))
	}
	return o
}

// finite is a number that JSON has, nil for another one.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// headroom is what a steady point left of each resource: of the places only by what the sweep ever filled.
func (s *Sweep) headroom(p *Point) any {
	if p.State != Stable {
		return nil
	}
	o := texttab.Object{}
	if kv := p.Value("kv_peak"); kv.known() {
		o = o.With("kv", 1-kv.Value)
	}
	most := math.NaN()
	for i := range s.Points {
		if v := peak(s.Points[i].Running); !(v <= most) {
			most = v
		}
	}
	if most > 0 {
		o = o.With("slots", 1-peak(p.Running)/most)
	}
	return o
}

func peak(list []float64) float64 {
	most := math.NaN()
	for _, v := range list {
		if !math.IsNaN(v) && !(v <= most) {
			most = v
		}
	}
	return most
}

func (b *Bracket) json() texttab.Object {
	return texttab.NewObject("slo", b.Text, "row", b.Row, "limit", b.Limit, "status", b.Status, "low", b.Low,
		"high", b.High, "interpolated", b.Load, "moved", b.Moved, "undecided", append([]float64{}, b.Undecided...),
		"without", append([]string{}, b.Without...), "depends_on_duration", b.Duration, "repeats", b.Repeats).
		Known("range_low", b.From, "range_high", b.To)
}
