package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/history"
)

// nights records simulated runs beneath a directory, one a day, and adds them to histories.
type nights struct {
	t   *testing.T
	dir string
	n   int // recorded so far
}

// run runs a command and returns its code and what it printed.
func (n *nights) run(args ...string) (code int, out string) {
	n.t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(n.t.Context(), args, stdio{in: strings.NewReader(""), out: &stdout, err: &stderr})
	return code, stdout.String() + stderr.String()
}

// wants runs a command that must end with a code and print texts.
func (n *nights) wants(code int, texts []string, args ...string) (out string) {
	n.t.Helper()
	got, out := n.run(args...)
	if got != code {
		n.t.Errorf("%q ends with %d, want %d: %s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			n.t.Errorf("%q does not print %q: %s", args, text, out)
		}
	}
	return out
}

// record records the next night with a step of an engine, and returns its directory.
func (n *nights) record(step string) string {
	n.t.Helper()
	n.n++
	dir := filepath.Join(n.dir, "runs", fmt.Sprintf("%03d", n.n))
	n.wants(exitDone, nil, "simulate", "vllm", "--record", dir, "--duration", "30s", "--seed", fmt.Sprint(n.n), "--step",
		step, "--start", fmt.Sprintf("2026-%02d-%02dT00:00:00Z", 1+n.n/28, 1+n.n%28), "--tag",
		fmt.Sprintf("git.commit=c%d", n.n), "--tag", "git.branch=main")
	return dir
}

// TestHistoryNights is the example of docs/check.md, and rows 8 to 10 and 13 of the acceptance table with shorter runs:
// thirty good nights, a noisy one, and bad ones.
func TestHistoryNights(t *testing.T) {
	t.Parallel()
	n := &nights{t: t, dir: t.TempDir()}
	db := filepath.Join(n.dir, "history.db")
	var good []string
	for range 30 {
		good = append(good, n.record("8ms"))
	}
	few := filepath.Join(n.dir, "few.db")
	n.wants(exitDone, nil, append([]string{"history", "add", "-f", few}, good[:3]...)...)
	n.wants(exitDone, []string{"30 runs added"}, "history", "add", "-f", db, filepath.Join(n.dir, "runs"))

	noisy, bad := n.record("8.1ms"), n.record("8.8ms")
	n.night(exitDone, "0 of 10 are worse", noisy, db)
	n.night(exitBad, "WORSE", bad, db)
	n.wants(exitBad, []string{"itl_mean worse", "(--history)", "WORSE"}, "check", bad, "--history", db)
	n.wants(exitBad, []string{`"verdict": "FAIL"`}, "check", bad, "--history", db, "--format", "json")
	n.wants(exitIncomplete, []string{"3 comparable runs, 6 are needed"}, "check", bad, "--history", few)
	n.wants(exitIncomplete, []string{"no history for this configuration (nearest: ", "differs in tag gpu"}, "check",
		n.tagged("gpu=x"), "--history", db, "--key", "gpu")

	// One bad night is no change yet; the third confirms it, with its commit.
	n.wants(exitDone, []string{"nothing bad"}, "history", "check", "-f", db)
	more := []string{bad, n.record("8.8ms"), n.record("8.8ms"), n.record("8.8ms")}
	n.repeats(more[1:], db)
	n.wants(exitDone, nil, "history", "add", "-f", db, filepath.Join(n.dir, "runs"))
	n.wants(exitBad, []string{"worse   itl_mean +", "c3"}, "history", "check", "-f", db)
	v := n.view(db)
	if e := v.Events; len(e) != 1 || e[0].Changes[0].Quantity != "itl_mean" || e[0].Changes[0].At.Commit != "c32" ||
		e[0].Changes[0].Change.Change < 0.07 || e[0].Changes[0].Change.Change > 0.13 {
		t.Errorf("events %+v", e)
	}
	for _, s := range v.Series {
		if s.Quantity == "request_rate" && len(s.Changes()) > 0 {
			t.Errorf("the request rate changed: %+v", s.Changes())
		}
	}
	n.wants(exitDone, nil, "history", "accept", "-f", db, bad, "--note", "meant")
	n.wants(exitDone, []string{"nothing bad"}, "history", "check", "-f", db)

	// Row 10: single runs of the configuration are judged by the noise of the others.
	n.comparesByHistory(good[0], good[1], db)
}

// night is what the example of docs/check.md does after a run was recorded; code and text are those of its check.
func (n *nights) night(code int, text, dir, db string) {
	n.t.Helper()
	doc, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		n.t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(n.dir, name) }
	own := strings.NewReplacer(" run", " "+dir, "history.db", db, "junit.xml", file("junit.xml"), "verdict.md",
		file("verdict.md"))
	_, example, _ := strings.Cut(string(doc), "./benchmark.sh\n")
	example, _, _ = strings.Cut(example, "```")
	for i, line := range strings.Split(strings.TrimSpace(example), "\n") {
		args := strings.Fields(own.Replace(line))[1:]
		if want := []int{exitDone, code}[i]; i == 0 {
			n.wants(want, []string{"1 run added"}, append(args, "-f", db)...)
		} else {
			n.wants(want, nil, args...)
		}
	}
	verdict, err := os.ReadFile(file("verdict.md"))
	if err != nil || !strings.Contains(string(verdict), text) {
		n.t.Errorf("the verdict does not have %q: %s %v", text, verdict, err)
	}
	if _, err := os.Stat(file("junit.xml")); err != nil {
		n.t.Error(err)
	}
}

