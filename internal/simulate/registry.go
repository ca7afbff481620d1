package simulate

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// registry holds the families of one simulated process in the order in which they are exposed, and applies what the
// model records to them: at once, or late when the process publishes late. It has one owner and no lock.
type registry struct {
	families []*family
	origin   time.Time // of the process
	now      time.Duration
	d        *dialect // of the families added from now on
	children int      // made so far, to tell their creation times apart
	keep     bool     // keep every record for Truth

	lag     lag
	pending []record
	head    int // first of pending that is not applied
}

// lag is how late records become visible.
type lag struct {
	delay, jitter time.Duration
	rng           *rand.Rand
	at, due       time.Duration // of the latest record
	any           bool
}

type record struct {
	due    time.Duration
	series *series
	value  float64
	n      int
}

// family is a named group of series. A plain family has no _created series.
type family struct {
	reg        *registry
	name, help string // the name without _total
	typ        metric.Type
	labels     []string
	bounds     []float64
	quantiles  []float64 // of a summary
	plain      bool
	group      string // of its common labels, in its table
	d          *dialect
	scale      float64 // of what is recorded; 0 means 1

	all     []*series
	series  []*series // visible, by birth
	byKey   map[string]*series
	classic header
	open    header
}

// header is the text before the samples of a family and, in the classic format, before its _created samples.
type header struct{ samples, created string }

// series is one label set of a family. value is that of a counter or gauge and the sum of a histogram or summary.
type series struct {
	family  *family
	labels  metric.Labels
	visible bool
	value   float64
	count   uint64
	buckets []uint64 // one per bound and one above them; not cumulative

	prefix  []string // text before each value, in the order of exposition
	created string   // the whole _created line
	kept    []Observation
	recent  []Observation // of a summary with quantiles, a ring of recentMost
}

func newRegistry(origin time.Time, o *Options, rng *rand.Rand) *registry {
	return &registry{
		origin: origin,
		d:      pythonDialect(),
		keep:   o.KeepTruth,
		lag:    lag{delay: o.PublishDelay, jitter: o.PublishJitter, rng: rng},
	}
}

// truthName is the name in Truth: of a counter without _total.
func (f *family) truthName() string {
	if f.typ == metric.Counter {
		return strings.TrimSuffix(f.name, "_total")
	}
	return f.name
}

// add registers a family, which its dialect writes from now on.
func (r *registry) add(f *family) *family {
	f.reg, f.d = r, r.d
	if f.typ == metric.Counter {
		f.name = strings.TrimSuffix(f.name, r.d.total)
	}
	f.plain = f.plain || !r.d.created
	f.byKey = map[string]*series{}
	f.writeHeaders()
	r.families = append(r.families, f)
	return f
}

// lazy returns the series of these label values, in the order of the family's label names. It stays out of the
// exposition until something is recorded in it: a labelled child that the process makes at the first event.
//
// A nil family has nil series.
func (f *family) lazy(values ...string) *series {
	if f == nil {
		return nil
	}
	key := strings.Join(values, "\xff")
	if s := f.byKey[key]; s != nil {
		return s
	}
	pairs := make([]metric.Label, len(f.labels))
	for i, name := range f.labels {
		pairs[i] = metric.Label{Name: name, Value: values[i]}
	}
	s := &series{family: f, labels: metric.NewLabels(pairs...)}
	if f.typ == metric.Histogram {
		s.buckets = make([]uint64, len(f.bounds)+1)
	}
	f.byKey[key] = s
	f.all = append(f.all, s)
	return s
}

func (f *family) show(s *series, now time.Duration) {
	if s.visible {
		return
	}
	s.visible = true
	f.reg.children++
	// Python makes its children one after the other, some microseconds apart.
	at := f.reg.origin.Add(now + time.Duration(f.reg.children)*1300*time.Nanosecond)
	s.writeText(float64(at.UnixNano()) / 1e9)
	f.series = append(f.series, s)
}

// drop ends the exposition of a series for good, as when a model is unloaded: the same labels begin anew.
func (f *family) drop(s *series) {
	maps.DeleteFunc(f.byKey, func(_ string, v *series) bool { return v == s })
	f.series = slices.DeleteFunc(f.series, func(v *series) bool { return v == s })
}

// set gives a gauge, or a counter that the process reads from elsewhere, its value. A nil series drops it.
func (s *series) set(v float64) {
	if s != nil {
		s.value = v
	}
}

// record notes at the instant now that a counter grows by v, or that a
// histogram or summary observes v, n times over. A nil series drops it.
func (r *registry) record(now time.Duration, s *series, v float64, n int) {
	if s == nil || n == 0 {
		return
	}
	if s.family.scale != 0 {
		v *= s.family.scale
	}
	due := r.lag.next(now)
	if r.keep {
		for range n {
			s.kept = append(s.kept, Observation{At: now, Published: due, Value: v})
		}
	}
	if due == now && r.head == len(r.pending) {
		s.apply(now, v, n)
		return
	}
	r.pending = append(r.pending, record{due, s, v, n})
}

// next returns when something that happens now is published: all of one
// instant together, and never before what happened earlier.
func (l *lag) next(now time.Duration) time.Duration {
	if l.any && l.at == now {
		return l.due
	}
	due := now + l.delay
	if l.jitter > 0 {
		due += time.Duration(l.rng.Int64N(int64(l.jitter)))
	}
	l.at, l.due, l.any = now, max(l.due, due), true
	return l.due
}

// publish applies what is due by now.
func (r *registry) publish(now time.Duration) {
	r.now = now
	for r.head < len(r.pending) && r.pending[r.head].due <= now {
		p := r.pending[r.head]
		p.series.apply(p.due, p.value, p.n)
		r.head++
	}
	if r.head == len(r.pending) {
		r.pending, r.head = r.pending[:0], 0
	} else if r.head > 4096 {
		r.pending, r.head = slices.Delete(r.pending, 0, r.head), 0
	}
}

func (s *series) apply(at time.Duration, v float64, n int) {
	s.family.show(s, at)
	if s.buckets != nil {
		s.buckets[sort.SearchFloat64s(s.family.bounds, v)] += uint64(n)
	}
	s.count += uint64(n)
	s.remember(at, v)
	for range n { // adding n times rounds as the process itself does
		s.value += v
	}
}

// samples returns how many lines of samples the exposition has.
func (r *registry) samples() int {
	n := 0
	for _, f := range r.families {
		lines := 1
		switch f.typ {
		case metric.Histogram:
			lines = len(f.bounds) + 3
		case metric.Summary:
			lines = 2 + len(f.quantiles)
		}
		if !f.plain {
			lines++
		}
		n += lines * len(f.series)
	}
	return n
}

// tokenBounds are the bounds 1, 2, 5, 10, ... up to limit, as vLLM makes its token buckets from the context length.
func tokenBounds(limit int) []float64 {
	var bounds []float64
	for decade := 1; ; decade *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*decade > limit {
				return bounds
			}
			bounds = append(bounds, float64(m*decade))
		}
	}
}

// seconds is a duration as the engines report it.
func seconds(d time.Duration) float64 { return float64(d) / 1e9 }

// lognormal draws from the lognormal distribution of that mean and coefficient
// of variation; without variation it is the mean.
func lognormal(rng *rand.Rand, mean, cv float64) float64 {
	if cv <= 0 {
		return mean
	}
	sigma2 := math.Log1p(cv * cv)
	return mean * math.Exp(math.Sqrt(sigma2)*rng.NormFloat64()-sigma2/2)
}
