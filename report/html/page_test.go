package html_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"iter"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report/html"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// recording is a run in memory.
type recording struct {
	meta    rundb.Meta
	targets []metric.Target
	marks   []metric.Mark
	polls   func(target int, yield func(*metric.Snapshot) bool)
}

func (r *recording) Meta() rundb.Meta           { return r.meta }
func (r *recording) Targets() []metric.Target   { return r.targets }
func (r *recording) Marks() []metric.Mark       { return r.marks }
func (r *recording) Warnings() []metric.Warning { return nil }
func (r *recording) Snapshots(_ context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		r.polls(target, func(s *metric.Snapshot) bool { return yield(s, nil) })
	}
}

const (
	origin = 1_800_000_000_000_000_000
	second = int64(time.Second)
)

// poll is what a test shows of a target at an instant.
func poll(seq int, atNS int64) *metric.Snapshot {
	return &metric.Snapshot{Seq: uint64(seq), DueNS: atNS, SentNS: atNS, FirstByteNS: atNS,
		Duration: 3 * time.Millisecond, Outcome: metric.OK}
}

// served is a run of one target with a counter, a gauge and a histogram of one
// series each, whose texts are all hostile, polled each second for n seconds.
func served(n int, text string) *recording {
	r := &recording{
		meta: rundb.Meta{ID: text, Version: text, Command: []string{text}, Tags: map[string]string{text: text},
			OriginNS: origin, Interval: time.Second, Host: text},
		targets: []metric.Target{{Name: text, URL: "http://h/" + text,
			Labels: metric.NewLabels(metric.Label{Name: "job", Value: text})}},
		marks: []metric.Mark{{Name: metric.PhaseProfiling, AtNS: origin}, {Name: text, AtNS: origin + 2*second},
			{Name: metric.MarkEnd, AtNS: origin + int64(n)*second}},
	}
	r.polls = func(_ int, yield func(*metric.Snapshot) bool) {
		var g metric.SnapshotBuilder
		labels := metric.NewLabels(metric.Label{Name: "l", Value: text}, metric.Label{Name: text, Value: "x"})
		c := g.Slot(g.Series(g.Family("c"+text, metric.Counter, text, ""), labels), metric.SampleID{Role: metric.RoleValue})
		v := g.Slot(g.Series(g.Family("g"+text, metric.Gauge, text, ""), labels), metric.SampleID{Role: metric.RoleValue})
		h := g.Series(g.Family("h"+text, metric.Histogram, text, ""), labels)
		le1 := g.Slot(h, metric.SampleID{Role: metric.RoleBucket, Bound: 1, Text: "1"})
		inf := g.Slot(h, metric.SampleID{Role: metric.RoleBucket, Bound: inf, Text: "+Inf"})
		sum, count := g.Slot(h, metric.SampleID{Role: metric.RoleSum}), g.Slot(h, metric.SampleID{Role: metric.RoleCount})
		for i := range n + 1 {
			g.Set(c, float64(10*i))
			g.Set(v, float64(i%5))
			g.Set(le1, float64(3*i))
			g.Set(inf, float64(4*i))
			g.Set(sum, float64(5*i))
			g.Set(count, float64(4*i))
			s := poll(i, origin+int64(i)*second)
			if i == n/2 {
				s.Warnings = []metric.Warning{{Code: text, Text: text}}
				s.Outcome, s.Err = metric.Partial, text
				s.Drops = []metric.Drop{{Reason: text, Lines: 1, First: text}}
			}
			g.Finish(s)
			if i == n/2 {
				s.Lines++
			}
			if !yield(s) {
				return
			}
		}
	}
	return r
}

