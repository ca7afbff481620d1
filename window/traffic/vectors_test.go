package traffic_test

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/internal/testkit/fakerun"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// server turns numbers of a load into the polls of a server.
type server struct {
	b                          metric.SnapshotBuilder
	seq                        uint64
	finished, sum, count, runs int // slots; -1 where it has none
}

func newServer(kind string) *server {
	s := &server{runs: -1}
	slot := func(family string, t metric.Type, r metric.Role) int {
		return s.b.Slot(s.b.Series(s.b.Family(family, t, "", ""), metric.Labels{}), metric.SampleID{Role: r})
	}
	switch kind {
	case "vllm":
		s.runs = slot("vllm:num_requests_running", metric.Gauge, metric.RoleValue)
		s.finished = slot("vllm:request_success", metric.Counter, metric.RoleValue)
		s.sum = slot("vllm:e2e_request_latency_seconds", metric.Histogram, metric.RoleSum)
		s.count = slot("vllm:e2e_request_latency_seconds", metric.Histogram, metric.RoleCount)
	default: // what ended, and how long it took
		s.finished = slot("vllm:request_success", metric.Counter, metric.RoleValue)
		s.sum = slot("vllm:e2e_request_latency_seconds", metric.Histogram, metric.RoleSum)
		s.count = slot("vllm:e2e_request_latency_seconds", metric.Histogram, metric.RoleCount)
	}
	return s
}

func (s *server) poll(sent, at int64, finished, seconds, running float64) *metric.Snapshot {
	out := &metric.Snapshot{Seq: s.seq, SentNS: sent, FirstByteNS: at}
	s.seq++
	s.b.Set(s.finished, finished)
	s.b.Set(s.count, finished)
	s.b.Set(s.sum, seconds)
	if s.runs >= 0 {
		s.b.Set(s.runs, running)
	}
	s.b.Finish(out)
	return out
}

