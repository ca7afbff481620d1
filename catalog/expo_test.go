package catalog_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
)

// body is an exposition read the slow and plain way, for tests: values by the text
// of a series, which is its name and sorted labels.
type body struct {
	types  map[string]metric.Type
	series map[string]sample
}

type sample struct {
	family, role string // role is "", "_sum", "_count" or the bound of a bucket
	labels       metric.Labels
	value        float64
}

// readBody reads what the engines write, odd spacing and trailing commas included.
func readBody(text string) body {
	b := body{map[string]metric.Type{}, map[string]sample{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, word, _ := strings.Cut(rest, " ")
			b.types[name], _ = metric.ParseType(word)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, labelled := strings.Cut(line, "{")
		pairs := map[string]string{}
		value := ""
		if labelled {
			end := strings.LastIndexByte(rest, '}')
			value = strings.TrimSpace(rest[end+1:])
			for in := rest[:end]; in != ""; {
				n, quoted, _ := strings.Cut(in, "=")
				q, _ := strconv.QuotedPrefix(quoted)
				pairs[strings.TrimSpace(n)], _ = strconv.Unquote(q)
				in = strings.TrimLeft(quoted[len(q):], ", ")
			}
		} else {
			name, value, _ = strings.Cut(line, " ")
		}
		v, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
		if err != nil {
			v = math.NaN() // -nan(ind)
		}
		b.add(name, pairs, v)
	}
	return b
}

func (b body) add(name string, pairs map[string]string, v float64) {
	s := sample{family: name, value: v}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		stem, ok := strings.CutSuffix(name, suffix)
		if t := b.types[stem]; ok && (t == metric.Histogram || t == metric.Summary) {
			s.family, s.role = stem, suffix
		}
	}
	for _, bound := range []string{"le", "quantile"} {
		if text, ok := pairs[bound]; ok {
			s.role = text
			delete(pairs, bound)
		}
	}
	s.labels = metric.LabelsFromMap(pairs)
	b.series[s.family+s.labels.String()+" "+s.role] = s
}

// watch adds up what a server showed at several instants.
type watch struct {
	bodies []body
	at     []float64 // seconds
}

func (w *watch) see(text string, at float64) {
	w.bodies = append(w.bodies, readBody(text))
	w.at = append(w.at, at)
}

// stretch returns the gains since the first body; of a single body those since
// zero.
func (w *watch) stretch() catalog.Interval {
	last := w.bodies[len(w.bodies)-1]
	s := catalog.Interval{Seconds: w.at[len(w.at)-1] - w.at[0]}
	first := w.bodies[0]
	if len(w.bodies) == 1 {
		first, s.Seconds = body{}, 1
	}
	gains := map[string]*catalog.Gain{}
	var order []string
	for key, x := range last.series {
		id := x.family + x.labels.String()
		g := gains[id]
		if g == nil {
			g = &catalog.Gain{Family: x.family, Type: last.types[x.family], Labels: x.labels}
			if g.Type == metric.Counter {
				g.Family = strings.TrimSuffix(x.family, "_total")
			}
			gains[id] = g
			order = append(order, id)
		}
		w.fold(g, key, x, first.series[key].value)
	}
	for _, id := range order {
		slicesSort(gains[id].Buckets)
		s.Gains = append(s.Gains, *gains[id])
	}
	return s
}

func (w *watch) fold(g *catalog.Gain, key string, x sample, before float64) {
	switch {
	case x.role == "_sum":
		g.Sum, g.HasSum = x.value-before, true
	case x.role == "_count":
		g.Count = x.value - before
	case x.role != "" && g.Type == metric.Histogram:
		upper, _ := strconv.ParseFloat(x.role, 64)
		g.Buckets = append(g.Buckets, catalog.Bucket{Upper: upper, Count: x.value - before})
	case x.role != "":
	case g.Type == metric.Counter:
		g.Total, g.First, g.Last = x.value-before, before, x.value
	default:
		w.gauge(g, key)
	}
}

// gauge holds each value until the next body.
func (w *watch) gauge(g *catalog.Gain, key string) {
	g.Min, g.Max = math.Inf(1), math.Inf(-1)
	n := 0
	for i, b := range w.bodies {
		x, ok := b.series[key]
		if !ok || math.IsNaN(x.value) {
			continue
		}
		if n++; n == 1 {
			g.First = x.value
		}
		g.Last, g.Min, g.Max = x.value, min(g.Min, x.value), max(g.Max, x.value)
		if i+1 < len(w.at) {
			g.TimeAvg += x.value * (w.at[i+1] - w.at[i])
		}
	}
	if total := w.at[len(w.at)-1] - w.at[0]; total > 0 {
		g.TimeAvg /= total
	} else {
		g.TimeAvg = g.Last
	}
}

func slicesSort(b []catalog.Bucket) {
	for i := range b {
		for k := i; k > 0 && b[k].Upper < b[k-1].Upper; k-- {
			b[k], b[k-1] = b[k-1], b[k]
		}
	}
}

// warmup is from the start of a simulated server to the first look at it.
const warmup = 60 * time.Second

// unknown returns the families that the catalog does not have, but for those of
// every Go or Python program.
func unknown(c *catalog.Catalog, s catalog.Interval) (out []string) {
	for _, g := range s.Gains {
		general := strings.HasPrefix(g.Family, "go_") || strings.HasPrefix(g.Family, "python_") ||
			strings.HasPrefix(g.Family, "process_")
		if _, ok := c.Family(g.Family); !ok && !general {
			out = append(out, g.Family)
		}
	}
	return out
}

// simulated watches a simulated server from one minute after its start, and tells
// what really happened meanwhile.
func simulated(t testing.TB, profile string, o simulate.Options, seconds, every int) (catalog.Interval,
	simulate.Totals, simulate.Truth) {
	t.Helper()
	start := time.Unix(1_800_000_000, 0)
	now := start
	o.Now, o.KeepTruth = func() time.Time { return now }, true
	s, err := simulate.New(profile, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{}
	for at := 0; at <= seconds; at += every {
		now = start.Add(warmup + time.Duration(at)*time.Second)
		w.see(string(s.AppendBody(nil)), float64(at))
	}
	truth, stretch := s.Truth(), w.stretch()
	for _, family := range unknown(known(t), stretch) {
		t.Errorf("%s: %s is not in the catalog", profile, family)
	}
	return stretch, truth.Totals(warmup, warmup+time.Duration(seconds)*time.Second), truth
}
