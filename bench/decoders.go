package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// ring hands out bodies there and back again, so that each is a neighbour of the
// one before and counters never fall by more than one step.
type ring struct {
	bodies   [][]byte
	at, step int
}

func newRing(bodies [][]byte) *ring { return &ring{bodies: bodies, step: 1} }

func (r *ring) next() []byte {
	b := r.bodies[r.at]
	if len(r.bodies) == 1 {
		return b
	}
	if r.at+r.step < 0 || r.at+r.step >= len(r.bodies) {
		r.step = -r.step
	}
	r.at += r.step
	return b
}

// ours decodes with one decoder, in steady state. The bodies are handed over
// without a copy: the decoder does not write to them.
func ours(bodies [][]byte) (func() error, error) {
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		return nil, err
	}
	r := newRing(bodies)
	var s metric.Snapshot
	return func() error {
		s = metric.Snapshot{}
		d.Decode(&s, scrape.Body{Bytes: r.next(), ContentType: contentType})
		if s.Outcome != metric.OK {
			return fmt.Errorf("decode body: %v %s", s.Outcome, s.Err)
		}
		return nil
	}, nil
}

// textparseCache is what Prometheus does: the parser, and a map from the bytes
// of the series to where its value goes.
func textparseCache(bodies [][]byte) func() error {
	r := newRing(bodies)
	symbols := labels.NewSymbolTable()
	cache := map[string]int{}
	var values []float64
	return func() error {
		p := textparse.NewPromParser(r.next(), symbols, false)
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

// textparseLabels reads the labels of every sample, as a first scrape must.
func textparseLabels(bodies [][]byte) func() error {
	r := newRing(bodies)
	var sum float64
	return func() error {
		p := textparse.NewPromParser(r.next(), labels.NewSymbolTable(), false)
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if entry == textparse.EntrySeries {
				var l labels.Labels
				_, _, v := p.Series()
				p.Labels(&l)
				sum += v
			}
		}
	}
}

// expfmtParse is the parser of prometheus/common.
func expfmtParse(bodies [][]byte) func() error {
	r := newRing(bodies)
	return func() error {
		p := expfmt.NewTextParser(model.UTF8Validation)
		_, err := p.TextToMetricFamilies(bytes.NewReader(r.next()))
		return err
	}
}

// scanFloats is the least that a reader of all values does: find each newline
// and parse the number before it.
func scanFloats(bodies [][]byte) func() error {
	r := newRing(bodies)
	var sum float64
	return func() error {
		for b := r.next(); len(b) > 0; {
			end := bytes.IndexByte(b, '\n')
			line := b[:end]
			b = b[end+1:]
			if len(line) == 0 || line[0] == '#' {
				continue
			}
			v, err := number(line[bytes.LastIndexByte(line, ' ')+1:])
			if err != nil {
				return err
			}
			sum += v
		}
		return nil
	}
}

// number parses short decimals by hand and leaves the rest to strconv.
func number(b []byte) (float64, error) {
	var mantissa uint64
	digits, after, point := 0, 0, false
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			mantissa = mantissa*10 + uint64(c-'0')
			digits++
			if point {
				after++
			}
		case c == '.' && !point:
			point = true
		default:
			return strconv.ParseFloat(string(b), 64)
		}
	}
	if digits == 0 || digits > 15 || after > 15 {
		return strconv.ParseFloat(string(b), 64)
	}
	return float64(mantissa) / math.Pow10(after), nil
}
