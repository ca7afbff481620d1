package scrape_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// An oracle that shares no code with the decoder: the samples of a body as
// textparse alone reads them. Both sides are written in one form, in which the
// family of a series and its role no longer matter, only its name, its labels,
// its bucket or quantile, and its value.

const nameLabel = "__name__"

var indented = regexp.MustCompile(`(?m)^[ \t]`)

// anonymous is a sample in that form.
func anonymous(name string, pairs map[string]string, value float64) string {
	stem, last := name, ""
	for trimmed := true; trimmed; {
		trimmed = false
		for _, suffix := range []string{"_total", "_bucket", "_sum", "_count", "_created"} {
			if rest, ok := strings.CutSuffix(stem, suffix); ok {
				stem, trimmed = rest, true
				if last == "" && suffix != "_total" { // which the name of a counter may leave out
					last = suffix
				}
			}
		}
	}
	var texts []string
	for k, v := range pairs {
		if k == "le" || k == "quantile" {
			if f, err := strconv.ParseFloat(v, 64); err == nil {
				v = strconv.FormatFloat(f, 'g', -1, 64)
			}
			if v == "+Inf" { // as a bucket without le is
				continue
			}
		}
		if v != "" { // which is as if it were not there
			texts = append(texts, k+"="+strconv.Quote(v))
		}
	}
	slices.Sort(texts)
	bits := math.Float64bits(value)
	if value != value {
		bits = math.Float64bits(math.NaN())
	}
	return fmt.Sprintf("%s %s %v %x", stem, last, texts, bits)
}

// bare returns what the last poll held in that form.
func (c *consumer) bare() []string {
	var out []string
	suffixes := map[metric.Role]string{metric.RoleBucket: "_bucket", metric.RoleSum: "_sum",
		metric.RoleCount: "_count", metric.RoleCreated: "_created"}
	for slot, bits := range c.values {
		s := c.dict.Slots[slot]
		if s.Role == metric.RoleSampleTime {
			continue
		}
		pairs := map[string]string{}
		for name, value := range c.dict.Series[s.Series].Labels.All() {
			pairs[name] = value
		}
		switch s.Role {
		case metric.RoleBucket:
			pairs["le"] = s.Text
		case metric.RoleQuantile:
			pairs["quantile"] = s.Text
		}
		out = append(out, anonymous(c.dict.FamilyOf(s.Series).Name+suffixes[s.Role], pairs, math.Float64frombits(bits)))
	}
	slices.Sort(out)
	return out
}

// read returns what textparse reads; not ok when it refuses anything, or panics,
// as it does where it is fed some malformed bodies.
func read(b scrape.Body) (out []string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	// A NUL ends the body for it, and a blank before a name is part of the name.
	if bytes.IndexByte(b.Bytes, 0) >= 0 || indented.Match(b.Bytes) {
		return nil, false
	}
	var p textparse.Parser = textparse.NewPromParser(b.Bytes, labels.NewSymbolTable(), false)
	if b.ContentType == openMetrics {
		p = textparse.NewOpenMetricsParser(b.Bytes, labels.NewSymbolTable())
	}
	for {
		entry, err := p.Next()
		if err != nil {
			slices.Sort(out)
			return out, errors.Is(err, io.EOF)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := p.Series()
		var l labels.Labels
		p.Labels(&l)
		pairs := map[string]string{}
		l.Range(func(l labels.Label) {
			if l.Name != nameLabel {
				pairs[l.Name] = l.Value
			}
		})
		out = append(out, anonymous(l.Get(nameLabel), pairs, value))
	}
}

// agrees compares what was stored of a body with what textparse alone reads, where
// it reads all of it and nothing was dropped, and with what a decoder makes of it
// that has seen no body before. It reports whether textparse had a say.
func (c *consumer) agrees(t testing.TB, s *metric.Snapshot, b scrape.Body) bool {
	t.Helper()
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var alone metric.Snapshot
	var fresh consumer
	d.Decode(&alone, b)
	fresh.apply(t, &alone)
	if got, want := c.bare(), fresh.bare(); !slices.Equal(got, want) {
		t.Fatalf("body %q:\ngot            %q\nas first body  %q", b.Bytes, got, want)
	}
	want, ok := read(b)
	if !ok || s.Outcome != metric.OK || len(s.Drops) > 0 {
		return false
	}
	if got := c.bare(); !slices.Equal(got, want) {
		t.Fatalf("body %q:\ngot        %q\ntextparse  %q", b.Bytes, got, want)
	}
	return true
}
