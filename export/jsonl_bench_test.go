package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

const jsonlPolls, jsonlSamples = 600, 1000

// busyJSONL is 600 polls of 1000 samples, two thirds of which change.
func busyJSONL(tb testing.TB) (*summary.Run, *fakeRun) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := newFake("http://a:8000/metrics")
	body := strings.Builder{}
	for i := range 50 {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		body.WriteString("# TYPE h" + name + " histogram\n")
		for le := range 18 {
			body.WriteString("h" + name + "_bucket{engine=\"0\",le=\"" + string(rune('A'+le)) + "\"} 1\n")
		}
		body.WriteString("h" + name + "_sum{engine=\"0\"} 1.5\nh" + name + "_count{engine=\"0\"} 1\n")
	}
	f.Scrape(0, 0, body.String())
	if n := len(f.Polled[0].Dict.Slots); n != jsonlSamples {
		tb.Fatalf("%d samples", n)
	}
	for n := range jsonlPolls - 1 {
		s := metric.Snapshot{SentNS: origin + int64(n+1)*second, FirstByteNS: origin + int64(n+1)*second, Lines: jsonlSamples}
		for i := range jsonlSamples {
			if rng.IntN(3) > 0 {
				v := math.Trunc(rng.Float64() * 1e5)
				if i%20 == 18 {
					v = rng.Float64() * 1e4
				}
				s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(i)), append(s.Delta.Bits, math.Float64bits(v))
			}
		}
		f.Polled[0].Polls = append(f.Polled[0].Polls, s)
	}
	r, err := buildFake(f, summary.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return r, f
}

func BenchmarkJSONL(b *testing.B) {
	r, f := busyJSONL(b)
	var out countWriter
	b.ReportAllocs()
	for b.Loop() {
		out = countWriter{}
		if err := export.JSONL(context.Background(), &out, r, []export.Recording{f}, inUTC); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*jsonlPolls*jsonlSamples), "ns/sample")
	b.ReportMetric(float64(out.n)/(jsonlPolls*jsonlSamples), "B/sample")
}

// BenchmarkJSONLEncodingJSON is the peer of BenchmarkJSONL in .ci/ratios: the same
// lines, which it has in memory, by encoding/json.
func BenchmarkJSONLEncodingJSON(b *testing.B) {
	type series struct {
		Labels     map[string]string  `json:"labels,omitempty"`
		Buckets    map[string]float64 `json:"buckets,omitempty"`
		Sum, Count float64
	}
	type line struct {
		EndpointURL string              `json:"endpoint_url"`
		TimestampNS int64               `json:"timestamp_ns"`
		LatencyNS   int64               `json:"endpoint_latency_ns"`
		Metrics     map[string][]series `json:"metrics"`
		SentNS      int64               `json:"request_sent_ns"`
		FirstByteNS int64               `json:"first_byte_ns"`
	}
	r, f := busyJSONL(b)
	var out bytes.Buffer
	if err := export.JSONL(context.Background(), &out, r, []export.Recording{f}, inUTC); err != nil {
		b.Fatal(err)
	}
	var lines []line
	for d := json.NewDecoder(&out); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			b.Fatal(err)
		}
		lines = append(lines, l)
	}
	for b.Loop() {
		e := json.NewEncoder(io.Discard)
		for i := range lines {
			if err := e.Encode(&lines[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// keptBusy is a busy recording whose polls are in memory, so that reading it costs
// nothing.
type keptBusy struct {
	busy
	snapshots []*metric.Snapshot
}

func keep(b busy) *keptBusy {
	k := &keptBusy{busy: b}
	for p := range b.Snapshots(context.Background(), 0) {
		c := *p
		c.Delta.Slots, c.Delta.Bits = slices.Clone(p.Delta.Slots), slices.Clone(p.Delta.Bits)
		k.snapshots = append(k.snapshots, &c)
	}
	return k
}

func (k *keptBusy) Snapshots(context.Context, int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		for _, p := range k.snapshots {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// shuttle is a recording in which all values go back and forth between two sets,
// so that everything has its final size after two polls.
func shuttle(polls int) *keptBusy {
	k := keep(busy{targets: 1, polls: 2})
	there, back := k.snapshots[1].Delta, k.snapshots[0].Delta
	back.Full = false
	for i := 2; i < polls; i++ {
		s := &metric.Snapshot{SentNS: k.snapshots[1].SentNS + int64(i)*second,
			FirstByteNS: k.snapshots[1].FirstByteNS + int64(i)*second, Outcome: metric.OK, Delta: back}
		if i%2 == 1 {
			s.Delta = there
		}
		k.snapshots = append(k.snapshots, s)
	}
	return k
}

// TestJSONLAllocations checks that a line costs no allocation once all texts have
// their size.
func TestJSONLAllocations(t *testing.T) {
	allocations := func(polls int) float64 {
		rec := shuttle(polls)
		run := rec.run()
		return testing.AllocsPerRun(3, func() {
			if err := export.JSONL(t.Context(), io.Discard, run, []export.Recording{rec}, inUTC); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(10), allocations(60); few != many || few == 0 {
		t.Errorf("%v allocations for 10 polls, %v for 60", few, many)
	}
}
