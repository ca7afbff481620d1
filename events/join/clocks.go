package join

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"path"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/align"
	"github.com/scrapestat/scrapestat/metric"
)

// ClockOptions say what is known of the clocks of servers.
type ClockOptions struct {
	// Drift is the most that clocks drift apart, in seconds per second.
	Drift float64
	// DropConflicting leaves out requests that contradict the others, up to 1 % of all.
	DropConflicting bool
	// SameHost states that servers have the clock of the clients.
	SameHost bool
	// BootID is the last start of the machine that recorded, BootedNS when that was.
	BootID   string
	BootedNS int64
}

// Clock is the difference of the clients' clock and that of some sources, which bounds of single requests give.
type Clock struct {
	Sources  []string `json:"sources"`
	Kind     string   `json:"clock"`    // unix, monotonic or none
	Requests int      `json:"requests"` // that bound it
	// LoS and HiS bound clients - server in the middle of the run, Middle is between them; nil where it is not known.
	LoS    *float64 `json:"offset_lo_s"`
	HiS    *float64 `json:"offset_hi_s"`
	Middle *float64 `json:"offset_s"`
	// How is "facts", "same host", "same boot"; "" where nothing places the server's instants.
	How string `json:"how,omitempty"`
	// Drift are the bounds of the rate, in seconds per second, where a constant difference is excluded.
	Drift   *[2]float64 `json:"drift,omitempty"`
	Dropped []string    `json:"dropped,omitempty"` // ids of requests that were left out
	Refused *Refusal    `json:"refused,omitempty"`

	exact  int64 // theta where it is known exactly
	solved *align.Clock
}

// Refusal is why two clocks were not brought together.
type Refusal struct {
	Text   string   `json:"text"`
	AtNS   int64    `json:"at_ns"`
	Gap    float64  `json:"gap_s"`
	IDs    []string `json:"requests"`    // the two that contradict each other
	Others int      `json:"conflicting"` // requests that miss what most have in common
	Of     int      `json:"of"`
}

// At returns the bounds of clients - server at an instant of the clients; ok is false where it is not known.
func (c *Clock) At(ns int64) (lo, hi int64, ok bool) {
	switch {
	case c == nil || c.How == "":
		return 0, 0, false
	case c.How != "facts":
		return c.exact, c.exact, true
	}
	lo, hi = c.solved.At(ns)
	return lo, hi, true
}

// clocks brings the clocks of all sources together with that of the clients: those of one kind, boot and folder have
// one.
func (m *matches) clocks(o ClockOptions) ([]*Clock, error) {
	var list []*Clock
	m.clockOf = map[int]*Clock{}
	at := map[string]*Clock{}
	for _, id := range slices.Sorted(mapKeys(m.sources)) {
		s := m.sources[id]
		name := fmt.Sprint(s.Kind, "\x00", s.Clock, "\x00", s.BootID, "\x00", path.Dir(s.Name))
		if at[name] == nil {
			at[name] = &Clock{Kind: s.Clock}
			list = append(list, at[name])
		}
		at[name].Sources = append(at[name].Sources, s.Name)
		m.clockOf[id] = at[name]
	}
	for _, c := range list {
		if err := m.clock(c, o); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func mapKeys(all map[int]metric.ServerSource) iter.Seq[int] {
	return func(yield func(int) bool) {
		for id := range all {
			if !yield(id) {
				return
			}
		}
	}
}

func (m *matches) clock(c *Clock, o ClockOptions) error {
	solved, bad := align.Solve(m.facts(c), align.Options{Drift: o.Drift, DropConflicting: o.DropConflicting})
	boot := o.BootID != "" && c.Kind == metric.ServerMonotonic && m.boot(c) == o.BootID
	if bad != nil {
		c.refuse(m, bad)
	}
	if solved != nil {
		c.solve(m, solved)
	}
	switch {
	case boot:
		c.How, c.exact = "same boot", o.BootedNS
	case o.SameHost && c.Kind == metric.ServerUnix:
		c.How, c.exact = "same host", 0
	}
	if c.exact != 0 || c.How == "same host" {
		if c.Refused != nil {
			return fmt.Errorf("the clock of %s cannot be that of the clients: %s", c.Sources[0], c.Refused.Text)
		}
		if solved != nil && !solved.Allows(c.exact) {
			return fmt.Errorf("the clock of %s cannot be that of the clients (%s): what the requests say excludes it, client = "+
				"server %+.6f .. %+.6f s; leave out --same-host", c.Sources[0], c.How, *c.LoS, *c.HiS)
		}
		v := float64(c.exact) / 1e9
		c.LoS, c.HiS, c.Middle = &v, &v, &v
	}
	return nil
}

func (m *matches) boot(c *Clock) string {
	for id, of := range m.clockOf {
		if of == c {
			return m.sources[id].BootID
		}
	}
	return ""
}

// facts are what the requests of a clock say, by the number of the client.
func (m *matches) facts(c *Clock) iter.Seq2[int, align.Pair] {
	return func(yield func(int, align.Pair) bool) {
		for i := range m.of {
			s, q := &m.of[i], &m.clients[i]
			if s.parts == 0 || m.clockOf[int(s.source)] != c || s.arrival == 0 || m.contradicts(i) {
				continue
			}
			complete := q.CompleteNS
			if q.Status != events.Succeeded {
				complete = 0
			}
			if !yield(i, align.NewPair(cmp.Or(q.UpstreamNS, q.IssuedNS), q.FirstNS, complete, s.arrival, s.first, s.finish,
				int64(m.sources[int(s.source)].Resolution))) {
				return
			}
		}
	}
}

func (c *Clock) solve(m *matches, solved *align.Clock) {
	c.solved, c.Requests, c.How = solved, solved.Pairs, "facts"
	theta, half := solved.Middle()
	v := [3]float64{float64(theta-half) / 1e9, float64(theta) / 1e9, float64(theta+half) / 1e9}
	c.LoS, c.Middle, c.HiS = &v[0], &v[1], &v[2]
	if low, high, ok := solved.Drift(); ok {
		c.Drift = &[2]float64{low, high}
	}
	for _, i := range solved.Dropped {
		c.Dropped = append(c.Dropped, m.clients[i].ID)
	}
}

func (c *Clock) refuse(m *matches, bad *align.Conflict) {
	c.Requests = bad.Pairs
	c.Refused = &Refusal{AtNS: bad.AtNS, Gap: float64(bad.GapNS) / 1e9, Others: bad.Conflicting, Of: bad.Pairs,
		IDs: []string{m.clients[bad.Lower].ID, m.clients[bad.Upper].ID}}
	c.Refused.Text = fmt.Sprintf("at %s the requests %s and %s contradict each other by %.3f ms: no clock that drifts by "+
		"no more than is allowed fits both (a step of a clock, more drift: --max-drift, or wrong pairs); %d of %d requests "+
		"miss what most have in common", time.Unix(0, bad.AtNS).UTC().Format("15:04:05.000"), m.clients[bad.Lower].ID,
		m.clients[bad.Upper].ID, float64(bad.GapNS)/1e6, bad.Conflicting, bad.Pairs)
	if share := float64(bad.Conflicting) / math.Max(float64(bad.Pairs), 1); bad.Conflicting > 0 && share <= 0.01 {
		c.Refused.Text += "; --drop-conflicting leaves them out"
	}
}
