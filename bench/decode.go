package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// runDecode measures the steady state: P1, P2, P3.
func runDecode(ctx context.Context, c config, r *report) error {
	l, err := record(1, 64, simulate.Options{})
	if err != nil {
		return err
	}
	r.say("load: %v", l)
	decode, err := ours(l.bodies)
	if err != nil {
		return err
	}
	same, err := ours([][]byte{l.bodies[0], bytes.Clone(l.bodies[0])}) // two, or there is nothing to compare
	if err != nil {
		return err
	}
	cs := []candidate{
		timed("ours", decode), timed("unchanged body", same), timed("newline and floats", scanFloats(l.bodies)),
		timed("textparse and cache", textparseCache(l.bodies)), timed("expfmt", expfmtParse(l.bodies)),
	}
	peers, closePeers := parsers(ctx, c, l, r)
	defer closePeers()
	cs = append(cs, peers...)
	stats, err := inTurn(ctx, c.rounds, cs)
	if err != nil {
		return err
	}
	perSample := scale(stats, 1/float64(l.samples))
	decodeTable(r, cs, perSample, l)
	decodeRows(r, cs, perSample, allocations(decode), l)
	return nil
}

// parsers starts the peers of other languages and modules.
func parsers(ctx context.Context, c config, l *load, r *report) ([]candidate, func()) {
	var cs []candidate
	var running []*worker
	dir := filepath.Join(c.work, "bodies")
	if err := l.save(dir); err != nil {
		r.missing("parsers in processes of their own", err.Error())
		return nil, func() {}
	}
	for name, start := range map[string]func(context.Context, config, string) (*worker, error){
		"VictoriaMetrics": vmParser, "AIPerf": pythonParser,
	} {
		w, err := start(ctx, c, dir)
		if err != nil {
			r.missing(name+"'s parser", err.Error())
			continue
		}
		running = append(running, w)
		cs = append(cs, candidate{name: name, run: w.run})
	}
	return cs, func() {
		for _, w := range running {
			if err := w.close(); err != nil {
				r.say("end peer: %v", err)
			}
		}
	}
}

func scale(stats []stat, by float64) []stat {
	out := make([]stat, len(stats))
	for i, s := range stats {
		for _, v := range s.values {
			out[i].values = append(out[i].values, v*by)
		}
	}
	return out
}

func decodeTable(r *report, cs []candidate, stats []stat, l *load) {
	perBody := float64(l.bytes) / float64(len(l.bodies)) / float64(l.samples)
	var lines [][]string
	for i, c := range cs {
		lines = append(lines, []string{c.name, stats[i].String(), short(perBody / stats[i].median() * 1e3), short(stats[0].over(stats[i]).median())})
	}
	r.grid([]string{"way", "ns/sample", "MB/s", "ours/this"}, lines)
}

func decodeRows(r *report, cs []candidate, stats []stat, allocs float64, l *load) {
	at := map[string]stat{}
	for i, c := range cs {
		at[c.name] = stats[i]
	}
	judge := func(goal, peer string, must, stretch float64) {
		p, ok := at[peer]
		if !ok {
			return
		}
		r.add(row{goal: goal, what: "decode, ours / " + peer, unit: "ns/sample", ours: at["ours"], peer: p, peerName: peer,
			value: at["ours"].over(p).median(), must: must, stretch: stretch})
	}
	judge("P1", "textparse and cache", 1.0/8, 1.0/12)
	judge("P1", "newline and floats", 0, 1.2)
	r.add(row{goal: "P1", what: "allocations per body", unit: "", ours: one(allocs), value: allocs, must: 0.01})
	speed := float64(l.bytes) / float64(len(l.bodies)) / float64(l.samples) / at["unchanged body"].median()
	r.add(row{speed: true, goal: "P1", what: "unchanged body", unit: "GB/s", ours: one(speed), value: speed, must: 5, atLeast: true})
	judge("P2", "VictoriaMetrics", 1.0/3, 1.0/4)
	judge("P3", "AIPerf", 1.0/150, 1.0/500)
}

// allocations returns the allocations of one unit in steady state.
func allocations(unit func() error) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const n = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if err := unit(); err != nil {
			return -1
		}
	}
	runtime.ReadMemStats(&after)
	return float64(int64((after.Mallocs-before.Mallocs)/n*100)) / 100
}

// runLearn measures a first body and one with a new line: P4.
func runLearn(ctx context.Context, c config, r *report) error {
	l, err := record(1, 64, simulate.Options{})
	if err != nil {
		return err
	}
	r.say("load: %v", l)
	rg := newRing(l.bodies)
	first := timed("first body", func() error {
		d, err := scrape.NewDecoder(scrape.Options{})
		if err != nil {
			return err
		}
		return decodeOne(d, rg.next())
	})
	cs := []candidate{first, {name: "changed body", run: relearn(l)}, timed("textparse and labels", textparseLabels(l.bodies))}
	stats, err := inTurn(ctx, c.rounds, cs)
	if err != nil {
		return err
	}
	stats = scale(stats, 1/float64(l.samples))
	for i, what := range []string{"first body", "body with one line more or less"} {
		r.add(row{goal: "P4", what: what, unit: "ns/sample", ours: stats[i], peer: stats[2], peerName: "textparse and labels",
			value: stats[i].over(stats[2]).median(), must: 2, stretch: 1.3})
	}
	return nil
}

func decodeOne(d *scrape.Decoder, b []byte) error {
	var s metric.Snapshot
	d.Decode(&s, scrape.Body{Bytes: b, ContentType: contentType})
	if s.Outcome != metric.OK {
		return errors.New("decode body: " + s.Err)
	}
	return nil
}

// relearn decodes bodies whose layout changes each time, in a line in the middle.
func relearn(l *load) func(n int) (time.Duration, error) {
	var bodies [][]byte
	for i, b := range l.bodies {
		if i%2 == 1 {
			mid := len(b) / 2
			mid += strings.IndexByte(string(b[mid:]), '\n') + 1
			b = append(append(append([]byte{}, b[:mid]...), "scrapestat_bench_extra 1\n"...), b[mid:]...)
		}
		bodies = append(bodies, b)
	}
	d, err := scrape.NewDecoder(scrape.Options{})
	at := 0
	return func(n int) (time.Duration, error) {
		if err != nil {
			return 0, err
		}
		start := processorTime()
		for range n {
			if err := decodeOne(d, bodies[at%len(bodies)]); err != nil {
				return 0, err
			}
			at++
		}
		return processorTime() - start, nil
	}
}
