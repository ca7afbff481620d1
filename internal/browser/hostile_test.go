package browser

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/report/html"
	"github.com/scrapestat/scrapestat/summary"
)

// payloads run something, if a page takes them for more than text.
var payloads = []string{
	`<script>window.__ran++;alert(1)</script>`,
	`</script><script>window.__ran++</script>`,
	`</title><script>window.__ran++</script>`,
	`</style><script>window.__ran++</script>`,
	`--><script>window.__ran++</script><!--`,
	`]]><script>window.__ran++</script>`,
	`<img src=x onerror="window.__ran++">`,
	`<img src=x onerror=window.__ran++//`,
	`"><img src=x onerror=window.__ran++>`,
	`'><img src=x onerror=window.__ran++>`,
	`<svg onload=window.__ran++>`,
	`<svg><script>window.__ran++</script></svg>`,
	`<svg><animate onbegin=window.__ran++ attributeName=x dur=1s>`,
	`"><svg/onload=window.__ran++>`,
	`<body onload=window.__ran++>`,
	`<iframe src="javascript:parent.__ran++"></iframe>`,
	`<iframe srcdoc="<script>parent.__ran++</script>"></iframe>`,
	`<object data="javascript:window.__ran++"></object>`,
	`<embed src="javascript:window.__ran++">`,
	`<a href="javascript:window.__ran++" autofocus onfocus=window.__ran++>x</a>`,
	`javascript:window.__ran++`,
	`" onmouseover="window.__ran++" x="`,
	`' onmouseover='window.__ran++' x='`,
	`" autofocus onfocus="window.__ran++`,
	`<input autofocus onfocus=window.__ran++>`,
	`<details open ontoggle=window.__ran++><summary>x</summary></details>`,
	`<video><source onerror=window.__ran++></video>`,
	`<math><mtext><script>window.__ran++</script></mtext></math>`,
	`<style>@import "http://127.0.0.1:9/x.css";</style>`,
	`<link rel=stylesheet href=http://127.0.0.1:9/x.css>`,
	`<meta http-equiv=refresh content="0;url=http://127.0.0.1:9/">`,
	`<base href=http://127.0.0.1:9/>`,
	`<form action=http://127.0.0.1:9/><button id=search>x</button></form>`,
	"${window.__ran++}`;window.__ran++;`",
	`");window.__ran++;("`,
	`\u003cimg src=x onerror=window.__ran++\u003e`,
	`&lt;img src=x onerror=window.__ran++&gt;&#60;script&#62;window.__ran++&#60;/script&#62;`,
	`{{.Runs}}{{constructor.constructor('window.__ran++')()}}`,
	"\x1b]0;x\a<scr\x00ipt>window.__ran++</scr\x00ipt>\u202e\u2028\u2029\ufeff",
	`__proto__`,
	`constructor`,
}

// hostileInput has a payload wherever a text can be; a page has it in all of the
// places at once.
func hostileInput(text string) html.Input {
	const origin, second = 1_800_000_000_000_000_000, int64(time.Second)
	labels := metric.NewLabels(metric.Label{Name: text, Value: text})
	warnings := []metric.Warning{{Code: text, Text: text}}
	line := html.NewTimeline(html.TimelineOptions{OriginNS: origin, Interval: time.Second})
	var g metric.SnapshotBuilder
	slot := func(name string, t metric.Type, s metric.SampleID) int {
		return g.Slot(g.Series(g.Family(name, t, text, text), labels), s)
	}
	c, v := slot("c"+text, metric.Counter, metric.SampleID{}), slot("g"+text, metric.Gauge, metric.SampleID{})
	q := slot("s"+text, metric.Summary, metric.SampleID{Role: metric.RoleQuantile, Bound: 0.5, Text: text})
	le, all := slot("h"+text, metric.Histogram, metric.SampleID{Role: metric.RoleBucket, Bound: 1, Text: text}),
		slot("h"+text, metric.Histogram, metric.SampleID{Role: metric.RoleBucket, Bound: math.Inf(1), Text: "+Inf"})
	for i := range 10 {
		s := &metric.Snapshot{Seq: uint64(i), SentNS: origin + int64(i)*second, FirstByteNS: origin + int64(i)*second}
		for _, k := range []int{c, v, q, le, all} {
			g.Set(k, float64(i*(i%3+1)))
		}
		g.Finish(s)
		_ = line.Add(s) // it takes what a Gatherer made
	}
	window := summary.Window{Phase: text, StartNS: origin + second, EndNS: origin + 9*second}
	series := func() []summary.Series {
		return []summary.Series{{Labels: labels,
			Series: normalize.Series{Counter: &normalize.Counter{Defined: true, Total: 3}, Warnings: warnings}}}
	}
	d := summary.Derived{Derived: catalog.Derived{Pack: text, Name: text, Unit: text, Labels: labels, Help: text,
		Headline: true, Value: 1, Shown: 1,
		Families: []string{text}, Flags: []string{text}}}
	for i := range 4 {
		d.Slices = append(d.Slices, summary.DerivedSlice{Slice: normalize.Slice{StartNS: window.StartNS + 2*int64(i)*second,
			EndNS: window.StartNS + 2*int64(i+1)*second}, Value: 1, Shown: float64(i)})
	}
	run := &summary.Run{ID: text, Version: text, Tags: map[string]string{text: text}, Command: []string{text},
		OriginNS: origin, Host: text,
		Limits: map[string]int64{text: 1}, Window: window,
		Phases:  []summary.Phase{{Name: text, StartNS: origin, EndNS: origin + 5*second}},
		Options: summary.Options{Estimator: text, Quantiles: []float64{0.5}, Slice: 2 * time.Second}, Warnings: warnings,
		Metrics: []summary.Metric{{Name: "c" + text, Type: metric.Counter, Help: text, Unit: text, Series: series()},
			{Name: "g" + text, Type: metric.Gauge, Help: text, OwnUnit: text},
			{Name: "h" + text, Type: metric.Histogram, Help: text}},
		Derived: []summary.Derived{d},
		Endpoints: []summary.Endpoint{{Target: metric.Target{Name: text, URL: text, Source: text, Labels: labels},
			Warnings: warnings,
			Lives:    []metric.TargetEvent{{AtNS: origin, Reason: text}},
			Ledger:   summary.Ledger{Scheduled: 2, Dropped: []metric.Drop{{Reason: text, Lines: 1, First: text}}}}}}
	run.Endpoints[0].Ledger.Outcomes[metric.HTTPError] = 1
	run.Endpoints[0].Ledger.FirstOf[metric.HTTPError] = summary.PollError{Text: text}
	return html.Input{Name: text, Run: run, Timeline: line}
}

