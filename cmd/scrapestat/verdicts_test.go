package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/summary"
)

// The rows of section 10 of the design document verdicts.md that need no command line; the others are in the script
// verdicts.

// judged is the headline alone of two sides.
func judged(t testing.TB, a, b []*summary.Run) *compare.Result {
	t.Helper()
	var sides [2][]compare.Input
	for side, list := range [][]*summary.Run{a, b} {
		for _, r := range list {
			sides[side] = append(sides[side], compare.Input{Path: r.ID, Run: r})
		}
	}
	return judgedInputs(t, sides[0], sides[1])
}

func judgedInputs(t testing.TB, a, b []compare.Input) *compare.Result {
	t.Helper()
	inputs := slices.Concat(a, b)
	for i := range inputs {
		inputs[i].Side = string("ab"[min(1, i/len(a))])
	}
	r, err := compare.Compare(inputs, compare.Options{Metric: regexp.MustCompile("^$")})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// studied are n runs of an engine of other seeds each, with a step so much slower.
func studied(t testing.TB, profile string, n int, seed uint64, slow float64, length time.Duration) []*summary.Run {
	t.Helper()
	rate := 8.0
	if profile == "vllm-omni" {
		rate = 0.5
	}
	var out []*summary.Run
	for i := range n {
		s := scene{profile: profile, options: simulate.Options{Seed: seed + uint64(i), Rate: rate, Hardware: slower(slow)},
			warmup: 10 * time.Second, length: length, interval: time.Second,
			slices: summary.NoiseSlice(length, time.Second)}
		out = append(out, s.run(t, fmt.Sprintf("%s-%d-%v", profile, seed+uint64(i), slow)))
	}
	return out
}

// findings counts the lines that are a change, and those of them that say worse or better.
func findings(r *compare.Result) (all, strong int) {
	for i := range r.Headline {
		if l := &r.Headline[i]; l.Found() {
			all++
			if l.Verdict == judge.Worse || l.Verdict == judge.Better {
				strong++
			}
		}
	}
	return all, strong
}

func verdictOf(r *compare.Result, row string) judge.Verdict {
	for i := range r.Headline {
		if r.Headline[i].Name() == row {
			return r.Headline[i].Verdict
		}
	}
	return ""
}

// mirrored holds that the comparison of swapped sides says the opposite, to the last digits.
func mirrored(t *testing.T, a, b []*summary.Run) {
	t.Helper()
	there, back := judged(t, a, b), judged(t, b, a)
	opposite := map[judge.Verdict]judge.Verdict{judge.Worse: judge.Better, judge.Better: judge.Worse,
		judge.MovedUp: judge.MovedDown, judge.MovedDown: judge.MovedUp}
	alike := func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*(1+math.Abs(a))
	}
	flip := func(v float64) float64 { return 1/(1+v) - 1 }
	for i := range there.Headline {
		x, y := &there.Headline[i], &back.Headline[i]
		want, ok := opposite[x.Verdict]
		if !ok {
			want = x.Verdict
		}
		if x.Name() != y.Name() || y.Verdict != want || x.Evidence != y.Evidence || !alike(x.PHolm, y.PHolm) {
			t.Errorf("%s there: %s %v, back %s %s %v", x.Name(), x.Verdict, x.PHolm, y.Name(), y.Verdict, y.PHolm)
		}
		if !x.Share && (!alike(flip(x.Low), y.High) || !alike(flip(x.High), y.Low)) {
			t.Errorf("%s: [%v, %v] there, [%v, %v] back", x.Name(), x.Low, x.High, y.Low, y.High)
		}
	}
}

