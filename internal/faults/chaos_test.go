package faults_test

import (
	"bytes"
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
	chaosTimeout = flag.Duration("chaos.timeout", 1500*time.Millisecond,
		"deadline of a poll of TestChaos; longer on a busy machine")
	chaosSeed = flag.Uint64("chaos.seed", 1, "seed of TestChaos")
)

const (
	chaosTargets = 50
	chaosBody    = 1 << 20 // the limit on bodies
)

// kind is one way to answer; want are the outcomes that its poll may have: one,
// unless random bytes decide.
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
	given []gift // in order
	last  badserver.Answer

	gift     gift // that is being chosen
	value    int  // of the counter
	observed int  // by the histogram
	exact    bool // no answer came too late: all was compared
	certain  bool // and what the counter gained was not in doubt
}

// gift is an answer that was chosen: of which kind, the value of the counter in it,
// and what its poll must make of the body.
type gift struct {
	kind, value int
	lines       int // sample lines that arrive; or wholeBody, or anyLines
	dropped     int // of them
}

const (
	wholeBody = -1 // as many as the ledger of the server says
	anyLines  = -2 // random bytes decide
)

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
	v.gift = gift{kind: i}
	a := v.kinds[i].make(v)
	v.given = append(v.given, v.gift)
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
	v.observed += v.rng.IntN(1000)
	n := v.observed
	fmt.Fprintf(&b, "# TYPE h histogram\nh_bucket{le=\"1\"} %d\nh_bucket{le=\"+Inf\"} %d\nh_sum %d\nh_count %d\n", n,
		2*n, n, 2*n)
	return b.String()
}

func (v *victim) good() string {
	v.value += v.rng.IntN(100)
	if v.rng.IntN(20) == 0 {
		v.value, v.observed = v.rng.IntN(5), 0 // it began anew
	}
	v.gift.value, v.gift.lines = v.value, wholeBody
	return fmt.Sprintf("# TYPE c_total counter\nc_total %d\n", v.value) + v.rest()
}

// arrives says what is left of a body that is cut. The last line is dropped, unless
// it is a comment: more of it may have been coming.
func (v *victim) arrives(body []byte) {
	for line := range bytes.Lines(body) {
		if line[0] == '#' {
			continue
		}
		v.gift.lines++
		if line[len(line)-1] != '\n' {
			v.gift.dropped++
		}
	}
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
			v.arrives(a.Body[:a.Cut])
			return a
		}},
		{"cut chunks", []metric.Outcome{metric.Partial, metric.Truncated}, 4, func(v *victim) badserver.Answer {
			a := plainAnswer("c2 1\n" + v.rest())
			a.Chunked, a.Cut = true, 10+v.rng.IntN(100)
			// 64 bytes, between "40\r\n" and "\r\n", and some of the next 64.
			v.arrives(a.Body[:min(a.Cut-4, 64)+max(0, a.Cut-74)])
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
		{"garbage", []metric.Outcome{metric.NotPrometheus, metric.Truncated, metric.Partial, metric.OK}, 8,
			func(v *victim) badserver.Answer {
				v.gift.lines = anyLines
				// Zeros before it: else it might be a body.
				return badserver.Answer{Type: "application/octet-stream", Body: append([]byte{0, 0, 0, 0, ' '}, v.garbage()...)}
			}},
		{"broken head", broken, 6, func(v *victim) badserver.Answer {
			return badserver.Answer{Kind: badserver.Raw, Body: append([]byte("HTP "), v.garbage()...)}
		}},
		{"html", one(metric.NotPrometheus), 3, of(badserver.Answer{Type: "text/html", Body: []byte("<html>")})},
		{"json", one(metric.NotPrometheus), 3, of(badserver.Answer{Type: "application/json", Body: []byte("[{}]")})},
		{"bomb", one(metric.TooLarge), 4, of(badserver.Answer{Type: "text/plain",
			Header: []string{"Content-Encoding: gzip"}, Body: bomb})},
		{"bad gzip", one(metric.Truncated), 3, func(v *victim) badserver.Answer {
			return badserver.Answer{Type: "text/plain", Header: []string{"Content-Encoding: gzip"},
				Body: append([]byte{0x1f, 0x8b, 9}, v.garbage()...)}
		}},
		{"bad lines", one(metric.Partial), 6, func(v *victim) badserver.Answer {
			v.gift.lines, v.gift.dropped = wholeBody, 2
			return plainAnswer("c2 1\nnot a sample at all\n" + v.rest() + "x{y=\"1\",y=\"2\"} 3\n")
		}},
		{"redirect", one(metric.RefusedRedirect), 4, of(badserver.Answer{Status: 302,
			Header: []string{"Location: http://169.254.169.254/metrics"}})},
	}
}

