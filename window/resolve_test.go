package window_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/window"
	"github.com/scrapestat/scrapestat/window/traffic"
)

const s = int64(time.Second)

func edge(at float64) traffic.Edge {
	ns := int64(at * 1e9)
	return traffic.Edge{AtNS: ns, LowNS: ns - s/10, HighNS: ns + s/5}
}

func seg(from, to, requests float64) traffic.Segment {
	return traffic.Segment{Start: edge(from), End: edge(to), Requests: requests}
}

// recorded is COMMAND from 10 s to 200 s, polled from 9 s to 202 s, with traffic from 60 s to 190 s.
func recorded() window.Run {
	own := func(name string, at int64) metric.Mark {
		return metric.Mark{Name: name, AtNS: at * s, Kind: metric.MarkOwn}
	}
	return window.Run{OriginNS: 9 * s, EndNS: 202 * s, Interval: time.Second / 3,
		Marks: []metric.Mark{own("profiling", 10), own("end", 200)},
		Traffic: traffic.Traffic{FirstNS: 9 * s, LastNS: 202 * s,
			Segments: []traffic.Segment{seg(60, 95, 300), seg(110, 140, 400), seg(160, 190, 500)}}}
}

func show(w *window.Window) string {
	var b strings.Builder
	fmt.Fprint(&b, w.Rule)
	if w.Phase != "" && w.Rule == window.Phase {
		fmt.Fprintf(&b, " %s/%d", w.Phase, w.Instance)
	}
	for _, p := range w.Parts {
		fmt.Fprintf(&b, " %v-%v", float64(p.StartNS)/1e9, float64(p.EndNS)/1e9)
	}
	if w.Empty != "" {
		return b.String() + " empty: " + w.Empty
	}
	seconds, low, high := w.Bounds()
	fmt.Fprintf(&b, " %s %s %.4g (%.4g..%.4g)", w.Start.Kind, w.End.Kind, seconds, low, high)
	if w.LastNS < 1<<62 {
		fmt.Fprintf(&b, " last %.4g", float64(w.LastNS)/1e9)
	}
	return b.String()
}