// TestVerdictStudy is rows 6, 7 and 10: equal runs have few findings and single runs are never worse or better, a step
// that takes a tenth longer is found, and swapped sides say the opposite. The full study, whose tables are in
// docs/data/compare.md:
//
//	go test ./cmd/scrapestat -run TestVerdictStudy -v -timeout 5h -study 800 -seed 1000000
func TestVerdictStudy(t *testing.T) {
	t.Parallel()
	if *study > 0 {
		fullStudy(t, *study)
		return
	}
	const length = 60 * time.Second
	var equal []*summary.Run
	for _, profile := range []string{"sglang", "vllm-omni", "vllm"} {
		equal = studied(t, profile, 10, 100, 0, length)
		n := withFindings(t, equal, 40)
		t.Logf("%s: %d of 40", profile, n)
		if n > 5 {
			t.Errorf("%s: %d of 40 comparisons of equal runs have a finding", profile, n)
		}
	}
	equal = equal[:6]
	slow := studied(t, "vllm", 3, 900, 0.1, length)
	if all, _ := findings(judged(t, equal[:3], equal[3:])); all > 0 {
		t.Errorf("%d findings in three equal runs a side", all)
	}
	r := judged(t, equal[:3], slow)
	if v := verdictOf(r, "itl_mean"); v != judge.Worse || len(r.Headline) != 10 {
		t.Errorf("a step 10 %% longer: itl_mean is %q, %d lines", v, len(r.Headline))
	}
	mirrored(t, equal[:3], slow)
	mirrored(t, equal[:1], slow[:1])
}

// withFindings counts the first n pairs of single runs whose comparison has a finding; none may say worse or better.
func withFindings(t *testing.T, runs []*summary.Run, n int) (with int) {
	for i := range runs {
		for j := i + 1; j < len(runs) && n > 0; j++ {
			all, strong := findings(judged(t, runs[i:i+1], runs[j:j+1]))
			if n, with = n-1, with+min(1, all); strong > 0 {
				t.Errorf("single runs %s and %s are worse or better", runs[i].ID, runs[j].ID)
			}
		}
	}
	return with
}

// draws are how many comparisons the study makes of each kind.
const draws = 400

// pool are runs of a study: what is judged of them, and no more, so that hundreds fit into memory.
func pool(t *testing.T, profile string, n int, seed uint64, slow float64) (out []compare.Input) {
	t.Helper()
	cat, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := studied(t, profile, 1, seed+uint64(i), slow, 120*time.Second)[0]
		lean := &summary.Run{ID: r.ID, Version: r.Version, Window: r.Window, Options: r.Options}
		in := compare.Input{Path: r.ID, Run: lean, Values: headline.Of(r, cat)}
		if len(in.Values) != 1 { // it would count as one without a finding
			t.Fatalf("%s has %d headlines", r.ID, len(in.Values))
		}
		out = append(out, in)
	}
	return out
}

// drawn yields the sides of the comparisons of a study, k runs each. No run is drawn again before all were.
func drawn(draw *rand.Rand, k int, a, b []compare.Input) func(func(x, y []compare.Input) bool) {
	return func(yield func(x, y []compare.Input) bool) {
		take := func(list []compare.Input, n int) func() []compare.Input {
			var left []int
			return func() (out []compare.Input) {
				if len(left) < n {
					left = draw.Perm(len(list))
				}
				for _, at := range left[:n] {
					out = append(out, list[at])
				}
				left = left[n:]
				return out
			}
		}
		first, second := take(a, k), take(b, k)
		if b == nil {
			first = take(a, 2*k)
		}
		for range draws {
			x := first()
			y := x[k:]
			if b != nil {
				y = second()
			}
			if !yield(x[:k], y) {
				return
			}
		}
	}
}

