package main

import (
	"testing"
	"time"
)

// grid returns n times an interval apart that drift by a little each.
func grid(n int, every, drift time.Duration) []int64 {
	var out []int64
	for i := range n {
		out = append(out, 1_790_000_000_000_000_000+int64(i)*int64(every+drift))
	}
	return out
}

func TestJudge(t *testing.T) {
	const every = 100 * time.Millisecond
	check := func(name string, times []int64, from, to int64, missed int, worst, drift time.Duration) {
		t.Helper()
		p := judge([][]int64{times}, from, to, every)
		if p.missed != missed || p.worst != worst || p.drift != drift {
			t.Errorf("%s: missed %d, worst %v, drift %v, want %d, %v, %v", name, p.missed, p.worst, p.drift, missed, worst, drift)
		}
	}
	even := grid(101, every, 0)
	check("even", even, even[0], even[100], 0, 0, 0)
	check("part of the window", even, even[50], even[100], 0, 0, 0)
	check("one missing", append(append([]int64{}, even[:40]...), even[41:]...), even[0], even[100], 0, 0, 0) // 100 intervals hold 100 or 101 requests
	check("three missing", append(append([]int64{}, even[:40]...), even[43:]...), even[0], even[100], 2, 0, 0)
	late := append([]int64{}, even...)
	late[70] += int64(7 * time.Millisecond)
	check("one late", late, even[0], even[100], 0, 7*time.Millisecond, 0)
	slow := grid(101, every, 10*time.Microsecond)
	check("drift", slow, slow[0], slow[100], 0, 500*time.Microsecond, 10*time.Microsecond)
	check("nothing", nil, even[0], even[100], 100, 0, 0)
}

func TestStat(t *testing.T) {
	s, u := stat{[]float64{3, 1, 2}}, stat{[]float64{6, 4, 2}}
	if s.median() != 2 || s.over(u).median() != 0.5 || (stat{}).median() != 0 || (stat{[]float64{1, 4}}).median() != 2.5 {
		t.Errorf("medians: %v, %v", s, s.over(u))
	}
	if got := s.String(); got != "2.00 (1.00 to 3.00)" {
		t.Errorf("got %q", got)
	}
}

func TestRingTurns(t *testing.T) {
	r := newRing([][]byte{{0}, {1}, {2}})
	var got []byte
	for range 8 {
		got = append(got, r.next()...)
	}
	if want := "\x00\x01\x02\x01\x00\x01\x02\x01"; string(got) != want {
		t.Errorf("got %v, want %v", got, []byte(want))
	}
}

func TestChosen(t *testing.T) {
	for _, g := range goals() {
		if !chosen(g, []string{g.name}) || !chosen(g, []string{"all"}) || chosen(g, []string{"nothing"}) {
			t.Errorf("%s is not chosen by its name alone", g.name)
		}
	}
	if !known("p12") || known("P20") {
		t.Error("goals are not found by number")
	}
}
