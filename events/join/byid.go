package join

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// Matched is the requests that a server logged by name and clients know by the same name. Means are over those that
// both sides have.
type Matched struct {
	Family   string   `json:"family"`
	Requests int      `json:"requests"`
	Logged   int      `json:"logged"`      // by the server, with or without a client
	Server   *float64 `json:"server_mean"` // in the unit of the family
	Unit     string   `json:"unit,omitempty"`
	Client   *float64 `json:"client_mean_s"` // end-to-end latency
	// Overhead is the mean of the differences; nil when the unit is no time.
	Overhead *float64 `json:"overhead_s"`
}

// units of time as families name them, in seconds.
var units = map[string]float64{"s": 1, "seconds": 1, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6,
	"microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9}

// maxMatched bounds what is remembered of single requests.
const maxMatched = 5_000_000

// Observe fills in Result.Matched from the observations of a recording that name their requests, as the logs of
// TorchServe do. A request is known by its x-request-id and by its own name.
func (r *Result) Observe(ctx context.Context, s *events.Session, rec summary.Recording) error {
	known := map[string]float64{}
	for i := range s.Requests {
		q := &s.Requests[i]
		_, v, ok := completion(q)
		if !ok || len(known) >= maxMatched {
			continue
		}
		known[q.ID] = v
		if q.RequestID != "" {
			known[q.RequestID] = v
		}
	}
	sums := map[string]*tally{}
	for target := range rec.Targets() {
		var dict metric.Schema
		for snap, err := range rec.Snapshots(ctx, target) {
			if err == nil {
				err = dict.Extend(snap)
			}
			if err != nil {
				return fmt.Errorf("join requests by name: %w", err)
			}
			for _, o := range snap.Observations {
				if len(o.Requests) == 0 || o.Series < 0 || o.Series >= len(dict.Series) ||
					o.AtNS < r.FromNS || o.AtNS > r.ToNS {
					continue
				}
				f := &dict.Families[dict.Series[o.Series].Family]
				t := sums[f.Name]
				if t == nil {
					t = &tally{unit: unitOf(f.Name, f.Unit)}
					sums[f.Name] = t
				}
				t.add(o.Requests, o.Value, known)
			}
		}
	}
	for name, t := range sums {
		r.Matched = append(r.Matched, t.result(name))
	}
	slices.SortFunc(r.Matched, func(a, b Matched) int { return cmp.Compare(a.Family, b.Family) })
	return nil
}

// tally sums up one family.
type tally struct {
	unit                   string
	logged, n              int
	server, client, differ float64
}

func (t *tally) add(requests []string, v float64, known map[string]float64) {
	for _, id := range requests {
		t.logged++
		c, ok := known[id]
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		t.n++
		t.server += v
		t.client += c
		t.differ += c - v*units[t.unit]
	}
}

func (t *tally) result(family string) Matched {
	n := float64(t.n)
	m := Matched{Family: family, Requests: t.n, Logged: t.logged, Unit: t.unit, Server: quotient(t.server, n),
		Client: quotient(t.client, n)}
	if t.unit != "" {
		m.Overhead = quotient(t.differ, n)
	}
	return m
}

// unitOf is the unit of time of a family, by what it says or by its name; "" when it is none.
func unitOf(name, unit string) string {
	u := strings.ToLower(unit)
	if units[u] != 0 {
		return u
	}
	if i := strings.LastIndexAny(name, "_:"); i >= 0 && units[name[i+1:]] != 0 {
		return name[i+1:]
	}
	return ""
}