// fullStudy prints the tables of docs/data/compare.md.
func fullStudy(t *testing.T, n int) {
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) } // as it comes
	draw := rand.New(rand.NewPCG(24, *studySeed))
	for _, profile := range []string{"vllm", "sglang", "vllm-omni"} {
		t.Run(profile, func(t *testing.T) {
			runs := pool(t, profile, n, *studySeed, 0)
			for _, k := range []int{1, 3, 5} {
				with, strong, rows := 0, 0, map[string]int{}
				for a, b := range drawn(draw, k, runs, nil) {
					r := judgedInputs(t, a, b)
					all, s := findings(r)
					with, strong = with+min(1, all), strong+min(1, s)
					for i := range r.Headline {
						if r.Headline[i].Found() {
							rows[r.Headline[i].Name()]++
						}
					}
				}
				say("equal %s, %d a side: %d of %d comparisons with a finding (%.1f %%), %d say worse or better: %v", profile, k,
					with, draws, 100*float64(with)/draws, strong, rows)
				if k == 1 && strong > 0 {
					t.Error("single runs say worse or better")
				}
				// Three standard errors of a share of 5 %, of as many comparisons as there are without a run in common.
				if most := 0.05 + 3*math.Sqrt(0.05*0.95/min(draws, float64(n/(2*k)))); float64(with)/draws > most {
					t.Errorf("%d a side: %d of %d comparisons of equal runs have a finding, more than %.1f %%", k, with, draws,
						100*most)
				}
			}
		})
	}
	t.Run("power", func(t *testing.T) {
		base := pool(t, "vllm", n/2, *studySeed+20_000, 0)
		for _, slow := range []float64{0.05, 0.1, 0.2} {
			runs := pool(t, "vllm", n/2, *studySeed+40_000+uint64(100_000*slow), slow)
			for _, k := range []int{1, 3, 5} {
				rows, any := map[string]int{}, 0
				for a, b := range drawn(draw, k, base, runs) {
					r := judgedInputs(t, a, b)
					all, _ := findings(r)
					any += min(1, all)
					for _, row := range []string{"itl_mean", "e2e_mean", "ttft_mean"} {
						if v := verdictOf(r, row); v == judge.Worse || v == judge.MovedUp {
							rows[row]++
						}
					}
				}
				say("step %.0f %% longer, %d a side: any %d, itl_mean %d, e2e_mean %d, ttft_mean %d of %d", 100*slow, k, any,
					rows["itl_mean"], rows["e2e_mean"], rows["ttft_mean"], draws)
				if slow == 0.1 && (k == 3 && rows["itl_mean"] < draws*38/40 || k == 5 && rows["e2e_mean"] < draws*36/40) {
					t.Errorf("step 10 %% longer, %d a side: found too seldom", k)
				}
			}
		}
	})
}

// TestVerdictsAcrossEngines is row 8: engines meet by canonical ids, with the notes of the catalog.
func TestVerdictsAcrossEngines(t *testing.T) {
	const length = 60 * time.Second
	r := judged(t, studied(t, "vllm", 1, 1, 0, length), studied(t, "sglang", 1, 1, 0, length))
	both := 0
	for i := range r.Headline {
		l := &r.Headline[i]
		if !math.IsNaN(l.From) && !math.IsNaN(l.To) {
			both++
		}
		notes := strings.Join(l.Notes, "")
		if l.Stat == "p99" && !strings.Contains(notes, "c") || l.Name() == "ttft_p99" && !strings.Contains(notes, "n") {
			t.Errorf("%s has the notes %q", l.Name(), notes)
		}
		if l.Name() == "ttft_p99" && l.Verdict != judge.NotJudged {
			t.Errorf("ttft_p99 of other buckets is %s", l.Verdict)
		}
	}
	if both < 7 {
		t.Errorf("%d rows with both values, want 7", both)
	}
	if r := judged(t, studied(t, "vllm", 1, 1, 0, length), studied(t, "dynamo", 1, 1, 0, length)); len(r.Headline) < 3 {
		t.Errorf("vllm against dynamo: %d lines", len(r.Headline))
	}
}

// pairLine is what the JSON of a comparison says of a row.
type pairLine struct {
	ID, Stat, Verdict, Reason string
	Base, Other, Change       float64
	Low, High                 float64
	Err                       float64 `json:"standard_error"`
	PHolm                     float64 `json:"p_holm"`
}

// pairLines compares two runs on the command line.
func pairLines(t *testing.T, args ...string) map[string]pairLine {
	t.Helper()
	var out, talk bytes.Buffer
	args = append([]string{"compare", "--format", "json"}, args...)
	if code := run(t.Context(), args, stdio{nil, &out, &talk}); code != exitDone {
		t.Fatalf("exit code %d: %s", code, talk.String())
	}
	var doc struct{ Headline []pairLine }
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	lines := map[string]pairLine{}
	for _, l := range doc.Headline {
		lines[strings.TrimSuffix(l.ID+"_"+l.Stat, "_")] = l
	}
	return lines
}

