package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// The bounds on what is kept of an endpoint; what is beyond is counted.
const (
	maxWarnings = 50
	maxGaps     = 100
	maxReasons  = 50
)

// poll is what is kept of each poll.
type poll struct {
	at      int64
	took    int64
	late    int64 // -1 when it was never sent
	outcome metric.Outcome
	usable  bool // it showed a sample that AIPerf would keep
	repeat  bool // the body was that of the previous stored poll
}

// ledger accounts for the polls of one target.
type ledger struct {
	polls []poll
	sum   Ledger
	dict  metric.Schema
	// shown counts the slots in the last stored poll that AIPerf would keep.
	shown int

	exemplars map[int]metric.Exemplar // by slot

	warnings []metric.Warning
	dropped  int // warnings that were not kept
}

// add accounts for a poll. It refuses one that does not fit the dictionary.
func (l *ledger) add(s *metric.Snapshot) error {
	if err := l.dict.Extend(s); err != nil {
		return err
	}
	p := poll{at: s.AtNS(), took: int64(s.Duration), late: -1, outcome: s.Outcome, repeat: s.Duplicate}
	p.at = cmp.Or(p.at, s.DueNS) // it was never sent
	if s.SentNS != 0 && s.DueNS != 0 {
		p.late = max(0, s.SentNS-s.DueNS)
	}
	if s.Outcome >= metric.Outcomes {
		return fmt.Errorf("unknown outcome %d", s.Outcome)
	}
	l.sum.Scheduled++
	l.sum.Outcomes[s.Outcome]++
	l.sum.Bytes += s.BodyBytes
	if first := &l.sum.FirstOf[s.Outcome]; *first == (PollError{}) && s.Err != "" {
		*first = PollError{AtNS: p.at, Outcome: s.Outcome, Text: s.Err}
	}
	if s.Outcome.Stored() {
		l.count(&s.Delta)
		p.usable = l.shown > 0
		l.sum.Lines += int64(s.Lines)
		l.sum.Stored += int64(s.Lines - s.Dropped())
	} else {
		l.failed(s, p.at)
		l.sum.Lines += int64(s.Dropped()) // of a body that hit a limit
	}
	l.exemplar(s.Exemplars)
	for _, d := range s.Drops {
		l.drop(d)
	}
	for _, w := range s.Warnings {
		l.warn(w)
	}
	l.polls = append(l.polls, p)
	return nil
}

// count finds out how many slots of the types AIPerf keeps are present. Only a full frame can change that.
func (l *ledger) count(f *metric.Delta) {
	if !f.Full {
		return
	}
	l.shown = 0
	for _, slot := range f.Slots {
		s := &l.dict.Slots[slot]
		switch l.dict.FamilyOf(s.Series).Type {
		case metric.Counter, metric.Gauge, metric.Histogram, metric.Unknown:
			if !s.Role.Metadata() {
				l.shown++
			}
		}
	}
}

func (l *ledger) failed(s *metric.Snapshot, at int64) {
	e := PollError{AtNS: at, Outcome: s.Outcome, Text: s.Err}
	if l.sum.FirstError == (PollError{}) {
		l.sum.FirstError = e
	}
	l.sum.LastError = e
}

func (l *ledger) drop(d metric.Drop) {
	i := slices.IndexFunc(l.sum.Dropped, func(have metric.Drop) bool { return have.Reason == d.Reason })
	switch {
	case i >= 0:
		l.sum.Dropped[i].Lines += d.Lines
	case len(l.sum.Dropped) < maxReasons:
		l.sum.Dropped = append(l.sum.Dropped, d)
	default:
		l.sum.Dropped[maxReasons-1].Lines += d.Lines
		l.sum.Dropped[maxReasons-1].Reason = "other"
	}
}

// warn keeps a warning once.
func (l *ledger) warn(w metric.Warning) {
	switch {
	case slices.Contains(l.warnings, w):
	case len(l.warnings) < maxWarnings:
		l.warnings = append(l.warnings, w)
	default:
		l.dropped++
	}
}

// allWarnings returns the warnings and, last, how many are missing.
func (l *ledger) allWarnings() []metric.Warning {
	out := slices.Clone(l.warnings)
	if l.dropped > 0 {
		out = append(out, metric.Warnf("more_warnings", "%d more warnings were not kept", l.dropped))
	}
	return out
}

