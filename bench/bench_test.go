package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary be the children of the harness.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if child, ok := children()[os.Args[1]]; ok {
			if err := child(context.Background(), os.Args[2:], os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		ours, peer stat
		limit      float64
		want       string
	}{
		{stat{1, 3, 2}, stat{2, 2, 2}, 1, "ok"},
		{stat{1, 3, 2}, stat{2, 2, 1}, 1, "over"},
		{stat{1}, stat{2}, 0, "-"},
		{stat{0, 0}, stat{100, 100}, 1e-6, "ok"},
		{stat{1, 1, 5}, stat{2}, 1, "ok"}, // a peer that was measured once
		{stat{1}, stat{0}, 1, "over"},
		{stat{math.NaN()}, stat{1}, 1, "over"},
		{nil, stat{1}, 1, "ok"},
	} {
		r := &report{out: new(bytes.Buffer)}
		r.add("what, unit", c.ours, c.peer, "peer", c.limit)
		cells := r.rows[0].cells()
		if got := cells[len(cells)-1]; got != c.want || r.over() != (c.want == "over") {
			t.Errorf("%v against %v, limit %v: %s, over %v, want %s", c.ours, c.peer, c.limit, got, r.over(), c.want)
		}
	}
}

func TestSlack(t *testing.T) {
	r := &report{out: new(bytes.Buffer), slack: 0.25}
	r.add("what, unit", stat{1.25}, stat{1}, "peer", 1)
	if r.over() {
		t.Error("a ratio within the slack is over")
	}
	r.add("what, unit", stat{1.26}, stat{1}, "peer", 1)
	if !r.over() {
		t.Error("a ratio beyond the slack is not over")
	}
}

func TestThereAndBack(t *testing.T) {
	next := thereAndBack([][]byte{{0}, {1}, {2}})
	var got []byte
	for range 8 {
		got = append(got, next()...)
	}
	if want := "\x00\x01\x02\x01\x00\x01\x02\x01"; string(got) != want {
		t.Errorf("got %v, want %v", got, []byte(want))
	}
}

func TestChoose(t *testing.T) {
	for name, want := range map[string]int{"all": len(parts()), "hold": 3, "hold-slow": 1, "nothing": 0} {
		chosen, err := choose([]string{name})
		if len(chosen) != want || (err != nil) != (want == 0) {
			t.Errorf("%s: %d parts, %v, want %d", name, len(chosen), err, want)
		}
	}
}

// TestParts runs parts of the harness on little work, without peers of this machine.
// What the ratios are is not asked: the work is too little for them.
func TestParts(t *testing.T) {
	builder := &bench{report: &report{out: new(bytes.Buffer)}, work: t.TempDir()}
	binary, err := builder.scrapestat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"-rounds=1", "-seconds=1", "-polls=24", "-targets=40", "-python=", "-prometheus=none",
		"-scrapestat=" + binary}
	for part, rows := range map[string]int{
		"decode": 3, "store": 3, "collect": 3, "analysis": 4, "hostile": 4, "hold-polls": 4, "hold-end": 2,
	} {
		t.Run(part, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), append(flags[:len(flags):len(flags)], part), &out)
			if err != nil && !errors.Is(err, errOver) {
				t.Fatalf("%v: %s", err, out.Bytes())
			}
			_, table, _ := strings.Cut(out.String(), "\npart ")
			got := strings.Split(strings.TrimSpace(table), "\n")[1:]
			for _, line := range got {
				if !strings.HasPrefix(line, part) || strings.Contains(line, "NaN") || strings.Contains(line, "Inf") {
					t.Errorf("row without a ratio: %s", line)
				}
			}
			over := strings.Contains(table, "  over")
			if len(got) != rows || over != errors.Is(err, errOver) {
				t.Errorf("%d rows, error %v, want %d rows: %s", len(got), err, rows, out.Bytes())
			}
		})
	}
}