// TestVerdictsRealPair is row 4, and row 10 of it: two recordings of a real vLLM under two load generators, exported.
func TestVerdictsRealPair(t *testing.T) {
	dir := t.TempDir()
	for _, x := range [][4]string{{"vllm-bench-rate4", "68s", "119s", "before"}, {"aiperf-rate4", "23s", "51s", "after"}} {
		runOK(t, "export", "../../testdata/runs/"+x[0], "--from", x[1], "--to", x[2], "--slice-duration", "666ms",
			"--estimator", "linear", "--formats", "json", "-o", filepath.Join(dir, x[3]))
	}
	before := "a=" + filepath.Join(dir, "before/server_metrics_export.json")
	after := "b=" + filepath.Join(dir, "after/server_metrics_export.json")
	there, back := pairLines(t, before, after), pairLines(t, after, before)
	within := func(what string, got, want, share float64) {
		if math.Abs(got-want) > share*math.Abs(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	itl, e2e := there["itl_mean"], there["e2e_mean"]
	within("itl_mean before", itl.Base, 4.071e-3, 1e-3)
	within("itl_mean after", itl.Other, 8.152e-3, 1e-3)
	within("change of itl_mean", itl.Change, 1.002, 0.01)
	within("standard error of itl_mean", itl.Err, math.Hypot(0.0998, 0.1187), 0.01)
	within("Holm's p of itl_mean", itl.PHolm, 0.0069*8/7, 0.02) // the errors are one more row than the document had
	within("change of e2e_mean", e2e.Change, 0.666, 0.02)
	if itl.Verdict != "moved up" || e2e.Verdict != "within noise" || there["queue_mean"].Verdict != "same" {
		t.Errorf("itl_mean %s, e2e_mean %s, queue_mean %s", itl.Verdict, e2e.Verdict, there["queue_mean"].Verdict)
	}
	for _, name := range []string{"ttft_p99", "e2e_p99"} {
		if l := there[name]; l.Verdict != "not judged" || l.Reason != "only 2.0 and 1.2 observations above" {
			t.Errorf("%s: %s, %s", name, l.Verdict, l.Reason)
		}
	}
	if back["itl_mean"].Verdict != "moved down" {
		t.Errorf("swapped, itl_mean is %s", back["itl_mean"].Verdict)
	}
	within("high end of itl_mean, swapped", back["itl_mean"].High, 1/(1+itl.Low)-1, 1e-9)
}

// TestVerdictsWithoutEnd is the rest of row 2: when the file was closed says nothing of the window.
func TestVerdictsWithoutEnd(t *testing.T) {
	t.Parallel()
	pair := func(end string) map[string]pairLine {
		dir := t.TempDir()
		var args []string
		for _, name := range []string{"vllm-bench-rate4", "aiperf-rate4"} {
			to := filepath.Join(dir, name)
			if err := os.CopyFS(to, os.DirFS("../../testdata/runs/"+name)); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", filepath.Join(to, "run.db"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.Exec("UPDATE meta SET value = coalesce(nullif(?, ''), value) WHERE key = 'end_ns'", end)
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			args = append(args, to)
		}
		return pairLines(t, args...)
	}
	want := pair("")
	if v := want["itl_mean"].Verdict; len(want) != 10 || v != "moved up" {
		t.Fatalf("%d rows, itl_mean is %s", len(want), v)
	}
	for _, end := range []string{"0", "1893456000000000000"} {
		if got := pair(end); !reflect.DeepEqual(got, want) {
			t.Errorf("closed at %s: %v, want %v", end, got, want)
		}
	}
}

// TestVerdictsOmni: what a listener waits for and how fast audio is made are judged beside text's quantities.
func TestVerdictsOmni(t *testing.T) {
	before, after := omniRun(t, "g4", 1, 1), omniRun(t, "g4", 2, 1.5)
	r := judged(t, []*summary.Run{before}, []*summary.Run{after})
	want := map[string]float64{}
	for i := range before.Latencies {
		switch l := &before.Latencies[i]; l.ID {
		case "audio_ttfp_s":
			want["audio_ttfp_mean"] = l.Histogram.Avg
		case "rtf":
			want["rtf_p99"] = l.Histogram.Quantiles[slices.Index(before.Options.Quantiles, 0.99)].Value
		}
	}
	for _, name := range []string{"audio_ttfp_mean", "rtf_p99", "error_ratio"} {
		at := slices.IndexFunc(r.Headline, func(l compare.Line) bool { return l.Name() == name })
		if at < 0 {
			t.Errorf("no row %s", name)
			continue
		}
		l := &r.Headline[at]
		if v, ok := want[name]; (l.From != v || v == 0) && (ok || name != "error_ratio") {
			t.Errorf("%s is %v, want %v", name, l.From, v)
		}
		if name == "audio_ttfp_mean" && l.Verdict != judge.MovedUp {
			t.Errorf("%s of a stage that takes half as long again is %s", name, l.Verdict)
		}
	}
	if n := len(r.Headline); n > 12 {
		t.Errorf("%d rows, want at most 12", n)
	}
}
