package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/summary"
)

// plant is a cause that the simulator makes, and what explain is to say first.
type plant struct {
	name    string
	servers func(r *rand.Rand) []string
	want    []string // one of these
	load    string   // of throughput; "" is what latency has
	early   bool     // no warm-up
}

// some is a number of [from, to).
func some(r *rand.Rand, from, to float64) float64 { return from + (to-from)*r.Float64() }

// one makes the servers of a plant of a line with numbers, each of a range.
func one(format string, ranges ...float64) func(*rand.Rand) []string {
	return func(r *rand.Rand) []string {
		var args []any
		for i := 0; i < len(ranges); i += 2 {
			args = append(args, some(r, ranges[i], ranges[i+1]))
		}
		return strings.Fields(fmt.Sprintf(format, args...))
	}
}

// plants are those of the table in docs/explain.md, with parameters drawn for each run.
func plants() []plant {
	burst := func(r *rand.Rand) []string {
		at := 35 + r.IntN(40)
		return []string{fmt.Sprintf("vllm,slots=32,rate=%.2f,rate@%ds=%.2f,rate@%ds=4.3", some(r, 4, 5.5), at,
			some(r, 45, 55), at+8+r.IntN(4))}
	}
	restart := func(r *rand.Rand) []string {
		at := 45 + r.IntN(30)
		return []string{fmt.Sprintf("vllm,rate=%.2f,down=%ds..%ds", some(r, 4, 6.5), at, at+6+r.IntN(5))}
	}
	skew := one("a=vllm,slots=24,rate=%.2f b=vllm,slots=24,rate=%.2f c=vllm,slots=24,rate=%.2f", 19.5, 22, 2.5, 4, 2.5, 4)
	load := "load"
	return []plant{
		{"service", one("vllm,rate=%.2f", 3, 6), []string{"service"}, load, false},
		{"slow step", one("vllm,step=%.0fms,rate=%.2f", 20, 40, 2, 4), []string{"service"}, load, false},
		{"slots", one("vllm,slots=%.0f,rate=%.2f", 8, 24, 20, 26), []string{"queue_slots"}, "", false},
		{"kv", one("vllm,blocks=%.0f,rate=%.2f", 550, 1100, 20, 26), []string{"queue_kv"}, "", false},
		{"prefill", one("vllm,blocks=20000,slots=256,prompt=%.0f:0.4,output=%.0f:0.5,prefix=-1,rate=%.2f", 3000, 4000, 4, 31,
			10.5, 11.5), []string{"prefill", "queue_budget"}, "", false},
		{"prompts of others", one("vllm,blocks=20000,maxlen=32768,chunk=16384,prompt=%.0f:4,output=150:0.5,rate=%.2f", 600,
			650, 8.5, 10.5), []string{"prefill_interference"}, load, false},
		{"cold", one("vllm,cold=%.2f:%.0fs,rate=%.2f", 6, 12, 40, 70, 7, 8.5), []string{"cold_start"}, "", true},
		{"restart", restart, []string{"restart"}, "restart", false},
		{"imbalance", skew, []string{"queue_imbalance"}, "", false},
		{"errors", one("vllm,rate=%.2f,error=%.2f", 4, 6, 0.10, 0.30), []string{"errors"}, "errors", false},
		{"aborts", one("vllm,rate=%.2f,abort=%.2f", 4, 6, 0.15, 0.35), []string{"aborts"}, "aborts", false},
		{"burst", burst, []string{"queue_burst"}, "", false},
		{"batch", one("vllm,slots=256,blocks=20000,perseq=600us,rate=%.2f", 11, 12), []string{"decode_batch"}, load, false},
		{"no engine", one("gpus=dcgm,engines=2"), []string{"cannot_tell"}, "cannot_tell", false},
		{"SGLang, slots", one("sglang,slots=16,rate=%.2f", 20, 26), []string{"queue_slots"}, "", false},
		{"SGLang", one("sglang,rate=%.2f", 4, 7.5), []string{"service"}, load, false},
		{"TensorRT-LLM, slots", one("trtllm,slots=16,rate=%.2f", 20, 22), []string{"queue_slots"}, "", false},
		{"Triton", one("triton,rate=%.2f", 3, 5), []string{"service"}, "cannot_tell", false},
		{"TGI, slots", one("tgi,slots=16,rate=%.2f", 20, 23), []string{"queue_slots"}, "", false},
		{"llama.cpp", one("llamacpp,rate=%.2f", 1, 3), []string{"cannot_tell"}, "cannot_tell", false},
	}
}

