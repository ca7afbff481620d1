package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// way is a way to go through a body, and the limit of ours by it.
type way struct {
	name  string
	unit  func() error
	limit float64
}

// runDecode measures decoding in steady state.
func runDecode(_ context.Context, b *bench) error {
	p, err := simulatePolls(64, 64)
	if err != nil {
		return err
	}
	samples, body := p.samples/len(p.bodies), p.bodies[0]
	b.say("load: bodies of %.1f KB, %d samples each", float64(len(body))/1e3, samples)
	if err := b.compare("decode, 68 % of the values new, ns/sample", 1/float64(samples), []way{
		{"ours", ours(p.bodies), 0},
		{"newlines and strconv", scanFloats(p.bodies), 0.8},
		{"textparse and cache", textparseCache(p.bodies), 1.0 / 8},
	}); err != nil {
		return err
	}
	to := make([]byte, len(body))
	return b.compare("decode, unchanged body, us", 1e-3, []way{
		{"ours", ours([][]byte{body, bytes.Clone(body)}), 0}, // two, or there is nothing to compare
		{"memory copy", func() error { copy(to, body); return nil }, 10},
	})
}

// compare adds rows of the first way, ours, against each other one.
func (b *bench) compare(what string, scale float64, ways []way) error {
	var turns []turn
	for _, w := range ways {
		turn, err := timed(w.unit)
		if err != nil {
			return fmt.Errorf("run %s: %w", w.name, err)
		}
		turns = append(turns, turn)
	}
	of, err := b.turns(turns...)
	if err != nil {
		return err
	}
	for i, w := range ways[1:] {
		b.add(what, of[0].times(scale), of[i+1].times(scale), w.name, w.limit)
	}
	return nil
}

// thereAndBack returns a function that hands out bodies so that each is a neighbour of
// the one before, and counters never fall by more than one step.
func thereAndBack(bodies [][]byte) func() []byte {
	at, step := 0, 1
	return func() []byte {
		body := bodies[at]
		if at+step < 0 || at+step == len(bodies) {
			step = -step
		}
		at += step
		return body
	}
}

// ours decodes with one decoder. The bodies are handed over without a copy: the decoder does not write to them.
func ours(bodies [][]byte) func() error {
	d, err := scrape.NewDecoder(scrape.Options{})
	next := thereAndBack(bodies)
	var s metric.Snapshot
	return func() error {
		if err != nil {
			return err
		}
		s = metric.Snapshot{}
		d.Decode(&s, scrape.Body{Bytes: next(), ContentType: contentType})
		if s.Outcome != metric.OK {
			return fmt.Errorf("decode body: %v %s", s.Outcome, s.Err)
		}
		return nil
	}
}

// textparseCache is what Prometheus does: the parser, and a map from the bytes of the series to where its value goes.
func textparseCache(bodies [][]byte) func() error {
	next := thereAndBack(bodies)
	symbols := labels.NewSymbolTable()
	cache := map[string]int{}
	var values []float64
	return func() error {
		p := textparse.NewPromParser(next(), symbols, false)
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if entry != textparse.EntrySeries {
				continue
			}
			series, _, v := p.Series()
			i, ok := cache[string(series)]
			if !ok {
				i = len(values)
				cache[string(series)] = i
				values = append(values, 0)
			}
			values[i] = v
		}
	}
}

// scanFloats is the least that a reader of all values does: find each newline and parse the number before it.
func scanFloats(bodies [][]byte) func() error {
	next := thereAndBack(bodies)
	var sum float64
	return func() error {
		for body := next(); len(body) > 0; {
			end := bytes.IndexByte(body, '\n')
			line := body[:end]
			body = body[end+1:]
			if len(line) == 0 || line[0] == '#' {
				continue
			}
			v, err := strconv.ParseFloat(string(line[bytes.LastIndexByte(line, ' ')+1:]), 64)
			if err != nil {
				return err
			}
			sum += v
		}
		return nil
	}
}