// pageOf makes the page of recordings.
func pageOf(t *testing.T, o html.Options, recs ...*recording) string {
	t.Helper()
	var ins []html.Input
	for i, r := range recs {
		run, err := summary.Build(t.Context(), []summary.Recording{r}, summary.Options{Slice: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ins = append(ins, html.Input{Name: fmt.Sprint("run", i+1), Run: run, Timeline: timelineOf(t, r)})
	}
	var out bytes.Buffer
	if err := html.Write(&out, ins, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func timelineOf(t *testing.T, r *recording) *html.Timeline {
	t.Helper()
	line := html.NewTimeline(html.TimelineOptions{OriginNS: r.meta.OriginNS, Interval: r.meta.Interval,
		Targets: len(r.targets)})
	for i := range r.targets {
		for s, err := range r.Snapshots(t.Context(), i) {
			if err != nil {
				t.Fatal(err)
			}
			s.Target = i
			if err := line.Add(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return line
}

// hostile is what nobody should be able to put into a page.
const hostile = `</script><img src=x onerror=alert(1)>"'` + "`" + `${1}<!--` + "\x1b]0;x\a\u202e"

func TestHostileTextStaysText(t *testing.T) {
	page := pageOf(t, html.Options{Title: hostile}, served(20, hostile))
	for _, bad := range []string{"<img", "onerror=alert(1)>\"'", "\x1b", "\a", "\u202e", "${1}<!--"} {
		// The scripts of the page are not hostile; all else is before them.
		if body, _, _ := strings.Cut(page, `<script type="application/octet-stream"`); strings.Contains(body, bad) {
			t.Errorf("the page holds %q as it came", bad)
		}
	}
	if n := strings.Count(page, "</script"); n != 4 {
		t.Errorf("got %d ends of scripts, want 4: data, series, uPlot, page", n)
	}
}

// The policy allows the scripts and the style of the page by their hashes, and
// nothing else.
func TestPolicy(t *testing.T) {
	check := func(o html.Options, connect bool) {
		t.Helper()
		page := pageOf(t, o, served(10, "x"))
		policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
		if policy == nil || !strings.HasPrefix(policy[1], "default-src 'none';") {
			t.Fatalf("got policy %q, want one that begins with default-src 'none'", policy)
		}
		for _, part := range regexp.MustCompile(`(?s)<(script|style)>(.*?)</`).FindAllStringSubmatch(page, -1) {
			sum := sha256.Sum256([]byte(part[2]))
			if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy[1], want) {
				t.Errorf("the policy does not allow a %s of %d bytes", part[1], len(part[2]))
			}
		}
		if strings.Contains(policy[1], "unsafe") || strings.Contains(policy[1], "http") ||
			strings.Contains(policy[1], "connect-src 'self'") != connect {
			t.Errorf("got policy %q; connections: want %v", policy[1], connect)
		}
		if strings.Contains(page, "src=\"http") || strings.Contains(page, "href=\"http") ||
			strings.Contains(page, " style=") || strings.Contains(page, " onclick=") {
			t.Error("the page refers to the network, or has a style or a script in an attribute")
		}
	}
	check(html.Options{}, false)
	check(html.Options{Refresh: time.Second}, true)
}

// What is vendored is what the package registry has, and cannot end its element.
func TestAssets(t *testing.T) {
	check := func(name, sum string) {
		t.Helper()
		data, err := os.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); sum != "" && got != sum {
			t.Errorf("%s has sha256 %s, want %s of uplot 1.6.32", name, got, sum)
		}
		for _, bad := range []string{"</script", "</style", "<!--", "innerHTML=", "eval("} {
			if strings.Contains(strings.ToLower(string(data)), strings.ToLower(bad)) {
				t.Errorf("%s holds %q", name, bad)
			}
		}
	}
	check("uPlot.iife.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f")
	check("uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04")
	check("page.js", "")
	check("page.css", "")
	if !strings.Contains(pageOf(t, html.Options{}, served(3, "x")), "Copyright (c) 2022 Leon Sorokin") {
		t.Error("the page does not hold the licence of uPlot")
	}
}

func TestSameInputSameBytes(t *testing.T) {
	o := html.Options{Generated: time.Unix(1, 0)}
	if a, b := pageOf(t, o, served(30, "x")), pageOf(t, o, served(30, "x")); a != b {
		t.Error("two pages of the same run differ")
	}
}

func TestNoRun(t *testing.T) {
	if err := html.Write(&bytes.Buffer{}, nil, html.Options{}); err == nil {
		t.Error("a page of no run: want an error")
	}
	run, err := summary.Build(t.Context(), []summary.Recording{served(5, "x")}, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := html.Write(&out, []html.Input{{Name: "no pictures", Run: run}}, html.Options{}); err != nil ||
		!strings.Contains(out.String(), "no pictures") {
		t.Errorf("a run without a timeline: got error %v and %d bytes", err, out.Len())
	}
}

func TestComparison(t *testing.T) {
	a, b := served(40, "x"), served(40, "x")
	var inputs []compare.Input
	for i, r := range []*recording{a, b} {
		run, err := summary.Build(t.Context(), []summary.Recording{r},
			summary.Options{Slice: 2 * time.Second, Quantiles: []float64{0.5, 0.99}})
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, compare.Input{Side: fmt.Sprint("side", i), Run: run, Interval: 1})
	}
	result, err := compare.Compare(inputs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page := pageOf(t, html.Options{Compare: result}, a, b)
	for _, want := range []string{`id="compare"`, "Comparison with side0", ">side1<", ">same<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a comparison lacks %q", want)
		}
	}
	if strings.Contains(pageOf(t, html.Options{}, a, b), `id="compare"`) {
		t.Error("a page without a comparison shows one")
	}
}

func TestPipeline(t *testing.T) {
	r := served(10, "x")
	run, err := summary.Build(t.Context(), []summary.Recording{r}, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, v float64, unit string, labels ...string) {
		var pairs []metric.Label
		for i := 0; i < len(labels); i += 2 {
			pairs = append(pairs, metric.Label{Name: labels[i], Value: labels[i+1]})
		}
		run.Derived = append(run.Derived, summary.Derived{Derived: catalog.Derived{Pack: catalog.OmniPack, Name: name,
			Unit: unit, Value: v, Shown: v, Labels: metric.NewLabels(pairs...)}})
	}
	for _, name := range []string{"0", "1", "<b>"} {
		add("stage_time_mean", 0.25, "seconds", "stage", name)
	}
	add("edge_hop_mean", 0.003, "seconds", "from_stage", "0", "to_stage", "1")
	add("edge_hop_mean", 0.004, "seconds", "from_stage", "0", "to_stage", "<b>")
	add("edge_hop_mean", 0.005, "seconds", "from_stage", "0", "to_stage", "nosuch")
	add("bottleneck_stage", 3, "requests", "stage", "1")
	var out bytes.Buffer
	if err := html.Write(&out, []html.Input{{Name: "n", Run: run}}, html.Options{}); err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(out.String(), `<section id="stages"`)
	page, _, _ = strings.Cut(page, "</section>")
	for want, n := range map[string]int{`class="hop"`: 2, `class="box`: 3, "busiest\"": 1, ">3 ms<": 1, ">4 ms<": 1,
		">250 ms<": 3, "stage &lt;b&gt;": 2, "5 ms<": 0} {
		if got := strings.Count(page, want); got != n {
			t.Errorf("the picture of stages has %q %d times, want %d", want, got, n)
		}
	}
}