// TestPlantedFresh plants causes with parameters that no rule has seen, and asks explain why latency and throughput are
// what they are: what comes first, that no queue is named where nothing waits, and, with each family hidden in turn,
// that a queue is never given another class. It is quick for a few of them; SCRAPESTAT_PLANTED=fresh draws 200 runs and
// prints the table of docs/explain.md, SCRAPESTAT_SEED chooses others.
func TestPlantedFresh(t *testing.T) {
	seeds, few := 1, []string{"kv", "slow step", "SGLang, slots"}
	all := os.Getenv("SCRAPESTAT_PLANTED") == "fresh"
	if all {
		seeds, few = 10, nil
	}
	first, _ := strconv.Atoi(os.Getenv("SCRAPESTAT_SEED"))
	total, wrong := 0, 0
	for _, p := range plants() {
		if !all && !slices.Contains(few, p.name) {
			continue
		}
		right, asked, hidden, untold := 0, 0, 0, 0
		for seed := range seeds {
			run, got := p.record(t, 5000+first+seed)
			total++
			if slices.Contains(p.want, got.Verdict) {
				right++
			} else {
				wrong++
				t.Logf("%s, seed %d: %s", p.name, seed, got.Verdict)
			}
			if queues := queuesOf(got); p.load == "load" && len(queues) > 0 {
				t.Errorf("%s, seed %d: %v though nothing had to wait", p.name, seed, queues)
			}
			if p.throughput(run, got) {
				asked++
			}
			n, lost := p.hide(t, run, got)
			hidden, untold = hidden+n, untold+lost
		}
		t.Logf("| %s | %d of %d | %d of %d | %d of %d |", p.name, right, seeds, asked, seeds, untold, hidden)
		if asked < seeds-seeds/10 {
			t.Errorf("%s: throughput right in %d of %d", p.name, asked, seeds)
		}
	}
	if wrong*20 > total {
		t.Errorf("%d of %d runs wrong", wrong, total)
	}
}

// record makes a run and explains the latency of its engine, of the part of it with most requests.
func (p *plant) record(t *testing.T, seed int) (*summary.Run, *explain.Result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	warmup := map[bool]string{true: "0s", false: "20s"}[p.early]
	servers := p.servers(rand.New(rand.NewPCG(uint64(seed), 25)))
	var talk bytes.Buffer
	if code := run(t.Context(), append(slices.Concat([]string{"simulate"}, servers), "--record", dir, "--warmup", warmup,
		"--duration", "120s", "--seed", strconv.Itoa(seed), "--interval", "1s"), stdio{nil, &talk, &talk}); code != 0 {
		t.Fatal(servers, talk.String())
	}
	a := analysisFlags{}
	r, list, err := causesOf(t.Context(), dir, &windowFlags{}, a, explain.DefaultRules(), explain.Latency,
		stdio{nil, io.Discard, io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return r, slices.MaxFunc(list, func(a, b *explain.Result) int { return cmp.Compare(a.Requests, b.Requests) })
}

// throughput reports whether explain tells of the throughput what was planted.
func (p *plant) throughput(run *summary.Run, latency *explain.Result) bool {
	got := explain.Explain(explain.Read(run)[0], explain.DefaultRules(), explain.Throughput)
	want := p.load
	if want == "" {
		want = latency.Verdict
	}
	return got.Verdict == want
}

// hide explains a run without each family of the engine in turn, and returns how often the verdict was another one: it
// names then what is missing or cannot be ruled out, and no class of queue that was not there, unless what was there is
// among what cannot be ruled out.
func (p *plant) hide(t *testing.T, run *summary.Run, whole *explain.Result) (n, untold int) {
	t.Helper()
	for i := range run.Metrics {
		name := run.Metrics[i].Name
		if f, ok := run.Options.Catalog.Family(name); !ok || f.Engine != whole.Engine || i > 0 &&
			run.Metrics[i-1].Name == name {
			continue
		}
		n++
		less := explain.Read(without(run, name))
		at := max(0, slices.IndexFunc(less, func(f *explain.Facts) bool { return f.Of == whole.Of }))
		got := explain.Explain(less[at], explain.DefaultRules(), explain.Latency)
		if got.Verdict == whole.Verdict {
			continue
		}
		untold++
		open := strings.Join(got.Open, "; ")
		if len(got.Missing) == 0 && !strings.Contains(open, whole.Verdict) && !strings.Contains(open, "decode_batch") {
			t.Errorf("%s without %s: %s, was %s: missing %q, not ruled out %q", p.name, name, got.Verdict, whole.Verdict,
				got.Missing, open)
		}
		for _, id := range queuesOf(got) {
			if !slices.Contains(queuesOf(whole), id) && !strings.Contains(open, whole.Verdict) {
				t.Errorf("%s without %s: %s, which was not there", p.name, name, id)
			}
		}
	}
	return n, untold
}

// queuesOf are the classes of queue among the findings.
func queuesOf(r *explain.Result) (out []string) {
	for _, f := range r.Findings {
		if strings.HasPrefix(f.ID, "queue_") && f.ID != "queue_unknown" {
			out = append(out, f.ID)
		}
	}
	return out
}

// without is a run that does not show a family, nor what is derived of it.
func without(run *summary.Run, name string) *summary.Run {
	less := *run
	less.Metrics = slices.DeleteFunc(slices.Clone(run.Metrics), func(m summary.Metric) bool { return m.Name == name })
	derived := func(list []summary.Derived) []summary.Derived {
		return slices.DeleteFunc(slices.Clone(list), func(d summary.Derived) bool {
			return slices.Contains(d.Families, name)
		})
	}
	less.Derived = derived(run.Derived)
	less.Combined = slices.Clone(run.Combined)
	for i := range less.Combined {
		less.Combined[i].Derived = derived(less.Combined[i].Derived)
	}
	f, _ := run.Options.Catalog.Family(name)
	less.Latencies = slices.DeleteFunc(slices.Clone(run.Latencies), func(l summary.Latency) bool {
		return l.Engine == f.Engine && l.ID == f.Canonical
	})
	return &less
}