// repeats holds that several new runs are judged together, when they are repeats, and by the history alone.
func (n *nights) repeats(bad []string, db string) {
	n.t.Helper()
	check := func(code int, text string, args ...string) {
		n.t.Helper()
		n.wants(code, []string{text}, append([]string{"check", "--history", db}, args...)...)
	}
	check(exitBad, "against the history: the last level, 32 runs; this is 3 runs", bad...)
	check(exitUsage, "the same run twice", bad[0], bad[0])
	check(exitUsage, "it differs in tag gpu", bad[0], filepath.Join(n.dir, "tagged"), "--key", "gpu")
	check(exitUsage, "several RUNs are repeats", bad[0], bad[1], "--assert", "ttft p99 < 1s")
}

// tagged records a run with a tag beside the others.
func (n *nights) tagged(tag string) string {
	n.t.Helper()
	dir := filepath.Join(n.dir, "tagged")
	n.wants(exitDone, nil, "simulate", "vllm", "--record", dir, "--duration", "30s", "--tag", tag)
	return dir
}

func (n *nights) view(db string) *history.View {
	n.t.Helper()
	f, err := history.Open(n.t.Context(), db, false)
	if err != nil {
		n.t.Fatal(err)
	}
	defer f.Close()
	v, err := f.View(n.t.Context(), history.Query{})
	if err != nil {
		n.t.Fatal(err)
	}
	return v
}

// comparesByHistory holds that a comparison takes the noise of the history less the runs that are compared.
func (n *nights) comparesByHistory(a, b, db string) {
	n.t.Helper()
	var doc struct {
		Headline []struct {
			ID, Stat, Evidence string
			DF                 float64
		}
	}
	out := n.wants(exitDone, nil, "compare", "a="+a, "b="+b, "--history", db, "--format", "json", "--fail-on", "worse",
		"--allow-load-change")
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		n.t.Fatal(err)
	}
	byHistory := 0
	for _, l := range doc.Headline {
		if l.Evidence == "history" && l.DF > 0 { // of Fisher's test they are infinite
			if byHistory++; !(l.DF >= 5 && l.DF <= 33) {
				n.t.Errorf("%s %s: %v degrees of freedom", l.ID, l.Stat, l.DF)
			}
		}
	}
	if byHistory < 5 {
		n.t.Errorf("%d rows are judged by the history: %s", byHistory, out)
	}
}

// TestHistoryReal is row 11: recordings of real servers. One configuration of vLLM for what the server says, two with
// the command of the load; another engine is another configuration. (No headline: script history.)
func TestHistoryReal(t *testing.T) {
	t.Parallel()
	n := &nights{t: t, dir: t.TempDir()}
	db := filepath.Join(n.dir, "history.db")
	const runs = "../../testdata/runs/"
	n.wants(exitDone, []string{"4 runs added"}, "history", "add", "-f", db,
		runs+"vllm-bench-rate4", runs+"aiperf-rate4", runs+"triton-steady", runs+"bentoml-sequential")
	configs := map[string]map[string]string{}
	for _, c := range n.view(db).Configs {
		configs[c.Fingerprint] = c.Facts
	}
	byRun := map[string]*history.Run{}
	for _, r := range n.view(db).Runs {
		byRun[filepath.Base(r.Path)] = r
	}
	bench, aiperf := byRun["vllm-bench-rate4"], byRun["aiperf-rate4"]
	differs := history.Differ(configs[bench.Fingerprint], configs[aiperf.Fingerprint])
	for _, d := range differs {
		if d.Name != "command" {
			t.Errorf("%s differs: %s, %s", d.Name, d.From, d.To)
		}
	}
	if bench.Fingerprint == byRun["triton-steady"].Fingerprint {
		t.Error("another engine has the configuration of vLLM")
	}
	out := n.wants(exitDone, nil, "history", "list", "-f", db, "--why",
		bench.Fingerprint+","+byRun["triton-steady"].Fingerprint)
	if !strings.Contains(out, "engine vllm") {
		t.Errorf("what differs: %s", out)
	}
	for _, s := range n.view(db).Series {
		if s.Fingerprint == aiperf.Fingerprint && s.Quantity == "itl_mean" {
			if got := s.Points[0].Value; math.Abs(got-0.008152) > 5e-7 {
				t.Errorf("itl_mean of aiperf-rate4: %v", got)
			}
		}
	}
}

// TestHostileBranch: the name of a branch, which comes from a file, does not reach a terminal as it is.
func TestHostileBranch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := "time,branch,x\n"
	for i := range history.FewestRuns {
		lines += fmt.Sprintf("2026-01-0%dT00:00:00Z,\x1b]0;a\x07,1\n", i+1)
	}
	csv, file := filepath.Join(dir, "x.csv"), filepath.Join(dir, "h.db")
	if err := os.WriteFile(csv, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	try(t, exitDone, "", "history", "add", "-f", file, "--csv", csv)
	for _, args := range [][]string{{"check"}, {"list"}, {"show"}, {"show", "--format", "markdown"}} {
		args = append(append([]string{"history"}, args...), "-f", file)
		if out := try(t, exitDone, `\x1b]0;a`, args...); strings.Contains(out, "\x1b") {
			t.Errorf("%q prints it raw", args)
		}
	}
}
