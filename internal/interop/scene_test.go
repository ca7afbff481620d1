package interop_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// origin is when the recordings begin; nanoseconds that a float64 cannot hold.
const origin = 1_700_000_000_123_456_789

// scene is a recording that is made of bodies.
type scene struct {
	name    string
	slice   time.Duration
	warmup  time.Duration
	length  time.Duration // of the load, warm-up included
	resets  bool          // so that the two modes differ
	foreign bool          // AIPerf's collector refuses bodies with an info, and protobuf
	hosts   []host
}

// host is one endpoint of a scene. body returns what it answers at a time after
// the origin; "" is a failed poll.
type host struct {
	url   string
	every time.Duration
	first time.Duration
	kind  string // content type; "" is text 0.0.4
	body  func(at time.Duration) string
}

func scenes(t *testing.T) []scene {
	return []scene{
		{name: "vllm", slice: 2 * time.Second, warmup: 8 * time.Second, length: 30 * time.Second, hosts: []host{
			simulated(t, "http://10.0.0.1:8000/metrics", "vllm", simulate.Options{Rate: 20, Seed: 1}, 0),
			simulated(t, "http://10.0.0.2:8000/metrics", "vllm", simulate.Options{Rate: 3, Seed: 2, Engines: 2}, 0),
		}},
		{name: "restart", resets: true, slice: 3 * time.Second, warmup: 5 * time.Second, length: 30 * time.Second,
			hosts: []host{
				simulated(t, "http://10.0.0.1:8000/metrics", "vllm", simulate.Options{Rate: 15, Seed: 3}, 26*time.Second),
			}},
		{name: "omni", warmup: 5 * time.Second, length: 25 * time.Second, hosts: []host{
			simulated(t, "http://10.0.0.1:8000/metrics", "vllm-omni", simulate.Options{Rate: 2, Seed: 4}, 0),
		}},
		{name: "edges", resets: true, slice: 1001 * time.Millisecond, warmup: 4 * time.Second, length: 20 * time.Second,
			hosts: []host{
				{url: "http://edge:1/metrics", every: 500 * time.Millisecond, body: edges},
				{url: "http://edge:2/metrics", every: time.Second, first: 250 * time.Millisecond, body: quiet},
			}},
		{name: "types", foreign: true, slice: 2 * time.Second, warmup: 3 * time.Second, length: 15 * time.Second,
			hosts: []host{
				{url: "http://types:1/metrics", every: 400 * time.Millisecond, kind: openMetrics, body: typesOpen},
			}},
		{name: "native", foreign: true, slice: 2 * time.Second, warmup: 3 * time.Second, length: 15 * time.Second,
			hosts: []host{
				{url: "http://types:2/metrics", every: 400 * time.Millisecond, kind: protobuf, body: typesProtobuf},
			}},
	}
}

// simulated is a server of the given profile, restarted at a time unless it is 0.
func simulated(t *testing.T, url, profile string, o simulate.Options, restart time.Duration) host {
	t.Helper()
	now := time.Unix(0, origin)
	o.Now = func() time.Time { return now }
	s, err := simulate.New(profile, o)
	if err != nil {
		t.Fatal(err)
	}
	restarted := restart == 0
	return host{url: url, every: 333 * time.Millisecond, first: 7 * time.Millisecond, body: func(at time.Duration) string {
		now = time.Unix(0, origin).Add(at)
		if !restarted && at > restart {
			s.Restart()
			restarted = true
		}
		return string(s.AppendBody(nil))
	}}
}

// quiet never changes: every body after the first is a duplicate.
func quiet(time.Duration) string {
	return "# TYPE idle gauge\nidle 3\n# TYPE total counter\ntotal 7\n" + histogramText("h", `engine="0"`, "0.1 1 +Inf",
		[]int{1, 2, 3}, 1.5)
}

