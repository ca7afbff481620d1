package export

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sort"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// JSONL writes every stored poll that is no duplicate as a line, the polls of all endpoints in time order over the
// whole run, with the values as the servers sent them: cumulative, warm-up included. Only samples that AIPerf would
// keep are written: finite ones, of counters, gauges, histograms and unknown families whose name does not end in _info;
// of native histograms the populated buckets, as a classic histogram of these would have them. Summaries, infos, state
// sets and gauge histograms, which AIPerf does not know, follow under the key "scrapestat". A poll without any gives no
// line. A line has the phase that its poll was in, see [Phases].
//
// It reads the recordings as a stream and holds one poll per endpoint.
func JSONL(ctx context.Context, w io.Writer, r *summary.Run, recs []Recording, o Options) error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("write JSONL: %w", err)
	}
	m, err := newMerger(ctx, r, recs)
	if err != nil {
		return fmt.Errorf("write JSONL: %w", err)
	}
	defer m.stop()
	var buf []byte
	tags := tagsOf(r)
	for s := m.next(); s != nil; s = m.next() {
		if !s.poll.Duplicate && !s.client {
			buf = s.appendLine(buf, tags)
		}
		if len(buf) > flushSize {
			if _, err := w.Write(buf); err != nil {
				return fmt.Errorf("write JSONL: %w", err)
			}
			buf = buf[:0]
		}
	}
	if m.err == nil && len(buf) > 0 {
		_, m.err = w.Write(buf)
	}
	if m.err != nil {
		return fmt.Errorf("write JSONL: %w", m.err)
	}
	return nil
}

// merger yields the stored polls of all targets in time order.
type merger struct {
	streams []*stream
	current *stream // whose poll was yielded last
	err     error   // sticks
}

// stream is the polls of one target.
type stream struct {
	url    string
	client bool // no server: its polls are not told
	pull   func() (*metric.Snapshot, error, bool)
	stop   func()
	poll   *metric.Snapshot // nil at the end
	state  lineState
}

func newMerger(ctx context.Context, r *summary.Run, recs []Recording) (*merger, error) {
	m := &merger{}
	for _, rec := range recs {
		for i, t := range rec.Targets() {
			pull, stop := iter.Pull2(rec.Snapshots(ctx, i))
			m.streams = append(m.streams, &stream{url: t.URL, client: t.Client(), pull: pull, stop: stop})
		}
	}
	if len(m.streams) != len(r.Endpoints) {
		m.stop()
		return nil, fmt.Errorf("the recordings have %d targets, the result %d: it is of other recordings", len(m.streams),
			len(r.Endpoints))
	}
	for _, s := range m.streams {
		m.advance(s)
	}
	return m, nil
}

// stop ends the reading of all recordings.
func (m *merger) stop() {
	for _, s := range m.streams {
		s.stop()
	}
}

// next returns the stream whose poll is the earliest of those not yielded yet, nil at the end or after an error.
func (m *merger) next() *stream {
	if m.current != nil {
		m.advance(m.current)
	}
	m.current = nil
	if m.err != nil {
		return nil
	}
	for _, s := range m.streams {
		if s.poll != nil && (m.current == nil || s.poll.AtNS() < m.current.poll.AtNS()) {
			m.current = s
		}
	}
	return m.current
}

// advance goes to the next stored poll of a stream.
func (m *merger) advance(s *stream) {
	for m.err == nil {
		poll, err, ok := s.pull()
		if s.poll = poll; !ok {
			s.poll = nil
			return
		}
		if err == nil {
			err = s.state.apply(poll)
		}
		if err != nil {
			m.err = fmt.Errorf("read polls of %s: %w", s.url, err)
		} else if poll.Outcome.Stored() {
			return
		}
	}
}

// appendLine appends the line of the present poll, nothing when it has no samples.
func (s *stream) appendLine(b []byte, tags []phaseTag) []byte {
	start := len(b)
	b = append(b, `{"endpoint_url":`...)
	b = appendString(b, s.url)
	b = append(b, `,"timestamp_ns":`...)
	b = strconv.AppendInt(b, s.poll.AtNS(), 10)
	b = append(b, `,"endpoint_latency_ns":`...)
	b = strconv.AppendInt(b, int64(s.poll.Duration), 10)
	b = append(b, `,"metrics":{`...)
	families := len(b)
	b = s.state.appendFamilies(b)
	none := len(b) == families
	b = append(b, `},"request_sent_ns":`...)
	b = strconv.AppendInt(b, s.poll.SentNS, 10)
	if s.poll.FirstByteNS != 0 {
		b = append(b, `,"first_byte_ns":`...)
		b = strconv.AppendInt(b, s.poll.FirstByteNS, 10)
	}
	b = append(b, tagAt(tags, s.poll.AtNS())...)
	others := len(b)
	b = append(b, `,"scrapestat":{"metrics":{`...)
	head := len(b)
	if b = s.state.appendOthers(b); len(b) > head {
		b = append(b, '}', '}')
	} else if b = b[:others]; none {
		return b[:start]
	}
	return append(b, '}', '\n')
}

// phaseTag is what lines of a phase have.
type phaseTag struct {
	startNS, endNS int64
	text           []byte
}

// tagsOf are those of the phases of a run, in time order. The last poll of the last one may be at its end.
func tagsOf(r *summary.Run) []phaseTag {
	var out []phaseTag
	for _, p := range Phases(r) {
		b := strconv.AppendInt([]byte(`,"benchmark_phase":"`+p.Kind+`","phase_index":`), int64(p.Index), 10)
		if p.Profiling >= 0 {
			b = strconv.AppendInt(append(b, `,"profiling_index":`...), int64(p.Profiling), 10)
		}
		b = append(appendString(append(b, `,"phase_name":`...), p.Name), `,"phase_kind":"`+p.Kind+`"`...)
		out = append(out, phaseTag{p.StartNS, p.EndNS, b})
	}
	if len(out) > 0 {
		out[len(out)-1].endNS++
	}
	return out
}

// tagAt is that of an instant.
func tagAt(tags []phaseTag, ns int64) []byte {
	i := sort.Search(len(tags), func(i int) bool { return tags[i].endNS > ns })
	if i == len(tags) || ns < tags[i].startNS {
		return nil
	}
	return tags[i].text
}
