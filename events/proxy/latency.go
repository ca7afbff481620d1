package proxy

import (
	"encoding/json"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Stats is what has passed and what the proxy itself cost.
type Stats struct {
	Requests  int64 `json:"requests"`  // recorded ones, failed ones among them
	Failed    int64 `json:"failed"`    // for whatever reason
	Passed    int64 `json:"passed"`    // that were not recorded
	Refused   int64 `json:"refused"`   // beyond Options.MaxStreams
	Unscanned int64 `json:"unscanned"` // answers of a type or compression that cannot be scanned
	// Oversized are lines and answers beyond a limit, and requests that could not be held to ask for usage; Unreadable
	// are answers that were no JSON.
	Oversized  int64            `json:"oversized"`
	Unreadable int64            `json:"unreadable"`
	Errors     map[string]int64 `json:"errors,omitempty"` // failed requests by type
	// MaxHeld is the most memory that was held for scanning, in bytes.
	MaxHeld int64 `json:"max_held_bytes"`
	// Sent is the time from the headers of a request to its sending, Added the same and what it took to hand the answer
	// on: an upper bound of what the proxy added to the end of a request, as a slow client counts as well.
	Sent  Delay `json:"sent"`
	Added Delay `json:"added"`
	// Null is what a proxy adds in front of a server that does nothing, where it was measured.
	Null *NullDelay `json:"null_upstream,omitempty"`
}

// Lost is how many requests and answers, or parts of them, are not in the recording as they were: refused, not
// scanned, beyond a limit, unreadable.
func (s *Stats) Lost() int64 { return s.Refused + s.Unscanned + s.Oversized + s.Unreadable }

// Delay is the distribution of a time that the proxy took. Percentiles are those of a histogram whose buckets are 5 %
// wide.
type Delay struct {
	N   int64         `json:"n"`
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// Stats returns the numbers so far.
func (p *Proxy) Stats() Stats {
	c := &p.counts
	s := Stats{Requests: c.requests.Load(), Passed: c.passed.Load(), Refused: c.refused.Load(),
		Unscanned: c.unscanned.Load(), Oversized: c.oversized.Load(), Unreadable: c.unreadable.Load(),
		MaxHeld: p.held.most.Load(), Sent: p.sent.sum(), Added: p.added.sum()}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Null = c.null
	for kind, n := range c.errors {
		if s.Errors == nil {
			s.Errors = map[string]int64{}
		}
		s.Errors[kind] = n
		s.Failed += n
	}
	return s
}

// json is the data of the end of a session.
func (s Stats) json() []byte {
	b, err := json.Marshal(struct {
		Proxy Stats `json:"proxy"`
	}{s})
	if err != nil {
		return nil // numbers always encode
	}
	return b
}

// counts are what Stats is made of.
type counts struct {
	requests, passed, refused, unscanned, oversized, unreadable atomic.Int64

	mu     sync.Mutex
	errors map[string]int64
	null   *NullDelay
}

// end counts a request that failed with an error of that type, if any.
func (c *counts) end(kind string) {
	if kind == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errors == nil {
		c.errors = map[string]int64{}
	}
	c.errors[kind]++
}

// delays is a histogram of times from 1 µs up, each bucket 5 % wider than the one before; the last one has everything
// above 9 minutes.
type delays struct {
	buckets [415]atomic.Int64
	max     atomic.Int64
}

const delayGrowth = 1.05

func (d *delays) add(t time.Duration) {
	i := 0
	if us := float64(t) / 1e3; us > 1 {
		i = min(int(math.Log(us)/math.Log(delayGrowth))+1, len(d.buckets)-1)
	}
	d.buckets[i].Add(1)
	for {
		old := d.max.Load()
		if int64(t) <= old || d.max.CompareAndSwap(old, int64(t)) {
			return
		}
	}
}

func (d *delays) sum() Delay {
	var counts [len(d.buckets)]int64
	out := Delay{Max: time.Duration(d.max.Load())}
	for i := range counts {
		counts[i] = d.buckets[i].Load()
		out.N += counts[i]
	}
	quantile := func(q float64) time.Duration {
		rank, seen := int64(math.Ceil(q*float64(out.N))), int64(0)
		for i, n := range counts {
			if seen += n; seen >= rank && n > 0 {
				return min(time.Duration(1e3*math.Pow(delayGrowth, float64(i))), out.Max)
			}
		}
		return 0
	}
	out.P50, out.P99 = quantile(0.5), quantile(0.99)
	return out
}

// buffers lends the copies of ReverseProxy their buffers.
type buffers struct{ pool sync.Pool }

// Get returns a buffer of 32 KiB.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

// Put takes one back.
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
