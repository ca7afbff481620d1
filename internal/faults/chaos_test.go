package faults_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

var (
	chaosFaults  = flag.Int("chaos.faults", 200, "least `number` of faults of TestChaos")
	chaosTimeout = flag.Duration("chaos.timeout", 1500*time.Millisecond, "deadline of a poll of TestChaos; longer on a busy machine")
	chaosSeed    = flag.Uint64("chaos.seed", 1, "seed of TestChaos")
)

const (
	chaosTargets = 50
	chaosBody    = 1 << 20 // the limit on bodies
)

// kind is one way to answer; want is the outcome that the poll must have.
type kind struct {
	name   string
	want   []metric.Outcome
	weight int
	make   func(v *victim) badserver.Answer
}

// victim is one target of the chaos and what it has served.
type victim struct {
	srv   *badserver.Server
	rng   *rand.Rand
	kinds []kind

	mu    sync.Mutex
	given []int // kinds of the answers, in order
	last  badserver.Answer

	exactly bool  // no answer came too late: all was compared
	value   int   // of the counter
	seen    []int // values of the counter, in good answers
}

func (v *victim) next(n int) badserver.Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n < len(v.given) {
		return v.last // for the alternate path, where nothing is
	}
	all := 0
	for _, k := range v.kinds {
		all += k.weight
	}
	at := v.rng.IntN(all)
	i := slices.IndexFunc(v.kinds, func(k kind) bool { at -= k.weight; return at < 0 })
	v.given = append(v.given, i)
	a := v.kinds[i].make(v)
	a.Path = "/metrics"
	v.last = a
	return a
}

func plainAnswer(body string) badserver.Answer {
	return badserver.Answer{Type: "text/plain; version=0.0.4", Body: []byte(body)}
}

// rest is what else is in a body: some series stay, some come and go.
func (v *victim) rest() string {
	var b strings.Builder
	for i := range 3 + v.rng.IntN(8) {
		fmt.Fprintf(&b, "g{i=\"%d\"} %v\n", i, v.rng.NormFloat64())
	}
	n := v.rng.IntN(1000)
	fmt.Fprintf(&b, "# TYPE h histogram\nh_bucket{le=\"1\"} %d\nh_bucket{le=\"+Inf\"} %d\nh_sum %d\nh_count %d\n", n, 2*n, n, 2*n)
	return b.String()
}

func (v *victim) good() string {
	v.value += v.rng.IntN(100)
	if v.rng.IntN(20) == 0 {
		v.value = v.rng.IntN(5) // it began anew
	}
	v.seen = append(v.seen, v.value)
	return fmt.Sprintf("# TYPE c_total counter\nc_total %d\n", v.value) + v.rest()
}

func (v *victim) garbage() []byte {
	b := make([]byte, 1+v.rng.IntN(2000))
	for i := range b {
		b[i] = byte(v.rng.Uint32())
	}
	return b
}

