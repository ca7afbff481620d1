package main

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// swept is what tests read of the JSON of sweep.
type swept struct {
	Sweeps []struct {
		Name   string
		Unit   string
		Points []struct {
			Load, X, Arrivals float64
			State, Limit, Why string
			Start             int64    `json:"start_ns"`
			PerGPU            *float64 `json:"tok_s_per_gpu"`
			Cost              *float64 `json:"cost_per_million_tokens"`
			Tok               float64  `json:"output_tok_s"`
			Repeats           []struct{ X float64 }
		}
		Capacity struct {
			Status       string
			X, Low, High float64
		}
		Knee *struct{ Load float64 }
		SLO  []struct {
			Low, High, Interpolated float64
			Status                  string
		}
		Notes []string
	}
}

// sweptRun records a run of the simulator, which takes a fraction of its time.
func sweptRun(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var talk bytes.Buffer
	args = append([]string{"simulate", "--record", dir}, args...)
	if code := run(t.Context(), args, stdio{nil, &talk, &talk}); code != 0 {
		t.Fatal(talk.String())
	}
	return dir
}

// rates are the loads of the recording of the acceptance table, each for two minutes after a warm-up of 20 s.
var rates = []int{5, 10, 15, 20, 24, 30}

// ratesArgs make that recording.
func ratesArgs() []string {
	spec, args := "vllm,rate=5", []string{"--warmup", "20s", "--duration", "12m", "--seed", "41"}
	for i, rate := range rates {
		at := strconv.Itoa(20+120*i) + "s"
		if i > 0 {
			spec += ",rate@" + at + "=" + strconv.Itoa(rate)
		}
		args = append(args, "--mark", "rate-"+strconv.Itoa(rate)+"=+"+at)
	}
	return append(args, spec)
}