// edges is a body with what has broken readers.
func edges(at time.Duration) string {
	n := int(at / (500 * time.Millisecond))
	if n%11 == 5 {
		return ""
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# HELP hostile Text with \\\\ and \\n and \"quotes\", commas.\n# TYPE hostile gauge")
	line(`hostile{v="a\\b\"c\nd{}=,;",empty="",emoji="😀",rtl="`+"\u202e"+`x",long="%s"} %d`, strings.Repeat("y", 3000), n)
	line("hostile{value=\"x\",bucket_le=\"y\",unit=\"z\",endpoint_url=\"u\",le_text=\"t\"} %g", math.Sqrt(float64(n)))
	line("# TYPE tiny_seconds gauge\ntiny_seconds %g\n# TYPE negative gauge\nnegative{k=\"0\"} -0\nnegative{k=\"1\"} %d",
		1e-10*float64(n+1), -n)
	line("# TYPE big_bytes counter\nbig_bytes_total %d", int64(1)<<50+int64(n)*1_000_003)
	line("# TYPE fractions counter\nfractions{a=\"1\"} %g", 0.1*float64(n*n))
	line("untyped_thing %d\n# TYPE declared_only counter", n%7)
	line("# TYPE build_info gauge\nbuild_info{version=\"1.2\",commit=\"abc\"} 1")
	line("# TYPE s summary\ns{quantile=\"0.5\"} %d\ns_sum %d\ns_count %d", n, 3*n, n)
	value := fmt.Sprint(n % 5)
	if n%9 == 4 {
		value = "NaN"
	}
	line("# TYPE patchy gauge\npatchy{good=\"sometimes\"} %s\npatchy{good=\"always\"} 1", value)
	if n >= 15 {
		line("# TYPE late counter\nlate{from=\"15\"} %d", 1000+n)
	}
	if n%8 < 5 {
		line("# TYPE flaps gauge\nflaps %d\n# TYPE flap_count counter\nflap_count %d", n, 3*n)
	}
	if n == 20 {
		line("# TYPE once counter\nonce 5\n# TYPE once_level gauge\nonce_level 5")
	}
	line("# TYPE constant_seconds gauge\nconstant_seconds 0.3333333333333333")
	b.WriteString(histogramText("plain_seconds", `m="x"`, "0.005 0.01 0.1 1 10 +Inf", spread(n, 6), 0.37*float64(n)))
	b.WriteString(histogramText("whole", `m="x"`, "1 2 5 10 100 1e+06 +Inf", spread(2*n, 7), 12.5*float64(n)))
	b.WriteString(histogramText("still", "", "1.0 2.0 +Inf", []int{4, 5, 6}, 9))
	b.WriteString(histogramText("only_inf", "", "+Inf", []int{n}, float64(n)))
	b.WriteString(histogramText("below_zero", "", "-10 -1 0 10 +Inf", spread(n, 5), -0.5*float64(n)))
	bounds, counts := "0.1 1 +Inf", spread(n, 3)
	if n >= 24 {
		bounds, counts = "0.1 0.5 1 +Inf", spread(n, 4)
	}
	b.WriteString(histogramText("grows_seconds", "", bounds, counts, 0.2*float64(n)))
	return b.String()
}

// spread gives cumulative counts that grow with n, each bucket at its own pace.
func spread(n, buckets int) []int {
	counts := make([]int, buckets)
	total := 0
	for i := range counts {
		total += n * (i%3 + 1) / (i + 1)
		counts[i] = total
	}
	return counts
}

func histogramText(name, labels, bounds string, counts []int, sum float64) string {
	var b strings.Builder
	comma, braces := "", ""
	if labels != "" {
		comma, braces = ",", "{"+labels+"}"
	}
	fmt.Fprintf(&b, "# HELP %s A histogram.\n# TYPE %s histogram\n", name, name)
	for i, bound := range strings.Fields(bounds) {
		fmt.Fprintf(&b, "%s_bucket{%s%sle=%q} %d\n", name, labels, comma, bound, counts[i])
	}
	fmt.Fprintf(&b, "%s_sum%s %g\n%s_count%s %d\n", name, braces, sum, name, braces, counts[len(counts)-1])
	return b.String()
}

// fetched is a line of bodies.jsonl: what AIPerf's collector is given.
type fetched struct {
	URL       string `json:"url"`
	SentNS    int64  `json:"sent_ns"`
	AtNS      int64  `json:"at_ns"`
	LatencyNS int64  `json:"latency_ns"`
	Duplicate bool   `json:"duplicate"`
	Kind      string `json:"content_type"`
	Body      string `json:"body"`
}

// record writes the recording and bodies.jsonl into dir.
func (sc *scene) record(t *testing.T, dir string) {
	t.Helper()
	meta := rundb.Meta{ID: "6a9f1c1e-" + sc.name, Version: "0.0.0-interop", OriginNS: origin}
	if sc.name != "edges" { // of that the last update is the end of the load
		meta.Command = []string{"scrapestat", "simulate", "vllm"} // whose marks tell when there was load
	}
	w, err := rundb.Create(dir, meta, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bodies, err := os.Create(filepath.Join(dir, "bodies.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out := json.NewEncoder(bodies)
	for _, h := range sc.hosts {
		sc.scrape(t, w, h, out)
	}
	for _, m := range []metric.Mark{{Name: metric.PhaseWarmup, AtNS: origin, Kind: metric.MarkOwn},
		{Name: metric.PhaseProfiling, AtNS: origin + int64(sc.warmup), Kind: metric.MarkOwn},
		{Name: metric.MarkEnd, AtNS: origin + int64(sc.length), Kind: metric.MarkOwn}} {
		if err := w.Mark(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := bodies.Close(); err != nil {
		t.Fatal(err)
	}
}

// scrape records the polls of one host, the last of them after the load.
func (sc *scene) scrape(t *testing.T, w *rundb.Writer, h host, out *json.Encoder) {
	t.Helper()
	target, err := w.AddTarget(metric.Target{URL: h.url, Source: "prometheus"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; h.first+time.Duration(n)*h.every < sc.length+h.every; n++ {
		// Not on the grid to the nanosecond, as no scrape is.
		at := h.first + time.Duration(n)*h.every + time.Duration(n*n*7919%1_000_003)
		body := h.body(at)
		sent := origin + int64(at)
		s := metric.Snapshot{Target: target, Seq: uint64(n), DueNS: sent, SentNS: sent, FirstByteNS: sent + 1_234_567,
			Duration: 2_345_678 + time.Duration(n), Status: 200}
		if body == "" {
			s.Outcome, s.FirstByteNS, s.Err = metric.ConnectError, 0, "connection refused"
		} else {
			kind := cmp.Or(h.kind, "text/plain; version=0.0.4")
			d.Decode(&s, scrape.Body{Bytes: []byte(body), ContentType: kind})
			if s.Outcome != metric.OK || len(s.Drops) > 0 {
				t.Fatalf("scene %s: %v %s, drops %v", sc.name, s.Outcome, s.Err, s.Drops)
			}
			f := fetched{h.url, s.SentNS, s.FirstByteNS, int64(s.Duration), s.Duplicate, kind, body}
			if err := out.Encode(f); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Record(&s); err != nil {
			t.Fatal(err)
		}
	}
}

// export writes all files of the recording in dir into a folder below it.
func (sc *scene) export(t *testing.T, dir, folder string, resets normalize.ResetMode) {
	t.Helper()
	db, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run, err := summary.Build(t.Context(), []summary.Recording{db}, summary.Options{Slice: sc.slice, Resets: resets})
	if err != nil {
		t.Fatal(err)
	}
	recs := []export.Recording{db}
	write := func(name string, fill func(f *os.File) error) {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, folder, name))
		if err == nil {
			err = fill(f)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
		t.Fatal(err)
	}
	ctx, o := t.Context(), export.Options{Location: time.UTC}
	write("server_metrics_export.json", func(f *os.File) error { return export.JSON(f, run, o) })
	write("schema10.json", func(f *os.File) error {
		return export.JSON(f, run, export.Options{AIPerfSchema: export.Schema10, Location: time.UTC})
	})
	write("server_metrics_export.csv", func(f *os.File) error { return export.CSV(f, run, o) })
	write("server_metrics_export.jsonl", func(f *os.File) error { return export.JSONL(ctx, f, run, recs, o) })
	write("server_metrics_export.parquet", func(f *os.File) error { return export.Parquet(ctx, f, run, recs, o) })
	write("derived.parquet", func(f *os.File) error { return export.DerivedParquet(f, run, o) })
	write("tidy.parquet", func(f *os.File) error { return export.TidyParquet(ctx, f, run, recs, o) })
}