func own(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func add(t testing.TB, d *traffic.Detector, s *metric.Snapshot) {
	t.Helper()
	if err := d.Add(s, nil); err != nil {
		t.Fatal(err)
	}
}

type vectors struct {
	Edges []struct {
		Name, Server string
		Polls        [][5]float64
		Expect       *struct {
			BusyAtStart bool    `json:"busy_at_start"`
			BusyAtEnd   bool    `json:"busy_at_end"`
			OnsetLow    float64 `json:"onset_lo_ns"`
			OnsetHigh   float64 `json:"onset_hi_ns"`
			Onset       float64 `json:"onset_ns"`
			EndLow      float64 `json:"end_lo_ns"`
			EndHigh     float64 `json:"end_hi_ns"`
			End         float64 `json:"end_ns"`
		}
		Truth *struct {
			Onset    float64 `json:"onset_ns"`
			End      float64 `json:"end_ns"`
			Requests float64
		}
	}
	Segments []struct {
		Name     string
		Active   [][3]float64
		Interval float64 `json:"interval_s"`
		Expect   struct{ Segments, Probes [][3]float64 }
	}
	Runs []struct {
		Run            string
		Warmup         float64 `json:"warmup_s"`
		Gain           float64
		Seconds        float64
		Low            float64 `json:"seconds_low"`
		High           float64 `json:"seconds_high"`
		Family, Window string
	}
}

func read(t *testing.T) (v vectors) {
	t.Helper()
	if err := json.Unmarshal(testkit.Data(t, "vectors/windows.json"), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Acceptance row 8: the edges of nine loads within 1 ms, and what happened within their bounds.
func TestEdges(t *testing.T) {
	const shift = 1e10 // a server of requests of 3 s puts the onset before the origin
	for _, c := range read(t).Edges {
		t.Run(c.Name, func(t *testing.T) {
			d, s := traffic.NewDetector(own(t), nil), newServer(c.Server)
			for _, p := range c.Polls {
				add(t, d, s.poll(int64(p[0]+shift), int64(p[1]+shift), p[2], p[3], p[4]))
			}
			got := traffic.Find([]*traffic.Detector{d})
			if c.Expect == nil {
				if len(got.Segments)+len(got.Probes) > 0 {
					t.Fatalf("an idle server had %+v", got)
				}
				return
			}
			if len(got.Segments) != 1 || len(got.Probes) != 0 {
				t.Fatalf("got %d segments and %d probes", len(got.Segments), len(got.Probes))
			}
			start, end := got.Segments[0].Start, got.Segments[0].End
			want := c.Expect
			if want.BusyAtEnd { // then the recording's end is taken, see Traffic
				end.AtNS = int64(want.End + shift)
			}
			for _, x := range []struct {
				what      string
				got       int64
				want, tol float64
			}{
				{"start", start.AtNS, want.Onset, 1e6}, {"start low", start.LowNS, want.OnsetLow, 1e6},
				{"start high", start.HighNS, want.OnsetHigh, 1e6}, {"end", end.AtNS, want.End, 1e6},
				{"end low", end.LowNS, want.EndLow, 1e6}, {"end high", end.HighNS, want.EndHigh, 1e6},
			} {
				if math.Abs(float64(x.got)-shift-x.want) > x.tol {
					t.Errorf("%s at %d, want %.0f", x.what, x.got-shift, x.want)
				}
			}
			if got.BusyAtStart != want.BusyAtStart || got.BusyAtEnd != want.BusyAtEnd {
				t.Errorf("busy %v, %v, want %v, %v", got.BusyAtStart, got.BusyAtEnd, want.BusyAtStart, want.BusyAtEnd)
			}
			within := func(e traffic.Edge, truth float64) bool {
				return float64(e.LowNS)-shift <= truth && truth <= float64(e.HighNS)-shift
			}
			if !within(start, c.Truth.Onset) || !want.BusyAtEnd && !within(end, c.Truth.End) {
				t.Errorf("what happened, %v to %v, is outside the bounds", c.Truth.Onset, c.Truth.End)
			}
		})
	}
}

// Acceptance row 9: segments and probes. One that comes every 10 s makes no slow load of what is between.
func TestSegments(t *testing.T) {
	cases := read(t).Segments
	probed := cases[0]
	probed.Name, probed.Interval = "a probe every 10 s", 1./3
	probed.Active, probed.Expect.Segments, probed.Expect.Probes = nil, [][3]float64{{65, 115, 200}}, nil
	for at := 5.; at < 150; at += 10 {
		switch one := [3]float64{at, at + .5, 1}; {
		case at < 60 || at > 120:
			probed.Active, probed.Expect.Probes = append(probed.Active, one), append(probed.Expect.Probes, one)
		case at == 65:
			probed.Active = append(probed.Active, probed.Expect.Segments[0])
		}
	}
	for _, c := range append(cases, probed) {
		t.Run(c.Name, func(t *testing.T) {
			d, s := traffic.NewDetector(own(t), nil), newServer("vllm")
			last := c.Active[len(c.Active)-1][1]
			const origin = 1e9 // polls begin before the load
			for k := 0; ; k++ {
				at := float64(k)*c.Interval - 1
				if at > last+2 {
					break
				}
				done, running := 0.0, 0.0
				for _, a := range c.Active {
					switch {
					case at > a[1]:
						done += a[2]
					case at >= a[0]:
						done += math.Floor(a[2] * (at - a[0]) / (a[1] - a[0]))
						running = 1
					}
				}
				ns := int64(origin + (at+1)*1e9)
				add(t, d, s.poll(ns-1e6, ns, done, done/10, running))
			}
			got := traffic.Find([]*traffic.Detector{d})
			same := func(what string, got []traffic.Segment, want [][3]float64) {
				if len(got) != len(want) {
					t.Fatalf("%d %s, want %v", len(got), what, want)
				}
				for i, w := range want {
					from, to := float64(got[i].Start.AtNS)/1e9-2, float64(got[i].End.AtNS)/1e9-2
					if math.Abs(from-w[0]) > c.Interval || math.Abs(to-w[1]) > c.Interval || got[i].Requests != w[2] {
						t.Errorf("%s %d: %v to %v with %v, want %v", what, i, from, to, got[i].Requests, w)
					}
				}
			}
			same("segments", got.Segments, c.Expect.Segments)
			same("probes", got.Probes, c.Expect.Probes)
		})
	}
}

// recorded finds the traffic of a recording of testdata/runs.
func recorded(t *testing.T, name string) traffic.Traffic {
	t.Helper()
	var ds []*traffic.Detector
	known := map[int]int{} // series of each target
	if err := fakerun.Polls(testkit.Path(t, "runs/"+name), func(i int, s *metric.Snapshot) error {
		if i == len(ds) {
			ds = append(ds, traffic.NewDetector(own(t), nil))
		}
		var born []int32 // these servers only work: what is new later counts from zero
		for n := range s.DictDelta.Series {
			if series := known[i] + n; known[i] > 0 {
				born = append(born, int32(series))
			}
		}
		known[i] += len(s.DictDelta.Series)
		return ds[i].Add(s, born)
	}); err != nil {
		t.Fatal(err)
	}
	return traffic.Find(ds)
}

// Acceptance rows 2, 4, 5 and 6: the duration of recorded loads and its bounds.
func TestRecordings(t *testing.T) {
	for _, c := range read(t).Runs {
		if c.Warmup != 0 {
			continue
		}
		t.Run(c.Run, func(t *testing.T) {
			if c.Run == "bentoml-sequential" { // without its pack: decision 0082
				c.Seconds, c.Low = 6.859, 6.547
			}
			got := recorded(t, c.Run)
			start, ok := got.Start()
			end, _ := got.End()
			if !ok {
				t.Fatal("no traffic")
			}
			round := func(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'f', 3, 64) }
			for _, x := range []struct {
				what string
				got  int64
				want float64
			}{{"seconds", end.AtNS - start.AtNS, c.Seconds}, {"at least", end.LowNS - start.HighNS, c.Low},
				{"at most", end.HighNS - start.LowNS, c.High}} {
				if round(x.got) != strconv.FormatFloat(x.want, 'f', 3, 64) {
					t.Errorf("%s %s, want %v", x.what, round(x.got), x.want)
				}
			}
			requests := 0.0
			for _, s := range got.Segments {
				requests += s.Requests
			}
			if requests != c.Gain {
				t.Errorf("%v requests, want %v; probes %+v", requests, c.Gain, got.Probes)
			}
		})
	}
}