// kinds are the ways to answer; the first is the good one.
func kinds() []kind {
	bomb := badserver.Gzip(make([]byte, 4*chaosBody))
	one := func(o metric.Outcome) []metric.Outcome { return []metric.Outcome{o} }
	broken := one(metric.ConnectError)
	of := func(a badserver.Answer) func(*victim) badserver.Answer {
		return func(*victim) badserver.Answer { return a }
	}
	return []kind{
		{"good", one(metric.OK), 30, func(v *victim) badserver.Answer { return plainAnswer(v.good()) }},
		{"reset", broken, 8, of(badserver.Answer{Kind: badserver.Reset})},
		{"closed", broken, 6, of(badserver.Answer{Kind: badserver.Close})},
		{"5xx", one(metric.HTTPError), 8, func(v *victim) badserver.Answer {
			return badserver.Answer{Status: 500 + v.rng.IntN(5), Body: v.garbage()}
		}},
		{"cut", []metric.Outcome{metric.Partial, metric.Truncated}, 8, func(v *victim) badserver.Answer {
			a := plainAnswer("c2 1\n" + v.rest())
			a.Length, a.Cut = int64(len(a.Body)+100), 1+v.rng.IntN(len(a.Body)-1)
			return a
		}},
		{"cut chunks", []metric.Outcome{metric.Partial, metric.Truncated}, 4, func(v *victim) badserver.Answer {
			a := plainAnswer("c2 1\n" + v.rest())
			a.Chunked, a.Cut = true, 10+v.rng.IntN(100)
			return a
		}},
		{"hang", one(metric.Timeout), 1, of(badserver.Answer{Kind: badserver.Hang})},
		{"slow", one(metric.Timeout), 1, func(v *victim) badserver.Answer {
			a := plainAnswer("c2 1\n" + v.rest())
			a.Drip = *chaosTimeout / 10
			return a
		}},
		{"late", one(metric.OK), 3, func(v *victim) badserver.Answer {
			a := plainAnswer(v.good())
			a.Delay = time.Duration(v.rng.IntN(20)) * time.Millisecond
			return a
		}},
		{"garbage", []metric.Outcome{metric.NotPrometheus, metric.Truncated, metric.Partial, metric.OK}, 8, func(v *victim) badserver.Answer {
			// Zeros before it: else it might be a body.
			return badserver.Answer{Type: "application/octet-stream", Body: append([]byte{0, 0, 0, 0, ' '}, v.garbage()...)}
		}},
		{"broken head", broken, 6, func(v *victim) badserver.Answer {
			return badserver.Answer{Kind: badserver.Raw, Body: append([]byte("HTP "), v.garbage()...)}
		}},
		{"html", one(metric.NotPrometheus), 3, of(badserver.Answer{Type: "text/html", Body: []byte("<html>")})},
		{"json", one(metric.NotPrometheus), 3, of(badserver.Answer{Type: "application/json", Body: []byte("[{}]")})},
		{"bomb", one(metric.TooLarge), 4, of(badserver.Answer{Type: "text/plain", Header: []string{"Content-Encoding: gzip"}, Body: bomb})},
		{"bad gzip", one(metric.Truncated), 3, func(v *victim) badserver.Answer {
			return badserver.Answer{Type: "text/plain", Header: []string{"Content-Encoding: gzip"}, Body: append([]byte{0x1f, 0x8b, 9}, v.garbage()...)}
		}},
		{"bad lines", one(metric.Partial), 6, func(v *victim) badserver.Answer {
			return plainAnswer("c2 1\nnot a sample at all\n" + v.rest() + "x{y=\"1\",y=\"2\"} 3\n")
		}},
		{"redirect", one(metric.RefusedRedirect), 4, of(badserver.Answer{Status: 302, Header: []string{"Location: http://169.254.169.254/metrics"}})},
	}
}

// TestChaos polls 50 targets, each of which gives one of 17 kinds of answer at
// random, restarts them, and sets the clock, until there were so many faults. Then
// the ledgers of the servers and of the run must agree, and each counter have the
// total of what its server served.
func TestChaos(t *testing.T) {
	all := kinds()
	victims := make([]*victim, chaosTargets)
	targets := make([]scrape.Target, chaosTargets)
	for i := range victims {
		v := &victim{rng: rand.New(rand.NewPCG(*chaosSeed, uint64(i))), kinds: all}
		srv, err := badserver.Start(badserver.Options{Script: v.next})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		v.srv, victims[i] = srv, v
		targets[i] = scrape.Target{URL: "http://" + srv.Addr + "/metrics"}
	}
	rng := rand.New(rand.NewPCG(*chaosSeed, 99))
	clock := &jumping{}
	restarts, jumps := 0, 0
	between := func(int) {
		for range 3 {
			v := victims[rng.IntN(chaosTargets)]
			v.srv.Down()
			if err := v.srv.Up(); err != nil {
				t.Error(err)
			}
			restarts++
		}
		clock.mu.Lock()
		defer clock.mu.Unlock()
		if rng.IntN(4) == 0 {
			clock.off += time.Duration(rng.IntN(2_000_000)-1_000_000) * time.Second
			jumps++
		}
	}
	// Seven of ten answers are faults, and three restarts come with each round.
	rounds := 3 + *chaosFaults/(chaosTargets*7/10)
	s := record(t, targets, rounds, scrape.Options{Timeout: *chaosTimeout, Limits: scrape.Limits{Body: chaosBody}, Now: clock.now}, summary.Options{}, between)
	n := judge(t, s, victims, rounds)
	n["restart"], n["clock jump"] = restarts, jumps
	exact := 0
	for _, v := range victims {
		if v.exactly {
			exact++
		}
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if name != "good" && name != "late" {
			total += n[name]
		}
		t.Logf("%-12s %6d", name, n[name])
	}
	if total < *chaosFaults {
		t.Errorf("%d faults, want at least %d", total, *chaosFaults)
	}
	faults.Figure(t, "chaos", fmt.Sprintf("%d random faults over %d targets, %d polls, seed %d: 0 panics, the rules held; outcomes, lines and totals equal the ledger of the server at %d targets, at the others an answer came too late", total, chaosTargets, rounds*chaosTargets, *chaosSeed, exact),
		"go test ./internal/faults -run TestChaos -chaos.faults 10000 -chaos.timeout 3s -v")
}