func TestHostileLabelsStayText(t *testing.T) {
	if len(payloads) < 40 {
		t.Fatalf("got %d payloads, want 40", len(payloads))
	}
	b := browse(t)
	b.size(1400, 8000) // all is seen at once, and so drawn
	dir := t.TempDir()
	control(b, dir)
	ran := 0
	for i, text := range payloads {
		path := filepath.Join(dir, fmt.Sprintf("%d.html", i))
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		in := hostileInput(text)
		ins := []html.Input{in}
		if i%4 == 0 {
			ins = append(ins, hostileInput(text)) // several runs have other parts
		}
		if err := html.Write(f, ins, html.Options{Title: text}); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		b.open("file://" + path)
		// All that the script makes of the data: pictures, legends, lists, tables.
		b.unfold()
		eval[any](b, `document.querySelector("#drawall").click()`)
		b.until(`[...document.querySelectorAll(".card")].every((c) => c.querySelector("canvas"))`)
		got := eval[struct{ Ran, Odd, Links int }](b, `(() => { document.querySelectorAll("details").forEach((d) => { `+
			`d.open = true; });
			for (const e of document.querySelectorAll("*")) for (const k of ["mouseover", "focus", "toggle"]) `+
			`e.dispatchEvent(new Event(k));
			return {Ran: window.__ran, Odd: document.querySelectorAll("img,iframe,object,embed,video,math,base,form,body `+
			`script:not([type]):not(:nth-last-of-type(-n+2)),link:not([rel=icon]),[onload],[onerror],[onmouseover],`+
			`[onfocus]").length,
				Links: [...document.links].filter((a) => !a.getAttribute("href").startsWith("#")).length}; })()`)
		if got.Ran != 0 || got.Odd != 0 || got.Links != 0 {
			t.Errorf("payload %q: ran %d times, made %d elements and %d links, want none", text, got.Ran, got.Odd, got.Links)
			ran++
		}
		b.quiet("file://" + path)
		if seen := eval[string](b, "document.querySelector('h1').textContent"); !strings.ContainsAny(text,
			"\x00\x1b\u202e") && seen != text {
			t.Errorf("payload %q is shown as %q", text, seen)
		}
	}
	b.mu.Lock()
	dialogs := b.dialogs
	b.mu.Unlock()
	if dialogs != 0 {
		t.Errorf("got %d dialogs, want none", dialogs)
	}
	faults.Figure(t, "xss", fmt.Sprintf("%d payloads, each %d times in a report of one run, loaded in Chromium: %d "+
		"ran or became markup", len(payloads), places(t), ran),
		"go -C internal/browser test . -run TestHostileLabelsStayText -v")
}

// places is how often a report has the text of its input.
func places(t *testing.T) int {
	t.Helper()
	const text = "here-it-is"
	var b strings.Builder
	if err := html.Write(&b, []html.Input{hostileInput(text)}, html.Options{Title: text}); err != nil {
		t.Fatal(err)
	}
	n := strings.Count(b.String(), text)
	if n < 20 {
		t.Errorf("the text is %d times in a page, want 20 at least", n)
	}
	return n
}

// control shows that the payloads run where a page is careless, so that the test
// can fail.
func control(b *tab, dir string) {
	b.t.Helper()
	ran := 0
	for i, text := range payloads {
		if strings.Contains(text, "http-equiv") {
			continue // the page goes elsewhere, maybe while it is asked
		}
		path := filepath.Join(dir, fmt.Sprintf("control%d.html", i))
		if err := os.WriteFile(path, []byte("<html data-ready=true><title>x</title><h1>"+text+"</h1><p title=\""+text+
			"\">x</p></html>"), 0o600); err != nil {
			b.t.Fatal(err)
		}
		b.call("Page.navigate", map[string]any{"url": "file://" + path})
		b.until("document.readyState === 'complete' || window.__ran > 0")
		eval[any](b, "new Promise((ok) => setTimeout(ok, 5))")
		if eval[int](b, "window.__ran") > 0 {
			ran++
		}
	}
	if ran < len(payloads)/3 {
		b.t.Errorf("only %d of %d payloads run in a careless page: the test shows little", ran, len(payloads))
	}
	b.t.Logf("%d payloads run in a careless page", ran)
	b.mu.Lock()
	b.dialogs = 0
	b.mu.Unlock()
}
