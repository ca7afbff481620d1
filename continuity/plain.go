package continuity

import "github.com/scrapestat/scrapestat/metric"

// Plain reports whether the poll is taken as it was sent: Delta is that of the snapshot itself.
func (s *Step) Plain(of *metric.Snapshot) bool {
	a, b := &s.Delta, &of.Delta
	return !s.Held && len(a.Slots) == len(b.Slots) &&
		(len(a.Slots) == 0 || &a.Slots[0] == &b.Slots[0] && &a.Bits[0] == &b.Bits[0])
}
