package main

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row compares ours with a peer that did the same work in the same run. The peer is
// another program, the least that the work can cost, or ourselves on other work.
type row struct {
	part, what string // what ends in the unit
	ours, peer stat
	peerName   string
	limit      float64 // of ours/peer; 0 judges nothing
}

// ratio is the median of the ratios of the rounds.
func (w row) ratio() float64 { return w.ours.over(w.peer).median() }

// over reports whether the ratio is over its limit. One that is not a number is.
func (w row) over() bool { return w.limit > 0 && !(w.ratio() <= w.limit) }

func (w row) cells() []string {
	limit, verdict := short(w.limit), "ok"
	switch {
	case w.limit == 0:
		limit, verdict = "-", "-"
	case w.over():
		verdict = "over"
	}
	return []string{w.part, w.what, w.ours.String(), w.peerName, w.peer.String(),
		short(w.ratio()), limit, verdict}
}

// report gathers rows and prints them as they come.
type report struct {
	out  io.Writer
	part string
	rows []row
	// slack is the share that ratios may be over their limits.
	slack float64
}

func (r *report) say(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

func (r *report) begin(p part) {
	r.part = p.name
	r.say("\n## %s: %s\nload average %s", p.name, p.what, loadAverage())
}

// add judges ours against a peer's by limit, with slack; 0 judges nothing. what ends in the unit.
func (r *report) add(what string, ours, peer stat, peerName string, limit float64) {
	w := row{r.part, what, ours, peer, peerName, limit * (1 + r.slack)}
	r.rows = append(r.rows, w)
	r.say("%s", strings.Join(w.cells(), " | "))
}

// missing names a peer that is not on this machine.
func (r *report) missing(peer string, why error) { r.say("MISSING PEER %s: %v", peer, why) }

func (r *report) over() bool { return slices.ContainsFunc(r.rows, row.over) }

// header is what is needed to repeat the run.
func (r *report) header(args []string) {
	r.say("command   go run . %s", strings.Join(args, " "))
	r.say("date      %s", time.Now().UTC().Format(time.RFC3339))
	r.say("commit    %s", output("git", "describe", "--always", "--dirty"))
	cpu := output("grep", "-m1", "model name", "/proc/cpuinfo")
	r.say("machine   %s, %d cores, %s", runtime.Version(), runtime.NumCPU(), cpu)
}

// table prints all rows.
func (r *report) table() {
	r.say("")
	w := tabwriter.NewWriter(r.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join([]string{"part", "row", "ours", "peer", "peer's", "ratio", "limit", "verdict"}, "\t"))
	for _, row := range r.rows {
		fmt.Fprintln(w, strings.Join(row.cells(), "\t"))
	}
	w.Flush()
}

func loadAverage() string { return output("cut", "-d/", "-f1", "/proc/loadavg") }

// output is what a command prints first, or why it could not.
func output(name string, args ...string) string {
	b, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return first
}