// result returns the ledger; w is the window whose outcomes are told apart.
func (l *ledger) result(start, end int64) Ledger {
	out := l.sum
	out.Dropped = slices.Clone(l.sum.Dropped)
	out.Families, out.SeriesN = len(l.dict.Families), len(l.dict.Series)
	late := make([]int64, 0, len(l.polls))
	for _, p := range l.polls {
		if start <= p.at && p.at <= end {
			out.InWindow[p.outcome]++
		}
		if p.late >= 0 {
			late = append(late, p.late)
		}
	}
	out.Late = lateness(late)
	return out
}

// lateness summarises how late requests were sent. It sorts late.
func lateness(late []int64) ScheduleDelay {
	if len(late) == 0 {
		return ScheduleDelay{}
	}
	slices.Sort(late)
	total := 0.0
	for _, v := range late {
		total += float64(v)
	}
	rank := int(math.Ceil(0.99*float64(len(late)))) - 1
	return ScheduleDelay{
		Mean: time.Duration(total / float64(len(late))),
		P99:  time.Duration(late[max(0, rank)]),
		Max:  time.Duration(late[len(late)-1]),
	}
}

// fetches summarises the usable polls between two instants, both included; nil when there are none.
func (l *ledger) fetches(start, end int64) *FetchStats {
	var f FetchStats
	var took int64
	var updates []int64
	for _, p := range l.polls {
		if !p.usable || !p.outcome.Stored() || p.at < start || p.at > end {
			continue
		}
		if f.Total == 0 {
			f.FirstNS, f.LastNS = p.at, p.at
		}
		f.Total++
		f.FirstNS, f.LastNS = min(f.FirstNS, p.at), max(f.LastNS, p.at)
		took += p.took
		if !p.repeat {
			updates = append(updates, p.at)
		}
	}
	if f.Total == 0 {
		return nil
	}
	f.AvgLatency = time.Duration(took / int64(f.Total))
	f.AvgLatencyMS = float64(took) / float64(f.Total) / 1e6
	f.update(updates)
	return &f
}

// update fills in what is told of the updates, of which there may be none.
func (f *FetchStats) update(at []int64) {
	f.Unique = len(at)
	if len(at) == 0 {
		return
	}
	slices.Sort(at)
	f.FirstUpdateNS, f.LastUpdateNS = at[0], at[len(at)-1]
	if len(at) < 2 {
		return
	}
	f.AvgUpdateIntervalMS = f.UpdateSeconds() * 1000 / float64(len(at)-1)
	gaps := make([]int64, len(at)-1)
	for i := range gaps {
		gaps[i] = at[i+1] - at[i]
	}
	slices.Sort(gaps)
	mid := len(gaps) / 2
	f.MedianUpdateIntervalMS, f.HasMedian = float64(gaps[mid])/1e6, true
	if len(gaps)%2 == 0 {
		f.MedianUpdateIntervalMS = (float64(gaps[mid-1]) + float64(gaps[mid])) / 2 / 1e6
	}
}

// UpdateSeconds is the time from the first update to the last.
func (f *FetchStats) UpdateSeconds() float64 {
	return float64(f.LastUpdateNS-f.FirstUpdateNS) / 1e9
}

// gaps lists the stretches in which every poll failed, and counts them.
func (l *ledger) gaps() (out []Gap, n int) {
	var now Gap
	last := int64(0)
	flush := func(end int64) {
		if now.Polls == 0 {
			return
		}
		now.EndNS = end
		if n++; n <= maxGaps {
			out = append(out, now)
		}
		now = Gap{}
	}
	for _, p := range l.polls {
		if p.outcome.Stored() {
			flush(p.at)
			last = p.at
			continue
		}
		if now.Polls == 0 {
			now.StartNS = last
		}
		now.Polls++
	}
	flush(0)
	return out, n
}

// declared lists the families that never had a series, in order of appearance.
func (l *ledger) declared() []string {
	has := make([]bool, len(l.dict.Families))
	for i := range l.dict.Series {
		has[l.dict.Series[i].Family] = true
	}
	var out []string
	listed := map[string]bool{}
	for i := range l.dict.Families {
		if name := l.dict.Families[i].Name; !has[i] && !listed[name] {
			listed[name] = true
			out = append(out, name)
		}
	}
	return out
}
