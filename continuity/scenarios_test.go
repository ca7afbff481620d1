package continuity_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// unitNames are the units of a simulated server: 7 counters, 2 children that exist from their first event on, and 2
// histograms; with engines, three more counters each.
var unitNames = [...]string{"req_total{status=\"200\"}", "prompt_tokens_total", "generation_tokens_total",
	"steps_total", "net_bytes_total", "cpu_seconds_total", "gc_total", "req_total{status=\"503\"}",
	"aborted_total", "e2e", "ttft"}

// server is one process and what it counted.
type server struct {
	start   float64
	rate    float64
	value   map[string][]float64 // by unit: its value, or count, buckets and sum
	created map[string]float64
	// What it showed: first and greatest value by unit, and what units that were made anew had shown before.
	first, top, before map[string]float64
	seen               float64 // when it answered first, 0 for never
	pod                string
}

// scenario says what happens. It may change the world before poll i, and the body of poll i.
type scenario struct {
	name     string
	remedy   string // for what is flagged or refused
	flagged  bool   // several processes: no number is certain
	prepare  func(w *world)
	before   func(w *world, i int)
	disguise func(w *world, i int, lines map[string]float64)
}

// world is a recording in the making.
type world struct {
	rng      *rand.Rand
	t, every float64
	polls    int
	servers  []*server
	cur      *server
	who      func(i int) int // which server answers
	times    string
	at       int // of the event
	skew     float64
	late     float64 // no polls for so long at the event
	flight   float64 // of bodies: seconds from asking for one to its first byte
	partial  bool
	failed   bool
	held     []map[string]float64
	shown    map[string]float64 // of the server, before it was disguised
	fell     bool               // three keys did at once: one or two are what a dip looks like
	engines  int
}

func newServer(w *world, age, rate float64) *server {
	s := &server{start: w.t - age, rate: rate, value: map[string][]float64{}, created: map[string]float64{},
		first: map[string]float64{}, top: map[string]float64{}, before: map[string]float64{}}
	for _, u := range unitNames[:7] {
		s.make(u, s.start)
	}
	s.make("e2e", s.start)
	s.make("ttft", s.start)
	for e := range w.engines {
		for _, u := range []string{"gen", "hit", "iter"} {
			s.make(fmt.Sprintf("%s_total{engine=\"%d\"}", u, e), s.start)
		}
	}
	s.advance(w, s.start, age)
	return s
}

func (s *server) make(u string, at float64) {
	s.value[u], s.created[u] = make([]float64, 1), math.Round(at*1e6)/1e6
	if u == "e2e" || u == "ttft" {
		s.value[u] = make([]float64, 6)
	}
}

// advance lets a server work from a time on.
func (s *server) advance(w *world, from, dt float64) {
	n := poisson(w.rng, s.rate*dt)
	add := func(u string, v float64) {
		if v > 0 && s.value[u] == nil {
			s.make(u, from+dt*w.rng.Float64())
		}
		if v > 0 {
			s.value[u][0] += v
		}
	}
	add(unitNames[0], n)
	add(unitNames[1], math.Round(n*(300+50*w.rng.NormFloat64())))
	add(unitNames[2], math.Round(n*(120+20*w.rng.NormFloat64())))
	add(unitNames[3], poisson(w.rng, 40*dt*min(1, s.rate)))
	add(unitNames[4], math.Round(n*(9000+900*w.rng.NormFloat64())))
	add(unitNames[5], math.Round(100*dt*(0.3+s.rate/200))/100)
	add(unitNames[6], poisson(w.rng, 0.3*dt))
	add(unitNames[7], poisson(w.rng, 0.004*n))
	add(unitNames[8], poisson(w.rng, 0.002*n))
	for e := range w.engines {
		for i, u := range []string{"gen", "hit", "iter"} {
			add(fmt.Sprintf("%s_total{engine=\"%d\"}", u, e), poisson(w.rng, n*float64(1+30*i)/float64(w.engines)))
		}
	}
	for _, u := range []string{"e2e", "ttft"} {
		v, left := s.value[u], n
		for b := 1; b < 5; b++ {
			part := math.Floor(left * (0.2 + 0.3*w.rng.Float64()))
			left -= part
			for k := b; k < 5; k++ {
				v[k] += part
			}
		}
		v[0] += n
		v[4] = v[0]
		v[5] += n * (0.4 + 0.1*w.rng.Float64())
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

func poisson(rng *rand.Rand, mean float64) float64 {
	if mean > 30 {
		return max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64()))
	}
	n, p, l := -1.0, 1.0, math.Exp(-mean)
	for p > l || n < 0 {
		p *= rng.Float64()
		n++
	}
	return n
}