func sweepOf(t *testing.T, args ...string) (s swept) {
	t.Helper()
	if err := json.Unmarshal(output(t, append([]string{"sweep", "--format", "json"}, args...)...), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSweepRates is S6, S7, S8, S10, S11 and S13 of the acceptance table. Its X of the last point, and so the capacity,
// is 26.88: the reference divides by the time up to a poll after the window, which is 1 s more.
func TestSweepRates(t *testing.T) {
	t.Parallel()
	dir := sweptRun(t, filepath.Join(t.TempDir(), "r"), ratesArgs()...)
	slos := []string{"--slo", "ttft mean <= 250ms", "--slo", "itl mean <= 12.5ms"}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.0051 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	t.Run("marks", func(t *testing.T) {
		s := sweepOf(t, append(slos, dir+"@rate-*", "--skip", "0s")...).Sweeps[0]
		for i, x := range []float64{4.95, 9.78, 14.48, 19.68, 23.38, 26.88 * 121 / 120} {
			near("X", s.Points[i].X, x)
			if want := map[bool]string{true: "over-saturated", false: "stable"}[i == 5]; s.Points[i].State != want {
				t.Errorf("%v is %s", s.Points[i].Load, s.Points[i].State)
			}
		}
		near("capacity", s.Capacity.X, 26.88*121/120)
		if c := s.Capacity; c.Status != "reached" || c.Low != 24 || c.High != 30 || math.Abs(c.X-27.18) > 0.03*27.18 {
			t.Errorf("capacity %+v, true 27.18", c)
		}
		if s.Knee.Load != 24 || s.Points[5].Limit != "kv" || s.Points[5].PerGPU != nil || len(s.Notes) != 1 {
			t.Errorf("knee %+v, limit %s, %v", s.Knee, s.Points[5].Limit, s.Notes)
		}
		itl := s.SLO[1]
		near("itl", itl.Interpolated, 20.98)
		if itl.Low != 20 || itl.High != 24 || s.SLO[0].Low != 24 {
			t.Errorf("%+v", s.SLO)
		}
	})
	t.Run("plateaus", func(t *testing.T) {
		s := sweepOf(t, dir, "--plateaus", "--skip", "0s").Sweeps[0]
		if len(s.Points) != 6 {
			t.Fatalf("%d plateaus", len(s.Points))
		}
		for i := range s.Points {
			if off := float64(s.Points[i].Start-s.Points[0].Start)/1e9 - float64(120*i); math.Abs(off) > 10 {
				t.Errorf("plateau %d begins %v s off", i+1, off)
			}
		}
	})
	t.Run("below", func(t *testing.T) {
		args := []string{dir + "@rate-[52]", dir + "@rate-1*", dir + "@rate-20", "--skip", "0s"}
		s := sweepOf(t, args...).Sweeps[0]
		near("at least", s.Capacity.X, 19.68)
		if s.Capacity.Status != "not reached" || len(s.Points) != 4 {
			t.Errorf("%+v", s.Capacity)
		}
		for require, want := range map[string]int{"25": exitIncomplete, "15 --slo ttft_mean<=250ms": 0,
			"15 --slo itl_mean<=10ms": exitBad, "19.5": 0, "12 --slo itl_mean<=10ms": exitIncomplete} {
			var talk bytes.Buffer
			more := strings.Fields("--require " + require)
			for i := range more {
				more[i] = strings.Replace(more[i], "_", " ", 1)
			}
			code := run(t.Context(), slices.Concat([]string{"sweep"}, args, more), stdio{nil, &talk, &talk})
			if code != want {
				t.Errorf("--require %s: exit %d, want %d\n%s", require, code, want, talk.String())
			}
		}
	})
	t.Run("repeats", func(t *testing.T) {
		other := sweptRun(t, filepath.Join(t.TempDir(), "r"), ratesArgs()...)
		s := sweepOf(t, dir+"@rate-10", other+"@rate-10", "--gpus", "2", "--cost-per-hour", "5EUR").Sweeps[0]
		p := s.Points[0]
		if len(s.Points) != 1 || len(p.Repeats) != 2 || p.X != p.Repeats[0].X || p.X != p.Repeats[1].X {
			t.Errorf("%+v", s.Points)
		}
		if math.Abs(*p.PerGPU-p.Tok/2) > 1e-9 || math.Abs(*p.Cost-5/(p.Tok*3600)*1e6) > 1e-9 {
			t.Errorf("%v tokens/s of a GPU, %v a million of %v", *p.PerGPU, *p.Cost, p.Tok)
		}
		high := other + "@rate-30"
		a := output(t, "sweep", "--format", "json", dir+"@rate-10", high)
		if b := output(t, "sweep", "--format", "json", high, dir+"@rate-10"); !bytes.Equal(a, b) {
			t.Error("another order of runs gives other bytes")
		}
	})
	t.Run("refused", func(t *testing.T) {
		five := dir + "@rate-5"
		for _, args := range [][]string{{five, five}, {five, dir + "@30s..60s", "--load", "arrivals"}, {dir + "@rate-7"},
			{dir + "@no*"}, {five, "--load", "gpus"}, {five, "--engine", "sglang"}, {five, "--slo", "ttft p99 < 1"},
			{five, "--slo", "nothing < 1s"}, {five, "--slo", "ttft p99 > 1s"}, {five, "--require", "-1"},
			{five, "--gpus", "none"}, {five, "--format", "pdf"}, {five, "--skip", "-1s"}} {
			var talk bytes.Buffer
			if code := run(t.Context(), append([]string{"sweep"}, args...), stdio{nil, &talk, &talk}); code != exitUsage {
				t.Errorf("%q: exit %d\n%s", args[1:], code, talk.String())
			}
		}
	})
}

// TestSweepRecorded is a sweep of a real vLLM with three places over five loads: what it did is what its client
// counted, and the places are what ran out, alone and within the sweep.
func TestSweepRecorded(t *testing.T) {
	t.Parallel()
	const dir = "../../testdata/runs/vllm-sweep"
	s := sweepOf(t, dir).Sweeps[0]
	client := []float64{2.19, 4.04, 6.22, 7.54, 9.67} // after a tenth of each minute
	if len(s.Points) != len(client) {
		t.Fatalf("%d points", len(s.Points))
	}
	for i, p := range s.Points {
		want := map[bool]string{true: "over-saturated", false: "stable"}[p.Load == 12]
		if math.Abs(p.X/client[i]-1) > 0.01 || p.State != want || (p.Load >= 6) != (p.Limit == "slots") {
			t.Errorf("%v: %v a second, the client says %v; %s, %s", p.Load, p.X, client[i], p.State, p.Limit)
		}
	}
	if s.Capacity.Status != "reached" || s.Capacity.Low != 8 || s.Capacity.High != 12 || s.Knee.Load != 8 {
		t.Errorf("%+v, knee %+v", s.Capacity, s.Knee)
	}
	for _, load := range []string{"6", "8", "12"} {
		for _, why := range []string{"latency", "ttft", "throughput"} {
			text := string(output(t, "explain", dir+"@rate-"+load, "--why", why))
			if !strings.Contains(text, "\n1. queue_slots") && (why != "ttft" || load == "12") {
				t.Errorf("%s at %s:\n%s", why, load, text)
			}
		}
	}
}

// TestSweepConcurrency: a load of so many at once is at the limit where a part of it always waits, and loads of two
// units are refused.
func TestSweepConcurrency(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var runs []string
	for _, rate := range []string{"2", "9"} {
		runs = append(runs, sweptRun(t, filepath.Join(base, rate), "--duration", "2m", "--warmup", "10s", "--seed", "3",
			"--tag", "concurrency="+rate, "vllm,slots=4,rate="+rate))
	}
	s := sweepOf(t, runs...).Sweeps[0]
	if s.Points[0].State != "stable" || s.Points[1].State != "at the limit" || s.Unit != "concurrent" ||
		s.Points[1].Limit != "slots" || s.Capacity.Status != "reached" {
		t.Errorf("%+v", s)
	}
	rate := sweptRun(t, filepath.Join(base, "rate"), "--duration", "1m", "--tag", "rate=5", "vllm,rate=5")
	var talk bytes.Buffer
	if code := run(t.Context(), []string{"sweep", runs[0], rate}, stdio{nil, &talk, &talk}); code != exitUsage ||
		!strings.Contains(talk.String(), "concurrent") || !strings.Contains(talk.String(), "--load arrivals") {
		t.Errorf("exit %d: %s", code, talk.String())
	}
}
