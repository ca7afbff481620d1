package summary_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/summary"
)

// process is a server that serves requests in steps of 0.1 s.
type process struct {
	rng      *rand.Rand
	started  float64 // 0: it does not tell
	values   [12]int
	per      float64
	restarts []float64 // when, in seconds
	at       float64
}

func newProcess(seed uint64, started, perSecond float64) *process {
	p := &process{rng: rand.New(rand.NewPCG(seed, 2)), started: started, per: perSecond}
	for i := range p.values {
		p.values[i] = p.rng.IntN(1000)
	}
	return p
}

// until serves requests up to a time: each of them is a request, some tokens, and one of ten kinds.
func (p *process) until(at float64) {
	for ; p.at < at; p.at += 0.1 {
		if len(p.restarts) > 0 && p.at >= p.restarts[0] {
			p.values, p.restarts = [12]int{}, p.restarts[1:]
			if p.started != 0 {
				p.started = float64(origin/second) + p.at
			}
		}
		if p.rng.Float64() < p.per/10 {
			p.values[0]++
			p.values[1] += p.rng.IntN(50)
			p.values[2+p.rng.IntN(10)]++
		}
	}
}

func (p *process) body() string {
	var b strings.Builder
	for i, v := range p.values {
		fmt.Fprintf(&b, "# TYPE c%d counter\nc%d{model=\"m\"} %d\n", i, i, v)
	}
	if p.started != 0 {
		fmt.Fprintf(&b, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.3f\n", p.started)
	}
	return b.String()
}

// watched polls two addresses each second, the second one later by some time.
func watched(a, b *process, polls int, later float64) *summary.Run {
	f := newFake("http://a", "http://b")
	for i := range polls {
		at := float64(i + 1)
		a.until(at)
		f.Scrape(0, at, a.body())
		b.until(at + later)
		f.Scrape(1, at+later, b.body())
	}
	r, err := tryBuild(summary.Options{By: []string{}}, f)
	if err != nil {
		panic(err)
	}
	return r
}

// TestSameServer: one server under two addresses counts once, two replicas under the same load twice, whether a start
// time tells when they began or not.
func TestSameServer(t *testing.T) {
	const began = float64(origin/second) - 500
	found, wrong := 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 3))
		for _, start := range []float64{began, 0} {
			later, polls := rng.Float64()*0.9, 30+rng.IntN(200)
			one := newProcess(seed, start, 2+20*rng.Float64())
			if r := watched(one, one, polls, later); r.Endpoints[1].SameAs == 1 {
				found++
			}
			// Workers that were forked in one tick have the same start time.
			a, b := newProcess(seed, start, one.per), newProcess(seed+1000, start, one.per)
			if rng.IntN(2) == 0 {
				b.values = a.values
			}
			if r := watched(a, b, polls, later); r.Endpoints[1].SameAs != 0 {
				wrong++
			}
		}
	}
	if found < 299 || wrong > 0 {
		t.Errorf("found %d of 300 doubled servers, want 299; took %d of 300 pairs of replicas for one", found, wrong)
	}
	t.Logf("found %d of 300", found)
}

// TestSameServerCountsOnce: what is taken together has the one server once, rows of both stay, and one warning tells.
func TestSameServerCountsOnce(t *testing.T) {
	p := newProcess(1, float64(origin/second)-500, 20)
	p.restarts = []float64{10.35}
	r := watched(p, p, 60, 0.4)
	e := r.Endpoints[1]
	if r.Endpoints[0].SameAs != 0 || e.SameAs != 1 || r.Endpoints[1].Continuity.Restarts != 1 {
		t.Fatalf("same as %d and %d", r.Endpoints[0].SameAs, e.SameAs)
	}
	told := 0
	for _, w := range e.Warnings {
		if w.Code == "same_server" {
			told++
		}
	}
	if told != 1 || len(r.Metrics[0].Series) != 2 {
		t.Errorf("%d warnings, %d series", told, len(r.Metrics[0].Series))
	}
	for _, a := range r.Aggregates {
		m := &r.Metrics[a.Metric]
		if a.Counter == nil || a.Series != 1 || a.LeftOut != 1 || a.Counter.Total != m.Series[0].Counter.Total {
			t.Errorf("%s: %d series, %d left out, %+v", m.Name, a.Series, a.LeftOut, a.Counter)
		}
	}
}

// TestSameServerRestartsLate: a restart shortly before the end, which both addresses saw or only the one that was
// polled last, makes two servers of one no more than of two replicas one.
func TestSameServerRestartsLate(t *testing.T) {
	for _, start := range []float64{float64(origin/second) - 500, 0} {
		for _, at := range []float64{40, 56.35, 57.9, 60.2} {
			p, q := newProcess(1, start, 20), newProcess(2, start, 20)
			p.restarts, q.restarts = []float64{at}, []float64{at}
			if e := watched(p, p, 60, 0.4).Endpoints[1]; e.SameAs != 1 {
				t.Errorf("started %v, restart at %v s: one server is two", start, at)
			}
			p = newProcess(1, start, 20)
			p.restarts = []float64{at}
			if e := watched(p, q, 60, 0.4).Endpoints[1]; e.SameAs != 0 {
				t.Errorf("started %v, restart at %v s: two servers are one", start, at)
			}
		}
	}
}

// TestSameServerOfGroups: groups that part the two addresses have one each.
func TestSameServerOfGroups(t *testing.T) {
	a := newFake("http://a", "http://b")
	p := newProcess(1, float64(origin/second)-500, 20)
	for i := range 40 {
		p.until(float64(i))
		for target := range 2 {
			a.Scrape(target, float64(i)+float64(target)/10, p.body())
		}
	}
	r := build(t, summary.Options{By: []string{summary.ByEndpoint}, Slice: 5 * time.Second}, a)
	if r.Endpoints[1].SameAs != 1 || len(r.Aggregates) != 2*12 {
		t.Errorf("same as %d, %d aggregates, want one of each address", r.Endpoints[1].SameAs, len(r.Aggregates))
	}
}

// TestSameServerVector is the case of the vectors that has a second target: four polls of each address.
func TestSameServerVector(t *testing.T) {
	type rows map[string]struct {
		Type   string
		Values []float64
	}
	var all struct {
		Cases []struct {
			ID     string
			T      []float64
			Series json.RawMessage
			Second struct {
				Offset float64
				Series rows
			}
		}
	}
	data, err := os.ReadFile("../testdata/vectors/continuity.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Cases {
		if c.ID != "same-server-twice" {
			continue
		}
		var first rows
		if err := json.Unmarshal(c.Series, &first); err != nil {
			t.Fatal(err)
		}
		f := newFake("http://a", "http://b")
		for i, at := range c.T {
			for target, of := range []rows{first, c.Second.Series} {
				body := ""
				for _, name := range slices.Sorted(maps.Keys(of)) {
					body += fmt.Sprintf("# TYPE %s %s\n%[1]s %[3]f\n", name, of[name].Type, of[name].Values[i])
				}
				f.Scrape(target, at-float64(origin/second)+float64(target)*c.Second.Offset, body)
			}
		}
		r := build(t, summary.Options{By: []string{}}, f)
		if r.Endpoints[1].SameAs != 1 || r.Aggregates[0].Counter.Total != 30 {
			t.Errorf("same as %d, total %v, want 30 of endpoint 1", r.Endpoints[1].SameAs, r.Aggregates[0].Counter)
		}
		return
	}
	t.Error("no case same-server-twice")
}