func TestResolve(t *testing.T) {
	mark := func(name string, at int64) metric.Mark { return metric.Mark{Name: name, AtNS: at * s} }
	with := func(f func(*window.Run)) window.Run {
		r := recorded()
		f(&r)
		return r
	}
	warm := with(func(r *window.Run) { r.Warmup = 15 * time.Second })
	marked := with(func(r *window.Run) {
		r.Marks = append(r.Marks, mark("high", 61), mark("low", 91), mark("high", 130))
	})
	aiperf := window.Run{OriginNS: s, EndNS: 50 * s, Told: true}
	for i, kind := range []string{"warmup", "profiling", "warmup", "profiling"} {
		name := []string{"warmup", "low", "rewarm", "high"}[i]
		aiperf.Marks = append(aiperf.Marks, metric.Mark{Name: name, AtNS: int64(10+10*i) * s, Kind: kind})
	}
	aiperf.Marks = append(aiperf.Marks, mark("end", 50))
	for _, c := range []struct {
		name     string
		run      window.Run
		ref      string
		want     string
		warnings string
	}{
		{"by default it is the traffic", recorded(), "", "traffic 60-190 traffic traffic 130 (129.7..130.3)", ""},
		{"less a warm-up, from the first request", warm, "", "traffic 75-190 snapped traffic 115 (114.9..115.2)", ""},
		{"less another one", warm, "warmup=0s", "traffic 60-190 traffic traffic 130 (129.7..130.3)", ""},
		{"less a cool-down", recorded(), "warmup=10s,cooldown=20s", "traffic 70-170 snapped snapped 100 (100..100) last 170",
			""},
		{"the collector's own mark is polled at", with(func(r *window.Run) {
			r.Warmup = 15 * time.Second
			r.Marks = append(r.Marks, metric.Mark{Name: "profiling", AtNS: 75*s + s/2, Kind: metric.MarkPolled})
		}), "", "traffic 75.5-190 mark traffic 114.5 (114.4..114.7)", ""},
		{"command", warm, "command,warmup=0s", "command 10-200 mark mark 190 (190..190)", ""},
		{"command less the warm-up", warm, "command", "command 25-200 snapped mark 175 (175..175)", ""},
		{"recording", warm, "recording", "recording 9-202 mark mark 193 (193..193)", ""},
		{"segments", recorded(), "segments", "segments 60-95 110-140 160-190 traffic traffic 95 (94.7..95.3)", ""},
		{"a segment", recorded(), "segment/2", "segment 110-140 traffic traffic 30 (29.7..30.3) last 159.9", ""},
		{"the last segment", recorded(), "segment/3,warmup=5s", "segment 165-190 snapped traffic 25 (24.9..25.2)", ""},
		{"offsets", recorded(), "30s..90s", "range 40-100 snapped snapped 60 (60..60) last 100", ""},
		{"from the first request", recorded(), "+10s..", "range 70-190 snapped traffic 120 (119.9..120.2)", ""},
		{"up to", recorded(), "..1m30s", "range 10-100 snapped snapped 90 (90..90) last 100", ""},
		{"a time", recorded(), "1970-01-01T00:01:40Z..1970-01-01T00:02:00Z",
			"range 100-120 snapped snapped 20 (20..20) last 120", ""},
		{"beyond the last poll", recorded(), "150s..400s", "range 160-202 snapped snapped 42 (42..42) last 202", "range_cut"},
		{"before the first poll", recorded(), "1970-01-01T00:00:00Z..80s", "range 9-90 snapped snapped 81 (81..81) last 90",
			"range_cut"},
		{"after the last poll", recorded(), "300s..400s", "range empty: no poll lies in the range that was asked for", ""},
		{"without a request", recorded(), "5s..20s", "range 15-30 snapped snapped 15 (15..15) last 30", "no_traffic"},
		{"from the first request of a simulation", with(func(r *window.Run) { r.Told = true }), "+10s..+20s",
			"range 70-80 snapped snapped 10 (10..10) last 80", ""},
		{"a phase without a request", with(func(r *window.Run) {
			r.Marks = append(r.Marks, mark("idle", 12), mark("low", 50))
		}), "idle", "phase idle/1 12-50 mark mark 38 (38..38) last 50", "no_traffic"},
		{"a phase", marked, "low", "phase low/1 91-130 mark mark 39 (39..39) last 130", ""},
		{"an instance", marked, "high/2,warmup=5s", "phase high/2 135-200 snapped mark 65 (65..65)", ""},
		{"a mark of the user", with(func(r *window.Run) { r.Marks = append(r.Marks, mark("profiling", 70)) }), "",
			"load_generator 70-200 mark mark 130 (130..130)", ""},
		{"phases of AIPerf", aiperf, "", "load_generator 20-30 40-50 mark mark 20 (20..20)", ""},
		{"one of them", aiperf, "low", "phase low/1 20-30 mark mark 10 (10..10) last 30", ""},
		{"a warm-up of them", aiperf, "rewarm", "phase rewarm/1 30-40 mark mark 10 (10..10) last 40", ""},
		{"a simulation", with(func(r *window.Run) { r.Told = true }), "",
			"load_generator 10-200 mark mark 190 (190..190)", ""},
		{"an import", with(func(r *window.Run) { r.All = true }), "", "recording 10-200 mark mark 190 (190..190)", ""},
		{"an import's traffic", with(func(r *window.Run) { r.All = true }), "traffic",
			"traffic 60-190 traffic traffic 130 (129.7..130.3)", ""},
		{"no traffic", with(func(r *window.Run) { r.Traffic.Segments = nil }), "", "command 10-200 mark mark 190 (190..190)",
			"no_traffic"},
		{"nothing tells", with(func(r *window.Run) { r.Traffic = traffic.Traffic{Blind: true} }), "",
			"command 10-200 mark mark 190 (190..190)", "traffic_unknown"},
		{"busy at the start", with(func(r *window.Run) { r.Traffic.BusyAtStart = true }), "",
			"traffic 10-190 mark traffic 180 (179.9..180.2)", "busy_at_start"},
		{"busy at the end", with(func(r *window.Run) { r.Traffic.InFlightAtEnd = true }), "",
			"traffic 60-200 traffic snapped 140 (139.8..140.1) last 200", ""},
		{"in flight to the end, and nothing counted for 20 s of 140", with(func(r *window.Run) {
			r.Traffic.InFlightAtEnd, r.Traffic.CountedNS = true, 180*s
		}), "", "traffic 60-200 traffic snapped 140 (139.8..140.1) last 200", "load_stands"},
		{"for 6 s of 140", with(func(r *window.Run) { r.Traffic.InFlightAtEnd, r.Traffic.CountedNS = true, 194*s }), "",
			"traffic 60-200 traffic snapped 140 (139.8..140.1) last 200", ""},
		{"busy all the time", with(func(r *window.Run) { r.Traffic.BusyAtStart, r.Traffic.InFlightAtEnd = true, true }), "",
			"command 10-200 mark snapped 190 (190..190) last 200", "busy_at_start"},
		{"it ends with COMMAND", with(func(r *window.Run) { r.Traffic.Segments[2] = seg(160, 200.1, 500) }), "",
			"traffic 60-200 traffic traffic 140 (139.8..140.4)", ""},
		{"a warm-up too long", recorded(), "warmup=5m",
			"traffic empty: the warm-up of 5m0s is longer than the 130.0s of traffic",
			""},
		{"clients know", with(func(r *window.Run) { r.Load = &window.Stretch{StartNS: 60*s + 1, EndNS: 190*s - 1} }), "",
			"traffic 60.000000001-189.999999999 event event 130 (130..130)", ""},
		{"clocks differ", with(func(r *window.Run) { r.Load = &window.Stretch{StartNS: 50 * s, EndNS: 180 * s} }), "",
			"traffic 60-190 traffic traffic 130 (129.7..130.3)", "clock_offset"},
		{"what the recording was to have", with(func(r *window.Run) { r.Window.What = window.Command }), "warmup=1s",
			"command 11-200 snapped mark 189 (189..189)", ""},
	} {
		ref := window.Ref{}
		if c.ref != "" {
			var err error
			if ref, err = window.Parse(c.ref); err != nil {
				t.Fatal(err)
			}
		}
		w, warnings, err := window.Resolve(c.run, ref)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		codes := ""
		for _, x := range warnings {
			codes += x.Code
		}
		if got := show(&w); got != c.want || codes != c.warnings {
			t.Errorf("%s: %q, %q\nwant %q, %q", c.name, got, codes, c.want, c.warnings)
		}
	}
	for ref, want := range map[string]string{
		"high":   `phase "high" occurs 2 times (51.0s..81.0s, 120.0s..190.0s): write high/1 or high/2`,
		"high/3": "it occurs 2 times", "nope": "known: profiling, high, low", "segment/4": "there are 3",
	} {
		r, err := window.Parse(ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := window.Resolve(marked, r); !errors.Is(err, window.ErrNoSuch) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", ref, err, want)
		}
	}
}

// The rates of a target at snapped edges divide by the time between the polls that its gains lie between.
func TestSecondsBetween(t *testing.T) {
	run := recorded()
	ref, err := window.Parse("warmup=15s")
	if err != nil {
		t.Fatal(err)
	}
	w, _, err := window.Resolve(run, ref)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.SecondsBetween(75*s-s/100, 195*s); got != 115.01 {
		t.Errorf("from 10 ms before the edge on: %v s", got)
	}
	w.Start.Kind = window.Mark
	if got := w.SecondsBetween(70*s, 195*s); got != 115 {
		t.Errorf("from a mark on: %v s", got)
	}
}

// Requests that all came between two polls took a time that nobody knows: the window is COMMAND, and that is told.
func TestShortTraffic(t *testing.T) {
	r := recorded()
	r.Traffic.Segments = []traffic.Segment{seg(60, 60, 20)}
	w, warnings, err := window.Resolve(r, window.Ref{})
	if err != nil || w.Rule != window.Command || len(warnings) != 1 || warnings[0].Code != "traffic_short" {
		t.Errorf("%v: %s, %v", err, show(&w), warnings)
	}
}
