package html

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// chartJSON is a chart as the page's script reads it. Numbers that name an array count the arrays of the payload from
// 0.
type chartJSON struct {
	Name   string     `json:"name"`
	Title  string     `json:"title,omitempty"` // of the word, where the name is that of a family
	Word   string     `json:"word,omitempty"`
	Type   string     `json:"type"`
	Unit   string     `json:"unit"`
	Help   string     `json:"help"`
	Group  string     `json:"group"`
	Grid   int        `json:"grid"`
	Rate   bool       `json:"rate,omitempty"`
	Lines  []lineJSON `json:"lines,omitempty"`
	Heats  []heatJSON `json:"heats,omitempty"`
	Left   int        `json:"left,omitempty"`
	First  bool       `json:"first,omitempty"` // it stands before all others
	Family int        `json:"family"`          // row of the table of families, or -1
}

type lineJSON struct {
	Run    int    `json:"run"`
	Target int    `json:"target"`
	Label  string `json:"label"`
	Avg    int    `json:"avg"`
	Lo     int    `json:"lo"` // -1 when it is Avg
	Hi     int    `json:"hi"`
}

type heatJSON struct {
	Run   int    `json:"run"`
	Label string `json:"label"`
	// Lowest is the lower bound of the first bucket that is sent, Bounds the upper ones, as text for what is not finite.
	Lowest any   `json:"lowest"`
	Bounds []any `json:"bounds"`
	Counts []int `json:"counts"` // by bucket; -1 is one that gained nothing
	Known  int   `json:"known"`  // the array that tells where nothing is known
}

// payload is arrays of numbers as they travel in the page: as float32 of 12 significant bits, the bytes of each array
// put together by their place, deflated, in base64. It is for drawing only.
type payload struct {
	buf  bytes.Buffer
	w    *flate.Writer
	lens []int // of the arrays
	raw  []byte
}

func newPayload() (*payload, error) {
	p := &payload{}
	var err error
	p.w, err = flate.NewWriter(&p.buf, flate.BestCompression)
	return p, err
}

// add appends an array and returns its number.
func (p *payload) add(v []float32) (int, error) {
	n := len(v)
	if cap(p.raw) < 4*n {
		p.raw = make([]byte, 4*n)
	}
	raw := p.raw[:4*n]
	for i, f := range v {
		b := math.Float32bits(f)
		if f != f {
			b = 0x7fc00000
		} else {
			b = (b + 1<<10) &^ (1<<11 - 1) // rounds; infinities are not drawn
		}
		raw[i], raw[n+i], raw[2*n+i], raw[3*n+i] = byte(b>>24), byte(b>>16), byte(b>>8), byte(b)
	}
	if _, err := p.w.Write(raw); err != nil {
		return 0, fmt.Errorf("pack series: %w", err)
	}
	p.lens = append(p.lens, n)
	return len(p.lens) - 1, nil
}

// size is how many bytes the page has for what was added so far.
func (p *payload) size() (int, error) {
	if err := p.w.Flush(); err != nil {
		return 0, fmt.Errorf("pack series: %w", err)
	}
	return base64.StdEncoding.EncodedLen(p.buf.Len()), nil
}

// text ends the payload.
func (p *payload) text() (string, error) {
	if err := p.w.Close(); err != nil {
		return "", fmt.Errorf("pack series: %w", err)
	}
	return base64.StdEncoding.EncodeToString(p.buf.Bytes()), nil
}

// deflated packs a value as JSON for the page.
func deflated(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("pack page data: %w", err)
	}
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestCompression)
	if err != nil {
		return "", fmt.Errorf("pack page data: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return "", fmt.Errorf("pack page data: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("pack page data: %w", err)
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes()), nil
}

// pack adds a chart.
func (p *payload) pack(c *chart) (chartJSON, error) {
	out := chartJSON{Name: c.key.name, Title: c.title, Word: c.word, Type: c.key.typ.String(), Unit: c.unit, Help: c.help,
		Group: c.group, Grid: c.grid, Left: c.left, Rate: c.rated(), Family: -1}
	for _, l := range c.lines {
		j := lineJSON{Run: l.run, Target: l.target, Label: l.label, Lo: -1, Hi: -1}
		var err error
		if j.Avg, err = p.add(l.avg); err != nil {
			return out, err
		}
		if c.bands && l.lo != nil {
			if j.Lo, err = p.add(l.lo); err != nil {
				return out, err
			}
			if j.Hi, err = p.add(l.hi); err != nil {
				return out, err
			}
		}
		out.Lines = append(out.Lines, j)
	}
	for i := range c.heats {
		j, err := p.heat(&c.heats[i])
		if err != nil {
			return out, err
		}
		out.Heats = append(out.Heats, j)
	}
	return out, nil
}

// heat adds a histogram without the empty buckets at both ends.
func (p *payload) heat(h *heat) (heatJSON, error) {
	out := heatJSON{Run: h.run, Label: h.label}
	full := func(b int) bool { return slices.ContainsFunc(h.counts[b], func(v float32) bool { return v > 0 }) }
	from, to := 0, len(h.counts)
	for from < to-1 && !full(from) {
		from++
	}
	for to > from+1 && !full(to-1) {
		to--
	}
	out.Lowest = number(0)
	if from > 0 {
		out.Lowest = number(h.bounds[from-1])
	} else if h.bounds[0] <= 0 {
		out.Lowest = number(math.Inf(-1))
	}
	known := make([]float32, len(h.counts[0]))
	for b := from; b < to; b++ {
		out.Bounds = append(out.Bounds, number(h.bounds[b]))
		counts := make([]float32, len(h.counts[b]))
		for i, v := range h.counts[b] {
			if v == v {
				known[i], counts[i] = 1, v
			}
		}
		n := -1
		if full(b) {
			var err error
			if n, err = p.add(counts); err != nil {
				return out, err
			}
		}
		out.Counts = append(out.Counts, n)
	}
	var err error
	out.Known, err = p.add(known)
	return out, err
}

// number is a value for JSON, text when it is not finite.
func number(v float64) any {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return nil
	}
	return v
}
