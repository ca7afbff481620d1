package scrape_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// engines writes bodies as a busy vLLM server with three engines does, in the
// manner of Python's prometheus_client: 1,087 samples, of which about 68 % change
// from one body to the next.
type engines struct {
	rng        *rand.Rand
	histograms [18][3]struct {
		counts []int
		sum    float64
	}
	counters [24][3]float64
	gauges   [10][3]float64
}

func newEngines() *engines {
	e := &engines{rng: rand.New(rand.NewPCG(1, 2))}
	for i := range e.histograms {
		for k := range e.histograms[i] {
			e.histograms[i][k].counts = make([]int, 7+i%17)
		}
	}
	return e
}

// step lets the servers work for one interval.
func (e *engines) step() {
	for i := range e.histograms {
		for k := range e.histograms[i] {
			h := &e.histograms[i][k]
			lowest := len(h.counts)
			for range e.rng.IntN(5) {
				at := min(e.rng.IntN(len(h.counts)), e.rng.IntN(len(h.counts)))
				lowest = min(lowest, at)
				for b := at; b < len(h.counts); b++ {
					h.counts[b]++
				}
				h.sum += e.rng.ExpFloat64()
			}
		}
	}
	for i := range e.counters {
		for k := range e.counters[i] {
			e.counters[i][k] += float64(e.rng.IntN(50))
		}
	}
	for i := range e.gauges {
		for k := range e.gauges[i] {
			e.gauges[i][k] = float64(e.rng.IntN(1000)) / 1000
		}
	}
}

func pyFloat(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if v == float64(int64(v)) && v < 1e16 {
		s = strconv.FormatFloat(v, 'f', 1, 64)
	}
	return s
}

func (e *engines) write() []byte {
	var w bytes.Buffer
	const labelText = `engine="%d",model_name="meta-llama/Llama-3.1-70B-Instruct"`
	meta := func(name, typ string) {
		fmt.Fprintf(&w, "# HELP %s Histogram, counter or gauge of what the engine did in seconds.\n# TYPE %s %s\n", name,
			name, typ)
	}
	for i := range e.gauges {
		name := fmt.Sprintf("vllm:num_requests_state_%d", i)
		meta(name, "gauge")
		for k, v := range e.gauges[i] {
			fmt.Fprintf(&w, "%s{"+labelText+"} %s\n", name, k, pyFloat(v))
		}
	}
	for i := range e.counters {
		name := fmt.Sprintf("vllm:generation_tokens_%d", i)
		meta(name+"_total", "counter")
		for k, v := range e.counters[i] {
			fmt.Fprintf(&w, "%s_total{"+labelText+"} %s\n", name, k, pyFloat(v))
		}
		meta(name+"_created", "gauge")
		for k := range e.counters[i] {
			fmt.Fprintf(&w, "%s_created{"+labelText+"} 1.7638%02d534123e+09\n", name, k, i)
		}
	}
	for i := range e.histograms {
		name := fmt.Sprintf("vllm:e2e_request_latency_%d_seconds", i)
		meta(name, "histogram")
		for k, h := range e.histograms[i] {
			for b, n := range h.counts {
				le := pyFloat(0.3 * float64(b+1))
				if b == len(h.counts)-1 {
					le = "+Inf"
				}
				fmt.Fprintf(&w, "%s_bucket{"+labelText+",le=\"%s\"} %s\n", name, k, le, pyFloat(float64(n)))
			}
			fmt.Fprintf(&w, "%s_count{"+labelText+"} %s\n", name, k, pyFloat(float64(h.counts[len(h.counts)-1])))
			fmt.Fprintf(&w, "%s_sum{"+labelText+"} %s\n", name, k, pyFloat(h.sum))
		}
	}
	return w.Bytes()
}

// bodies returns n bodies of a warm server, each a step after the other.
func bodies(n int) [][]byte {
	e := newEngines()
	for range 200 {
		e.step()
	}
	out := make([][]byte, n)
	for i := range out {
		e.step()
		out[i] = e.write()
	}
	return out
}

// feeder feeds copies of the bodies in turn, as a collector would.
type feeder struct {
	decoder *scrape.Decoder
	bodies  [][]byte
	spare   []byte
	next    int
	s       metric.Snapshot
}

func newFeeder(tb testing.TB, bodies [][]byte) *feeder {
	return &feeder{decoder: newDecoder(tb, scrape.Options{}), bodies: bodies}
}

func (f *feeder) step() *metric.Snapshot {
	f.s = metric.Snapshot{}
	f.spare = append(f.spare[:0], f.bodies[f.next%len(f.bodies)]...)
	f.next++
	f.decoder.Decode(&f.s, scrape.Body{Bytes: f.spare, ContentType: classic})
	return &f.s
}

