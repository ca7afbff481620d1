package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// row is the verdict on one quantity. Value is what is judged: a ratio
// ours/peer or an absolute figure, that must not exceed must.
type row struct {
	goal, what string
	unit       string
	ours, peer stat
	peerName   string
	value      float64
	must       float64
	stretch    float64
	atLeast    bool // value must reach must instead
	// speed says that value is a time or rate of the machine, not a ratio: it is
	// judged as the machine of the goals would have measured it, and the note has
	// the verdict on the value as measured.
	speed bool
	note  string // what the reader should know
}

func (r row) holds(limit float64) bool {
	if r.atLeast {
		return r.value >= limit
	}
	return r.value <= limit
}

func (r row) verdict() string {
	switch {
	case r.must == 0 && r.stretch == 0:
		return "-"
	case r.stretch != 0 && r.holds(r.stretch):
		return "met, stretch met"
	case r.holds(r.must):
		return "met"
	}
	return "NOT MET"
}

// report gathers rows and prints as it goes.
type report struct {
	out    io.Writer
	rows   []row
	absent []string
	// slow is by how much this machine is slower now than the one of the goals'
	// figures, measured with the same parser on the same load before each goal.
	slow float64
}

func newReport(out io.Writer) *report { return &report{out: out} }

func (r *report) say(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// add prints a row and keeps it for the table.
func (r *report) add(w row) {
	if w.speed && r.slow > 0 {
		measured := w
		if w.value /= r.slow; w.atLeast {
			w.value = measured.value * r.slow
		}
		w.note = strings.TrimPrefix(fmt.Sprintf("%s; judged at the speed of the goals' machine, which is %.2f times this one; as measured %s: %s",
			w.note, r.slow, short(measured.value), measured.verdict()), "; ")
	}
	r.rows = append(r.rows, w)
	r.say("%-4s %s: ours %s %s; %s %s; judged %s, must %s, stretch %s: %s%s", w.goal, w.what, w.ours, w.unit,
		orNone(w.peerName), w.peer, short(w.value), limit(w.must, w.atLeast), limit(w.stretch, w.atLeast), w.verdict(), note(w.note))
}

// missing says that a peer was not there.
func (r *report) missing(peer, why string) {
	r.absent = append(r.absent, peer)
	r.say("MISSING PEER %s: %s", peer, why)
}

func orNone(s string) string {
	if s == "" {
		return "no peer"
	}
	return s
}

func note(s string) string {
	if s == "" {
		return ""
	}
	return " [" + s + "]"
}

func limit(v float64, atLeast bool) string {
	if v == 0 {
		return "-"
	}
	if atLeast {
		return "≥ " + short(v)
	}
	return "≤ " + short(v)
}

// anchor is what textparse with a series cache took per sample, in nanoseconds,
// on the machine on which the goals were set.
const anchor = 335

func (r *report) begin(g goal) error {
	slow, err := slowness()
	if err != nil {
		return err
	}
	r.slow = slow
	r.say("\n## %s (%s): %s\nload average %s; textparse takes %.2f times as long here and now as on the machine of the goals", g.name, g.covers, g.what, loadAverage(), slow)
	return nil
}

// slowness times the anchor.
func slowness() (float64, error) {
	l, err := record(1, 16, simulate.Options{})
	if err != nil {
		return 0, err
	}
	stats, err := inTurn(context.Background(), 3, []candidate{timed("anchor", textparseCache(l.bodies))})
	if err != nil {
		return 0, err
	}
	return stats[0].median() / float64(l.samples) / anchor, nil
}

func (r *report) end(took time.Duration) {
	r.say("took %v; load average %s", took.Round(time.Second), loadAverage())
}

// header says what is needed to repeat the run.
func (r *report) header(c config, names []string) {
	r.say("command   go run . -rounds %d -seconds %d %s", c.rounds, c.seconds, strings.Join(names, " "))
	r.say("date      %s", time.Now().UTC().Format(time.RFC3339))
	r.say("commit    %s", output("git", "describe", "--always", "--dirty"))
	r.say("machine   %s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor())
	r.say("versions  %s, %s", runtime.Version(), strings.Join(modules(), ", "))
	r.say("load      %s", loadAverage())
}

// table prints all rows as Markdown.
func (r *report) table() {
	r.say("\n## All\n")
	r.say("| goal | quantity | unit | ours: median (range) | peer | peer: median (range) | judged | must | stretch | verdict | note |")
	r.say("|---|---|---|---|---|---|---|---|---|---|---|")
	for _, w := range r.rows {
		r.say("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |", w.goal, w.what, w.unit, w.ours, w.peerName, w.peer,
			short(w.value), limit(w.must, w.atLeast), limit(w.stretch, w.atLeast), w.verdict(), w.note)
	}
	if len(r.absent) > 0 {
		r.say("\nmissing peers: %s", strings.Join(r.absent, ", "))
	}
}

// grid prints a table of sizes.
func (r *report) grid(head []string, rows [][]string) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, line := range rows {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	w.Flush()
	r.say("%s", strings.TrimRight(b.String(), "\n"))
}

func modules() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var out []string
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/prometheus/prometheus", "github.com/prometheus/common", "modernc.org/sqlite", "github.com/parquet-go/parquet-go":
			out = append(out, m.Path[strings.LastIndex(m.Path, "/")+1:]+" "+m.Version)
		}
	}
	return out
}

func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, " \t:\n")
		}
	}
	return "unknown processor"
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

// output is what a command prints first, or why it could not.
func output(name string, args ...string) string {
	b, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return first
}
