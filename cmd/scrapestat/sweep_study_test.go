package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSweepFresh draws servers, measures how much each does in ten minutes of too much load, and sweeps six loads of
// two minutes around that: the capacity is within 3 %, loads below nine tenths are stable and those above eleven
// tenths over-saturated, and plateaus of four loads that are well apart are found without marks, each start within 10
// s. Of loads a sixth apart two minutes of ten requests a second tell nothing beyond chance. SCRAPESTAT_SWEEPS=12
// draws so many and prints the table of docs/sweep.md, SCRAPESTAT_SEED chooses others.
func TestSweepFresh(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SCRAPESTAT_SWEEPS"))
	first, _ := strconv.Atoi(os.Getenv("SCRAPESTAT_SEED"))
	near, wrong, found, invented, worst := 0, 0, 0, 0, 0.0
	for i := range max(n, 1) {
		seed := 700 + first + i
		s := drawSweep(seed)
		got := s.sweep(t, seed)
		off := got.capacity/s.truth - 1
		t.Logf("| %s | %.2f | %.2f | %+.1f %% | %s | %d of %d, %d invented |", s.server, s.truth, got.capacity, 100*off,
			got.states, got.found, len(plateauLoads)-1, got.invented)
		worst = max(worst, math.Abs(off))
		if math.Abs(off) <= 0.03 {
			near++
		}
		if got.wrong > 0 {
			wrong++
		}
		found, invented = found+got.found, invented+got.invented
	}
	all := max(n, 1)
	starts := all * (len(plateauLoads) - 1)
	t.Logf("of %d: %d capacities within 3 %%, %d with a wrong state; of %d starts of plateaus %d found, %d invented", all,
		near, wrong, starts, found, invented)
	if near < all-max(1, all/6) || worst > 0.06 || wrong > max(1, all/10) || found < starts-starts/10 ||
		invented > all/10 {
		t.Error("more are wrong than chance explains")
	}
}

// sweepLoads are shares of what a server can do.
var (
	sweepLoads   = []float64{0.4, 0.6, 0.75, 0.88, 1.12, 1.3}
	plateauLoads = []float64{0.3, 0.55, 0.88, 1.35}
)

// sweptServer is a server of the simulator; truth is how many requests a second it ends under too much load.
type sweptServer struct {
	server string
	truth  float64
}

func drawSweep(seed int) *sweptServer {
	r := rand.New(rand.NewPCG(uint64(seed), 4))
	between := func(from, to int) int { return from + r.IntN(to-from+1) }
	switch seed % 3 {
	case 0:
		return &sweptServer{server: fmt.Sprintf("vllm,slots=%d,step=%dms", between(8, 40), between(8, 20))}
	case 1:
		return &sweptServer{server: fmt.Sprintf("vllm,blocks=%d,step=%dms", between(600, 1200), between(8, 14))}
	}
	return &sweptServer{server: fmt.Sprintf("sglang,slots=%d,step=%dms", between(8, 32), between(8, 16))}
}

// sweptResult is what a sweep told: wrong states, and of the starts of plateaus those found and invented.
type sweptResult struct {
	capacity               float64
	states                 string
	wrong, found, invented int
}

func (s *sweptServer) sweep(t *testing.T, seed int) (out sweptResult) {
	tmp := t.TempDir()
	record := func(name, rates string, args ...string) string {
		return sweptRun(t, filepath.Join(tmp, name), append(args, "--seed", strconv.Itoa(seed), s.server+rates)...)
	}
	rough := sweepOf(t, record("rough", ",rate=60", "--warmup", "30s", "--duration", "60s"), "--load", "arrivals",
		"--skip", "0s").Sweeps[0].Points[0].X
	s.truth = sweepOf(t, record("truth", fmt.Sprintf(",rate=%.2f", 1.3*rough), "--warmup", "1m", "--duration", "10m"),
		"--load", "arrivals", "--skip", "0s").Sweeps[0].Points[0].X
	steps := func(name string, loads []float64) string {
		rates, args := "", []string{"--warmup", "20s", "--duration", strconv.Itoa(120*len(loads)) + "s"}
		for i, share := range loads {
			at := strconv.Itoa(20+120*i) + "s"
			when := map[bool]string{true: "rate", false: "rate@" + at}[i == 0]
			rates += fmt.Sprintf(",%s=%.2f", when, share*s.truth)
			args = append(args, "--mark", fmt.Sprintf("rate-%.2f=+%s", share*s.truth, at))
		}
		return record(name, rates, args...)
	}
	dir := steps("points", sweepLoads)
	got := sweepOf(t, dir).Sweeps[0]
	out.capacity = got.Capacity.X
	var states []string
	for i, p := range got.Points {
		states = append(states, p.State)
		if want := map[bool]string{true: "stable", false: "over-saturated"}[sweepLoads[i] < 1]; p.State != want {
			out.wrong++
		}
	}
	out.states = strings.Join(states, ", ")
	plateaus := sweepOf(t, steps("plateaus", plateauLoads), "--plateaus", "--skip", "0s").Sweeps[0].Points
	for i, p := range plateaus {
		after := math.Mod(float64(p.Start-plateaus[0].Start)/1e9+60, 120) - 60
		switch {
		case i == 0:
		case math.Abs(after) > 10:
			out.invented++
		default:
			out.found++
		}
	}
	return out
}
