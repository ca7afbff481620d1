package scrape

import "sync"

// buffers lends memory for bodies. Few polls run at the same time: if each target
// kept a second buffer for its next body, most of them would lie idle.
type buffers struct {
	mu   sync.Mutex
	free [][]byte
}

const (
	maxFree     = 16
	bufferSlack = 64 << 10
)

// take returns an empty buffer for a body of about want bytes, without one that
// is far too large: the buffer stays with the target as long as its body.
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
