package metric

import "sync"

// What a series takes until its run is exported: each of its lines, and each byte of
// its labels. Measured with 300,000 of them through collect to its JSON export.
const (
	lineMemory = 1536
	textMemory = 6
)

// Memory is what the series of several targets may take together. The last quarter is
// not for the target that takes the most: it is refused first, and the others go on.
type Memory struct {
	limit int64

	mu          sync.Mutex
	total, most int64 // of all targets, and of the largest one
}

// NewMemory returns a bound in bytes, an estimate of what the process takes.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// Charge counts lines of series, with so many bytes of labels, that are there already and of no target in particular.
// It reports whether all is within the limit. It is safe for concurrent use; nil has no limit.
func (m *Memory) Charge(lines, text int) bool {
	return m.Use(int64(lines)*lineMemory + int64(text)*textMemory)
}

// Use counts bytes of something else as Charge does.
func (m *Memory) Use(bytes int64) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += bytes
	return m.total <= m.limit
}

// MemoryShare is what one target takes. It is safe for concurrent use; nil is not bounded.
type MemoryShare struct {
	of   *Memory
	held int64
	body int64
}

// Share returns that of another target.
func (m *Memory) Share() *MemoryShare { return &MemoryShare{of: m} }

// Take reports whether there is room for lines of series with so many bytes of labels, and takes it.
func (s *MemoryShare) Take(lines, text int) bool {
	if s == nil {
		return true
	}
	m, n := s.of, int64(lines)*lineMemory+int64(text)*textMemory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total+n > m.limit || m.total+n > m.limit/4*3 && s.held+n > m.most {
		return false
	}
	s.grow(n)
	return true
}

// Hold counts what a target takes anyhow: its largest body, and lines that were not asked for.
func (s *MemoryShare) Hold(body int64, lines int) {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	more := max(0, 2*body-s.body) // a body is there twice, as it came and as it is kept
	s.body += more
	s.grow(more + int64(lines)*lineMemory)
}

func (s *MemoryShare) grow(n int64) {
	s.held += n
	s.of.total += n
	s.of.most = max(s.of.most, s.held)
}