// judge holds the ledger of each server against that of the run, and returns how
// often each kind of answer was given.
func judge(t *testing.T, s *scene, victims []*victim, rounds int) map[string]int {
	t.Helper()
	count := map[string]int{}
	for i, v := range victims {
		l := s.run.Endpoints[i].Ledger
		sum := 0
		for _, n := range l.Outcomes {
			sum += n
		}
		if l.Scheduled != rounds || sum != rounds || len(s.polls[i]) != rounds {
			t.Errorf("target %d: %d scheduled, %d outcomes, %d polls, want %d", i, l.Scheduled, sum, len(s.polls[i]), rounds)
		}
		given := map[string]int{}
		v.given = v.given[:v.srv.Answers()] // one may have been drawn for the alternate path
		for _, k := range v.given {
			given[v.kinds[k].name]++
		}
		for name, n := range given {
			count[name] += n
		}
		v.judge(t, s, i, given)
	}
	return count
}

// judge compares the outcomes of one target with the answers it gave. A request
// that dies on a connection which was used before is sent again, so that such
// an answer may cost no poll; and on a machine that stands still any answer may
// come too late.
func (v *victim) judge(t *testing.T, s *scene, i int, given map[string]int) {
	t.Helper()
	l := &s.run.Endpoints[i].Ledger
	answers, lines := v.srv.Ledger().Good()
	fit := 0 // answers that can have had each outcome
	for _, k := range v.kinds {
		fit += given[k.name]
	}
	polls := l.Scheduled - l.Outcomes[metric.SkippedOverlap]
	again := given["reset"] + given["closed"] + given["broken head"]
	if fit < polls || fit-polls > again {
		t.Errorf("target %d: %d answers for %d polls, of which at most %d were asked again", i, fit, polls, again)
	}
	sure := given["hang"] + given["slow"]
	if late := l.Outcomes[metric.Timeout] - sure; late != 0 {
		t.Logf("target %d: %d answers came too late on a slow machine", i, late)
		return
	}
	for o, want := range map[metric.Outcome]int{metric.HTTPError: given["5xx"], metric.TooLarge: given["bomb"], metric.RefusedRedirect: given["redirect"]} {
		if got := l.Outcomes[o]; got != want {
			t.Errorf("target %d: %d polls %v, %d such answers", i, got, o, want)
		}
	}
	if l.Outcomes[metric.OK] != given["good"]+given["late"] {
		t.Errorf("target %d: %d good polls, %d good answers\n%s", i, l.Outcomes[metric.OK], given["good"]+given["late"], v.story(s.polls[i]))
	}
	if got := goodLines(s.polls[i]); got > lines || answers < l.Outcomes[metric.OK] {
		t.Errorf("target %d: %d lines stored of %d answers with %d", i, got, answers, lines)
	}
	v.exactly = true
	v.exact(t, s, i)
}

// story lays the answers beside the polls.
func (v *victim) story(polls []metric.Snapshot) string {
	var b strings.Builder
	for i := range max(len(polls), len(v.given)) {
		answer, poll := "", ""
		if i < len(v.given) {
			answer = v.kinds[v.given[i]].name
		}
		if i < len(polls) {
			poll = polls[i].Outcome.String() + " " + polls[i].Err
		}
		fmt.Fprintf(&b, "%3d %-12s %s\n", i, answer, poll)
	}
	return b.String()
}

func goodLines(polls []metric.Snapshot) (n int) {
	for _, p := range polls {
		if p.Outcome == metric.OK {
			n += p.Lines
		}
	}
	return n
}

// exact compares the total of the counter with what was served.
func (v *victim) exact(t *testing.T, s *scene, i int) {
	t.Helper()
	v.seen = v.seen[:min(len(v.seen), s.run.Endpoints[i].Ledger.Outcomes[metric.OK])]
	want := 0
	for j := 1; j < len(v.seen); j++ {
		if want += v.seen[j]; v.seen[j] >= v.seen[j-1] {
			want -= v.seen[j-1]
		}
	}
	if len(v.seen) < 2 {
		return
	}
	for _, x := range s.metric("c").Series {
		if x.Endpoint == i {
			if x.Counter.Total != float64(want) {
				t.Errorf("target %d: total %v, served %d: %v", i, x.Counter.Total, want, v.seen)
			}
			return
		}
	}
	t.Errorf("target %d: no counter", i)
}
