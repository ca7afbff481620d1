package html

import (
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/events"
)

// requests draws what the clients saw, on the stretches of the server's series: requests in flight, issued, and their
// times.
func (p *page) requests(g *gallery) {
	frame := g.grids[0]
	if frame.N == 0 {
		return
	}
	flight := &chart{key: famKey{name: "requests in flight"}, unit: "requests", group: groupClients,
		help: "Requests that were issued and not yet complete, as the clients saw it: mean over each stretch."}
	issued := &chart{key: famKey{name: "requests issued"}, unit: "/s", group: groupClients,
		help: "Requests issued per second."}
	first := &chart{key: famKey{name: "time to first token"}, unit: "seconds", group: groupClients, bands: true,
		help: "From issue to the first chunk with content, by time of issue: median, lowest and highest of each stretch."}
	whole := &chart{key: famKey{name: "request latency"}, unit: "seconds", group: groupClients, bands: true,
		help: "From issue to completion, by time of issue: median, lowest and highest of each stretch."}
	for run, in := range p.ins {
		if len(in.Requests) == 0 {
			continue
		}
		name := "clients"
		if p.Many {
			name = p.runName(run) + " clients"
		}
		c := clientSeries(in.Requests, zeroOf(in), frame)
		flight.lines = append(flight.lines, line{run: run, target: -1, label: name, avg: c.flight})
		issued.lines = append(issued.lines, line{run: run, target: -1, label: name, avg: c.issued})
		first.lines = append(first.lines, c.line(run, name, c.first))
		whole.lines = append(whole.lines, c.line(run, name, c.whole))
	}
	for _, c := range []*chart{flight, issued, first, whole} {
		if len(c.lines) > 0 {
			g.charts = append(g.charts, c)
		}
	}
}

// clients is the requests of a run by stretch.
type clients struct {
	flight, issued []float32
	first, whole   [][]float64 // seconds, by stretch of issue
}

func clientSeries(rs []events.Request, zero int64, frame grid) *clients {
	n := frame.N
	c := &clients{flight: make([]float32, n), issued: make([]float32, n), first: make([][]float64, n),
		whole: make([][]float64, n)}
	at := func(ns int64) float64 { return (float64(ns-zero)/1e9 - frame.Start) / frame.Width } // in stretches
	for i := range rs {
		r := &rs[i]
		from := at(r.IssuedNS)
		j := int(math.Floor(from))
		if r.IssuedNS == 0 || j < 0 || j >= n {
			continue
		}
		c.issued[j] += float32(1 / frame.Width)
		if ns, ok := r.TTFT(); ok {
			c.first[j] = append(c.first[j], ns/1e9)
		}
		if ns, ok := r.Latency(); ok {
			c.whole[j] = append(c.whole[j], ns/1e9)
		}
		to := at(r.CompleteNS)
		if r.CompleteNS == 0 {
			to = float64(n) // never ended
		}
		for ; j < n && float64(j) < to; j++ {
			c.flight[j] += float32(min(to, float64(j+1)) - max(from, float64(j)))
		}
	}
	return c
}

// line is the median of times with their extremes.
func (c *clients) line(run int, name string, times [][]float64) line {
	l := line{run: run, target: -1, label: name, avg: blank(len(times)), lo: blank(len(times)), hi: blank(len(times))}
	for i, ts := range times {
		if len(ts) == 0 {
			continue
		}
		slices.Sort(ts)
		l.avg[i], l.lo[i], l.hi[i] = float32(ts[len(ts)/2]), float32(ts[0]), float32(ts[len(ts)-1])
	}
	return l
}
