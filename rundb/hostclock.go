package rundb

import (
	"fmt"
	"time"
)

// HostClock is an instant as the clocks of a machine tell it.
type HostClock struct {
	BootID string // of this start of the machine; "" where it is not known
	MonoNS int64  // of the monotonic clock
	UnixNS int64  // of the wall clock
}

// maxMarkAhead is by how much the wall clock of another machine may be ahead of the last poll of a run that is
// being recorded, besides an interval and the time that a poll may take.
const maxMarkAhead = 5 * time.Second

// At places an instant on the axis of the recording: by the monotonic clock when it was told on the machine that
// records, since its last start, so that steps of the wall clock do not show. Elsewhere the wall clock has to do;
// while the recording goes on and its last poll was at lastNS, a wall clock that tells something else is refused
// with the difference.
func (m *Meta) At(c HostClock, lastNS int64) (int64, error) {
	if m.BootID != "" && m.BootID == c.BootID {
		return m.OriginNS + c.MonoNS - m.BootNS, nil
	}
	off := time.Duration(c.UnixNS - lastNS)
	if m.EndNS == 0 && lastNS != 0 && (off < 0 || off > maxMarkAhead+m.Interval+m.Timeout) {
		return 0, fmt.Errorf("this machine's clock differs from that of the recording: its last poll was at %s, here it is "+
			"%s (%v later): use mark on the machine that records (%s), or the URL of collect --listen",
			time.Unix(0, lastNS).UTC().Format(time.RFC3339Nano), time.Unix(0, c.UnixNS).UTC().Format(time.RFC3339Nano), off,
			m.Host)
	}
	return c.UnixNS, nil
}