func TestReplayAllocatesNothing(t *testing.T) {
	for _, twist := range []string{"in order", "out of order"} {
		ring := bodies(16)
		f := newFeeder(t, ring)
		if twist == "out of order" {
			// The first body lacks a family that the others have in the middle.
			first := ring[0]
			at, end := bytes.Index(first, []byte("# HELP vllm:generation_tokens_3_total")),
				bytes.Index(first, []byte("# HELP vllm:generation_tokens_4_total"))
			f.bodies = [][]byte{append(bytes.Clone(first[:at]), first[end:]...)}
			f.step()
			f.bodies = ring
		}
		changed := 0
		for range 40 {
			changed = len(f.step().Delta.Slots)
		}
		if n := testing.AllocsPerRun(100, func() { f.step() }); n != 0 {
			t.Errorf("%s: %v allocations per body, want 0", twist, n)
		}
		if s := f.step(); s.Outcome != metric.OK || changed == 0 || changed == s.Lines {
			t.Errorf("%s: outcome %v, %d of %d changed", twist, s.Outcome, changed, s.Lines)
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	f := newFeeder(b, bodies(64))
	var changed, lines, size int
	for range 128 {
		s := f.step()
		changed, lines, size = changed+len(s.Delta.Slots), lines+s.Lines, len(s.Body)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		f.step()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(f.s.Lines), "ns/sample")
	b.ReportMetric(100*float64(changed)/float64(lines), "%changed")
	b.ReportMetric(float64(f.s.Lines), "samples")
}

func BenchmarkDuplicate(b *testing.B) {
	f := newFeeder(b, bodies(1))
	f.step()
	b.SetBytes(int64(len(f.bodies[0])))
	b.ReportAllocs()
	for b.Loop() {
		f.step()
	}
}

// BenchmarkTextparseCache is what Prometheus does in steady state.
func BenchmarkTextparseCache(b *testing.B) {
	ring := bodies(64)
	cache := map[string]int{}
	values := make([]float64, 4096)
	b.SetBytes(int64(len(ring[0])))
	b.ReportAllocs()
	samples := 0
	for i := 0; b.Loop(); i++ {
		samples = 0
		p := textparse.NewPromParser(ring[i%len(ring)], labels.NewSymbolTable(), false)
		for {
			entry, err := p.Next()
			if err == io.EOF {
				break
			}
			if entry != textparse.EntrySeries {
				continue
			}
			raw, _, v := p.Series()
			id, ok := cache[string(raw)]
			if !ok {
				id = len(cache)
				cache[string(raw)] = id
			}
			values[id] = v
			samples++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
}

// BenchmarkTextparseLabels is what a parser without a cache costs.
func BenchmarkTextparseLabels(b *testing.B) {
	ring := bodies(8)
	b.ReportAllocs()
	var lset labels.Labels
	samples := 0
	for i := 0; b.Loop(); i++ {
		samples = 0
		p := textparse.NewPromParser(ring[i%len(ring)], labels.NewSymbolTable(), false)
		for {
			entry, err := p.Next()
			if err == io.EOF {
				break
			}
			if entry == textparse.EntrySeries {
				p.Labels(&lset)
				samples++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
}

// BenchmarkLearnKnown decodes bodies whose layout changes each time.
func BenchmarkLearnKnown(b *testing.B) {
	ring := bodies(64)
	for i := range ring {
		ring[i] = append(ring[i], fmt.Sprintf("# comment %d\n", i)...)
	}
	f := newFeeder(b, ring)
	f.step()
	b.ReportAllocs()
	for b.Loop() {
		f.step()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(f.s.Lines), "ns/sample")
}

// BenchmarkLearnNew decodes the first body of a target.
func BenchmarkLearnNew(b *testing.B) {
	ring := bodies(1)
	b.ReportAllocs()
	lines := 0
	for b.Loop() {
		f := newFeeder(b, ring)
		lines = f.step().Lines
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(lines), "ns/sample")
}

// BenchmarkFloatScan finds the lines and parses each value: the least that a
// decoder without memory can do.
func BenchmarkFloatScan(b *testing.B) {
	ring := bodies(64)
	total := 0.0
	b.SetBytes(int64(len(ring[0])))
	for i := 0; b.Loop(); i++ {
		for body := ring[i%len(ring)]; len(body) > 0; {
			n := bytes.IndexByte(body, '\n')
			line := body[:n]
			body = body[n+1:]
			if line[0] == '#' {
				continue
			}
			v, err := strconv.ParseFloat(string(line[bytes.LastIndexByte(line, ' ')+1:]), 64)
			if err != nil {
				b.Fatal(err)
			}
			total += v
		}
	}
	_ = total
}
