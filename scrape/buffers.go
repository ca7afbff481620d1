package scrape

import (
	"sync"

	"github.com/scrapestat/scrapestat/metric"
)

// buffers lends memory for bodies and frames. Few polls run at the same time: if each target kept a second
// buffer for its next body, and a frame, most of them would lie idle.
type buffers struct {
	mu     sync.Mutex
	free   [][]byte
	frames []metric.Delta
}

const (
	maxFree     = 8
	bufferSlack = 64 << 10
)

// take returns an empty buffer for a body of about want bytes, without one that is far too large.
func (p *buffers) take(want int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, b := range p.free {
		if cap(b) >= want && cap(b) <= 2*want+bufferSlack && (best < 0 || cap(b) < cap(p.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	b, last := p.free[best], len(p.free)-1
	p.free[best], p.free[last] = p.free[last], nil
	p.free = p.free[:last]
	return b[:0]
}

// give takes a buffer back; the caller has no further use for it.
func (p *buffers) give(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cap(b) > 0 && len(p.free) < maxFree {
		p.free = append(p.free, b)
	}
}

// takeFrame returns a frame to fill, empty or with memory of an earlier one.
func (p *buffers) takeFrame() (f metric.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.frames) - 1; last >= 0 {
		f, p.frames = p.frames[last], p.frames[:last]
	}
	return f
}

// giveFrame takes a frame back; the caller has no further use for it.
func (p *buffers) giveFrame(f metric.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cap(f.Slots) > 0 && len(p.frames) < maxFree {
		p.frames = append(p.frames, f)
	}
}