// body is what a server shows: the keys of its units, and "start" and "created ..." as the world has times.
func (s *server) body(w *world) map[string]float64 {
	out := map[string]float64{}
	for u, v := range s.value {
		for i := range v {
			out[fmt.Sprintf("%s|%d", u, i)] = v[i]
		}
		if w.times == "full" || w.times == "created" {
			out["created|"+u] = s.created[u] + w.skew
		}
	}
	if w.times == "full" || w.times == "start" {
		out["start|"] = math.Round(100*(s.start+w.skew)) / 100
	}
	return out
}

// note keeps what a server showed; a process or a child that began while it was watched counts from zero.
func (s *server) note(w *world, body map[string]float64) {
	if s.seen == 0 {
		s.seen = w.t
	}
	for u := range s.value {
		v, ok := body[u+"|0"]
		if !ok {
			continue
		}
		if _, ok := s.first[u]; !ok {
			if s.first[u] = v; s.start > epoch || s.seen < w.t || s.created[u] > epoch {
				s.first[u] = 0
			}
		}
		s.top[u] = max(s.top[u], v)
	}
}

// anew makes a unit of a server anew.
func (s *server) anew(w *world, u string) {
	s.before[u] += s.top[u]
	s.top[u] = 0
	s.make(u, w.t-w.every*w.rng.Float64()*0.9)
}

const epoch = 1.79e9 // the first poll

// run feeds the recording to a target and returns the truth by unit, and whether a time or a fall can show it.
func (c *scenario) run(x *target, times string, every float64, seed uint64) (truth map[string]float64, visible bool) {
	w := &world{rng: rand.New(rand.NewPCG(seed, uint64(every*1000))), t: epoch, every: every, polls: 60, times: times}
	w.at = 20 + w.rng.IntN(20)
	if c.name == "engines" || c.name == "gpus" {
		w.engines = 3
	}
	w.servers = []*server{newServer(w, w.age(), w.rate())}
	if c.prepare != nil {
		c.prepare(w)
	}
	for i := range w.polls {
		w.partial, w.failed = false, false
		if c.before != nil {
			c.before(w, i)
		}
		at := 0
		if w.who != nil {
			at = w.who(i)
		}
		w.cur = w.servers[at]
		lines := w.cur.body(w)
		fell := 0
		for k, v := range lines {
			fell += count(strings.HasSuffix(k, "|0") && v < w.shown[k])
		}
		w.fell = w.fell || fell >= 3
		w.shown = maps.Clone(lines)
		if c.disguise != nil {
			c.disguise(w, i, lines)
		}
		if !w.failed {
			w.cur.note(w, lines)
		}
		x.lines(lines, w.cur.pod, w)
		dt := every
		if i == w.at {
			dt += w.late
		}
		for _, s := range w.servers {
			s.advance(w, w.t, dt)
		}
		w.t += dt
	}
	truth = map[string]float64{}
	for _, s := range w.servers {
		for u, top := range s.top {
			truth[u] += s.before[u] + top - s.first[u]
		}
	}
	return truth, w.fell || times != "none"
}

func (w *world) age() float64 { return math.Exp(w.rng.Float64()*math.Log(720)) * 120 }

func (w *world) rate() float64 { return math.Exp(w.rng.Float64()*math.Log(60)) * 2 }

// lines feeds one body.
func (x *target) lines(lines map[string]float64, pod string, w *world) {
	with := func(name string) string {
		if pod == "" {
			return name
		}
		if strings.HasSuffix(name, "}") {
			return strings.TrimSuffix(name, "}") + ",pod=\"" + pod + "\"}"
		}
		return name + "{pod=\"" + pod + "\"}"
	}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		u, part, _ := strings.Cut(key, "|")
		switch v := lines[key]; {
		case u == "start":
			x.set(with("process_start_time_seconds"), "gauge", v)
		case u == "created":
			// below, behind its owner
		case u != "e2e" && u != "ttft":
			x.set(with(u), "counter", v)
		case part == "0":
			x.set(with(u+"_count"), "histogram", v)
		case part == "5":
			x.set(with(u+"_sum"), "histogram", v)
		default:
			le := map[string]string{"1": "0.1", "2": "1", "3": "10", "4": "+Inf"}[part]
			x.set(with(u+"_bucket{le=\""+le+"\"}"), "histogram", v)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		if u, ok := strings.CutPrefix(key, "created|"); ok && !math.IsNaN(lines[u+"|0"]) {
			if _, there := lines[u+"|0"]; there {
				base, labels, _ := strings.Cut(strings.Replace(u, "_total", "", 1), "{")
				if labels != "" {
					labels = "{" + labels
				}
				x.set(with(base+"_created"+labels), "gauge", lines[key])
			}
		}
	}
	x.end(w)
}
