package live

import (
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// trendPoints is how many points a trend keeps.
const trendPoints = 60

// Board keeps the account of each target: how its polls ended and what they took. It is safe for concurrent use.
type Board struct {
	mu       sync.RWMutex // of the list, not of what it holds
	accounts []*account
}

// account is that of one target.
type account struct {
	mu     sync.Mutex
	health Health
	took   ring
}

// Health is the account of one target.
type Health struct {
	Target metric.Target
	Gone   bool // no longer listed by what it came from

	Polls, Stored, Failed, Skipped int64
	// Trailing is how many polls failed or were skipped since the last stored one.
	Trailing    int64
	LastOutcome metric.Outcome
	LastError   string // of the last poll that failed, as the target or the network wrote it

	Took, MaxTook time.Duration // of the last poll that was sent, and of all
	Busy          time.Duration // sum of what polls took: time the target spent on us
	Late, MaxLate time.Duration // behind schedule, of the last poll that was sent and of all

	Lines, Lost int64
	Trend       []float64 // seconds that the last polls took, the newest last
}

// ring is the last trendPoints values.
type ring struct {
	at     [trendPoints]float64
	n, end int
}

func (r *ring) add(v float64) {
	r.at[r.end] = v
	r.end = (r.end + 1) % len(r.at)
	r.n = min(r.n+1, len(r.at))
}

// values returns a copy, the newest last.
func (r *ring) values() []float64 {
	out := make([]float64, 0, r.n)
	for i := range r.n {
		out = append(out, r.at[(r.end-r.n+i+len(r.at))%len(r.at)])
	}
	return out
}

// NewBoard returns a board for these targets; the index of each is that of its snapshots.
func NewBoard(targets []metric.Target) *Board {
	b := &Board{}
	for _, t := range targets {
		b.AddTarget(t)
	}
	return b
}

// AddTarget adds a target that came later, before its first poll.
func (b *Board) AddTarget(t metric.Target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts = append(b.accounts, &account{health: Health{Target: t}})
}

// Gone notes that a target went, or is back.
func (b *Board) Gone(target int, gone bool) {
	if c := b.account(target); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.health.Gone = gone
	}
}

func (b *Board) account(target int) *account {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if target < 0 || target >= len(b.accounts) {
		return nil
	}
	return b.accounts[target]
}

// Record takes a poll of one of the targets into its account. It keeps nothing of s but texts.
func (b *Board) Record(s *metric.Snapshot) {
	c := b.account(s.Target)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &c.health
	h.Polls++
	h.LastOutcome = s.Outcome
	switch {
	case s.Outcome.Stored():
		h.Stored++
		h.Trailing = 0
		h.Lines += int64(s.Lines)
		h.Lost += int64(s.Lost())
	case s.Outcome == metric.SkippedOverlap:
		h.Skipped++
		h.Trailing++
	default:
		h.Failed++
		h.Trailing++
	}
	if s.Err != "" && s.Outcome != metric.SkippedOverlap {
		h.LastError = s.Err
	}
	if s.SentNS == 0 || s.Outcome == metric.SkippedOverlap {
		return
	}
	h.Took, h.Busy = s.Duration, h.Busy+s.Duration
	h.MaxTook = max(h.MaxTook, s.Duration)
	h.Late = max(0, time.Duration(s.SentNS-s.DueNS))
	h.MaxLate = max(h.MaxLate, h.Late)
	c.took.add(s.Duration.Seconds())
}

// Health returns a copy of all accounts.
func (b *Board) Health() []Health {
	b.mu.RLock()
	accounts := b.accounts
	b.mu.RUnlock()
	out := make([]Health, 0, len(accounts))
	for _, c := range accounts {
		c.mu.Lock()
		h := c.health
		h.Trend = c.took.values()
		c.mu.Unlock()
		out = append(out, h)
	}
	return out
}