// TestChaos polls 50 targets, each of which gives one of 17 kinds of answer at
// random, restarts them, and sets the clock, until there were so many faults. Then
// the ledgers of the servers and of the run must agree poll by poll, and each counter
// have the total of what its server served.
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
	s := record(t, targets, rounds, scrape.Options{Timeout: *chaosTimeout, Limits: scrape.Limits{Body: chaosBody},
		Now: clock.now}, summary.Options{}, between)
	n := judge(t, s, victims, rounds)
	n["restart"], n["clock jump"] = restarts, jumps
	exact, certain := 0, 0
	for _, v := range victims {
		if v.certain {
			certain++
		}
		if v.exact {
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
	if t.Logf("%d of %d targets are certain", certain, exact); certain < exact/4 {
		t.Errorf("of %d counters %d are certain", exact, certain)
	}
	if exact < chaosTargets/2 {
		t.Errorf("answers came too late at %d of %d targets: give a longer -chaos.timeout", chaosTargets-exact, chaosTargets)
	}
	faults.Figure(t, "chaos", fmt.Sprintf("%d random faults over %d targets, %d polls, seed %d: 0 panics, the rules "+
		"held; at %d targets each poll has the outcome of its answer, the lines and drops of its body (of %d of random "+
		"bytes the outcome is one of four, and the lines are not known), and each counter the total that was served; at "+
		"the others an answer came too late",
		total, chaosTargets, rounds*chaosTargets, *chaosSeed, exact, n["garbage"]),
		"go test ./internal/faults -run TestChaos -chaos.faults 10000 -chaos.timeout 3s -v")
}

// judge holds the ledger of each server against that of the run, and returns how
// often each kind of answer was given.
func judge(t *testing.T, s *scene, victims []*victim, rounds int) map[string]int {
	t.Helper()
	count := map[string]int{}
	for i, v := range victims {
		v.srv.Close() // answers that nobody waited for end, and are in its ledger
		l := s.run.Endpoints[i].Ledger
		sum := 0
		for _, n := range l.Outcomes {
			sum += n
		}
		if l.Scheduled != rounds || sum != rounds || len(s.polls[i]) != rounds {
			t.Errorf("target %d: %d scheduled, %d outcomes, %d polls, want %d", i, l.Scheduled, sum, len(s.polls[i]), rounds)
		}
		for _, p := range s.polls[i] {
			if err := faults.NoPanic(&p); err != nil {
				t.Errorf("target %d: poll %d: %v", i, p.Seq, err)
			}
		}
		v.given = v.given[:v.srv.Answers()] // one may have been drawn for the alternate path
		for _, g := range v.given {
			count[v.kinds[g.kind].name]++
		}
		v.judge(t, s, i)
	}
	return count
}

// answers returns the answers that a poll each must have got, in order. One that
// broke a connection which was used before, without a byte, is none: the request
// was sent again.
func (v *victim) answers() (out []badserver.Served) {
	for _, a := range v.srv.Ledger() {
		again := a.Reused && (a.Kind == badserver.Reset || a.Kind == badserver.Close)
		if a.Path == "/metrics" && !again {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b badserver.Served) int { return a.Answer - b.Answer })
	return out
}

// judge lays the answers of one target beside its polls, one by one: each outcome
// is one that the answer may have, each body has the lines that were served.
// On a machine that stands still any answer may come too late: then nobody can say
// which poll it was for, and the target is not judged.
func (v *victim) judge(t *testing.T, s *scene, i int) {
	t.Helper()
	l := &s.run.Endpoints[i].Ledger
	late := l.Outcomes[metric.Timeout]
	for _, g := range v.given {
		if slices.Contains(v.kinds[g.kind].want, metric.Timeout) {
			late--
		}
	}
	if late != 0 || l.Outcomes[metric.SkippedOverlap] > 0 {
		t.Logf("target %d: %d answers came too late on a slow machine", i, late)
		return
	}
	v.exact = true
	answers, polls := v.answers(), s.polls[i]
	if len(answers) != len(polls) {
		t.Errorf("target %d: %d answers for %d polls\n%s", i, len(answers), len(polls), v.story(polls))
		return
	}
	var seen []int // values of the counter in good answers
	lines := 0
	for n, a := range answers {
		p, g := polls[n], v.given[a.Answer]
		k := &v.kinds[g.kind]
		if !slices.Contains(k.want, p.Outcome) {
			t.Errorf("target %d: poll %d of the answer %q: %v %s", i, n, k.name, p.Outcome, p.Err)
		}
		if g.lines == wholeBody {
			g.lines = a.Lines
		}
		if g.lines != anyLines && (p.Lines != g.lines || p.Dropped() != g.dropped) {
			t.Errorf("target %d: poll %d of the answer %q: %d lines, %d dropped, want %d, %d", i, n, k.name, p.Lines,
				p.Dropped(), g.lines, g.dropped)
		}
		if lines += p.Lines; p.Outcome == metric.OK && g.lines != anyLines {
			seen = append(seen, g.value)
		}
	}
	if int(l.Lines) != lines {
		t.Errorf("target %d: %d lines in the ledger of the run, %d in its polls", i, l.Lines, lines)
	}
	v.total(t, s, i, seen)
}

// story lays the answers beside the polls.
func (v *victim) story(polls []metric.Snapshot) string {
	var b strings.Builder
	for i := range max(len(polls), len(v.given)) {
		answer, poll := "", ""
		if i < len(v.given) {
			answer = v.kinds[v.given[i].kind].name
		}
		if i < len(polls) {
			poll = polls[i].Outcome.String() + " " + polls[i].Err
		}
		fmt.Fprintf(&b, "%3d %-12s %s\n", i, answer, poll)
	}
	return b.String()
}

// total compares the total of the counter with the values that were served.
func (v *victim) total(t *testing.T, s *scene, i int, seen []int) {
	t.Helper()
	want := 0
	for j := 1; j < len(seen); j++ {
		if want += seen[j]; seen[j] >= seen[j-1] {
			want -= seen[j-1]
		}
	}
	if len(seen) < 2 {
		return
	}
	for _, x := range s.metric("c").Series {
		if x.Endpoint == i {
			if g := &x.Increase; g.Status.Certain() && g.Value != float64(want) || g.Low > float64(want) ||
				g.High < float64(want) {
				t.Errorf("target %d: gained %+v, served %d: %v", i, *g, want, seen)
			} else if g.Status.Certain() {
				v.certain = true
			}
			return
		}
	}
	t.Errorf("target %d: no counter", i)
}
