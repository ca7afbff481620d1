package torchserve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Options says how logs are read. The zero value suffices.
type Options struct {
	// Specs is a metrics.yaml, see [ReadSpecs]; nil is TorchServe's own.
	Specs []Spec
	// Buckets gives the bounds of a histogram by its name, ascending and finite;
	// others have those of the Java client, as in prometheus mode.
	Buckets map[string][]float64
	// FromStart takes what the files hold already when the source begins.
	FromStart bool
	// Raw takes the lines that workers print themselves.
	Raw bool
	// Double takes lines also when another file of the source has them too.
	Double    bool
	MaxSeries int // 0 is 100,000
	// Keep chooses metrics by name; nil keeps all.
	Keep func(name string) bool
	// Step puts what an import finds within that time of a snapshot into the next one; 0 is a snapshot for each instant.
	Step time.Duration
}

func (o *Options) wants(name string) bool {
	return o.Keep == nil || o.Keep(name)
}

func (o Options) withDefaults() (Options, error) {
	o.MaxSeries = cmp.Or(o.MaxSeries, 100_000)
	for name, bounds := range o.Buckets {
		for i, b := range bounds {
			if b != b || b-b != 0 || i > 0 && b <= bounds[i-1] {
				return o, fmt.Errorf("buckets of %s: bound %v is not finite or not above the one before it", name, b)
			}
		}
	}
	return o, nil
}

// Source follows logs. It is a scrape.Source: each Poll reads what was appended
// since the last one. It is not safe for concurrent use.
type Source struct {
	files  *follower // nil for a stream
	stream *stream
	lines  reader
}

// budget bounds what one poll reads: more is left to the next one.
const budget = 32 << 20

// Follow returns a source that follows path: a file, a folder with ts_metrics.log and model_metrics.log, or a pattern
// of files. They need not exist yet. Close it when the run has ended.
func Follow(path string, o Options) (*Source, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	files, err := newFollower(path, o.FromStart)
	if err != nil {
		return nil, err
	}
	return &Source{files: files, lines: newReader(o)}, nil
}

// FollowStream returns a source of what r gives, such as the output of docker logs. A goroutine reads r until it ends;
// Close closes r if it can be closed and waits for that goroutine, but not for a Read that goes on in spite of Close,
// as one of stdin may.
func FollowStream(r io.Reader, o Options) (*Source, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Source{stream: newStream(r), lines: newReader(o)}, nil
}

// Close ends the reading.
func (s *Source) Close() error {
	if s.stream != nil {
		return s.stream.close()
	}
	return s.files.close()
}

// Poll implements scrape.Source. Bytes and lines of the snapshot are those that were read; its samples are all series
// seen so far. What is not read as ctx has ended is left to the next poll.
func (s *Source) Poll(ctx context.Context, now func() int64, snap *metric.Snapshot) {
	snap.SentNS = now()
	if err := ctx.Err(); err != nil {
		snap.Outcome, snap.Err = metric.Cancelled, "the run ended first"
		if errors.Is(err, context.DeadlineExceeded) {
			snap.Outcome, snap.Err = metric.Timeout, "deadline of the poll passed; see --timeout"
		}
		return
	}
	s.lines.begin(snap.SentNS)
	var err error
	if s.stream != nil {
		s.lines.known(0, "stream")
		err = s.stream.read(budget, func(line []byte) { s.lines.take(0, line) })
	} else {
		err = s.files.read(budget, func(file int, path string, line []byte) {
			s.lines.known(file, path)
			s.lines.take(file, line)
		})
		for _, note := range s.files.notes {
			s.lines.table.warn("log_gap", note, note)
		}
		s.files.notes = s.files.notes[:0]
	}
	snap.FirstByteNS = now()
	snap.Duration = time.Duration(snap.FirstByteNS - snap.SentNS)
	snap.BodyBytes = s.lines.bytes
	s.lines.finish(snap, snap.Kind == metric.Final)
	if err != nil {
		// What was read is good, and is shown; the rest is still there.
		snap.Outcome, snap.Err = metric.Partial, clip(err.Error())
	}
}

// reader turns lines into the samples of a snapshot.
type reader struct {
	o     Options
	table *table
	guard *guard   // nil when doubles are wanted
	feeds []string // by file: what it is a part of
	zones []Zone
	last  []int64
	nowNS int64

	bytes        int64
	bad, doubles int
	filtered     int
	firstBad     string
}

func newReader(o Options) reader {
	r := reader{o: o, table: newTable(&o)}
	if !o.Double {
		r.guard = newGuard()
	}
	return r
}

// feed is what a log and its archives have in common: ts_metrics of ts_metrics.log, ts_metrics.log.1 and
// ts_metrics.20-Nov.log.gz. Equal lines within a feed are different events.
func feed(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return name
}

// known makes room for a file.
func (r *reader) known(file int, path string) {
	for len(r.feeds) <= file {
		r.feeds, r.zones, r.last = append(r.feeds, ""), append(r.zones, Zone{}), append(r.last, 0)
	}
	r.feeds[file] = feed(path)
}

// begin starts a poll at nowNS.
func (r *reader) begin(nowNS int64) {
	r.nowNS, r.bytes, r.bad, r.doubles, r.filtered, r.firstBad = nowNS, 0, 0, 0, 0, ""
	r.table.events, r.table.refused = r.table.events[:0], 0
}

// take reads one line of a file.
func (r *reader) take(file int, text []byte) {
	r.bytes += int64(len(text)) + 1
	l, err := ParseLine(text, r.o.Raw)
	if errors.Is(err, ErrNoMetric) {
		return
	}
	if err == nil && !r.o.wants(l.Name) {
		r.filtered++
		return
	}
	if err == nil {
		if r.guard != nil && r.guard.double(r.feeds[file], r.guard.hash(l.text)) {
			r.doubles++
			return
		}
		err = r.table.add(&l, r.timeOf(file, &l))
	}
	if err != nil {
		if r.bad++; r.firstBad == "" {
			r.firstBad = clip(err.Error())
		}
	}
}

// timeOf is when a line was written: by itself, else as the line before it in its file, else now.
func (r *reader) timeOf(file int, l *Line) int64 {
	at := l.AtNS(&r.zones[file])
	at = cmp.Or(at, r.last[file])
	at = cmp.Or(at, r.nowNS)
	r.last[file] = at
	return at
}

// finish fills what a snapshot says of the lines that were taken.
func (r *reader) finish(snap *metric.Snapshot, last bool) {
	if r.doubles > 0 {
		r.table.warn("double_feed", "", fmt.Sprintf("%d lines stand in two of the files and were counted once; "+
			"the same events are logged to several places", r.doubles))
	}
	if r.bad > 0 {
		r.table.warn("bad_line", "", fmt.Sprintf("%d lines could not be read; %s", r.bad, r.firstBad))
	}
	r.table.finish(snap, last)
	var drops []metric.Drop
	for _, d := range []metric.Drop{{Reason: metric.DropFiltered, Lines: r.filtered},
		{Reason: "bad_line", Lines: r.bad, First: r.firstBad},
		{Reason: "series_limit", Lines: r.table.refused, First: "raise --max-series"}} {
		if d.Lines > 0 {
			drops = append(drops, d)
		}
	}
	snap.Lose(drops)
	if r.bad > 0 {
		snap.Err = r.firstBad
	}
}

// clip shortens a message and leaves out what is not printable.
func clip(s string) string {
	out := make([]rune, 0, 200)
	for _, c := range s {
		if len(out) == 200 {
			break
		}
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			c = '?'
		}
		out = append(out, c)
	}
	return string(out)
}

// guard finds lines that two feeds of a source have both: the same events are often logged to a metric log, to stdout
// and to ts_log.log. It remembers the last lines of all; memory is bounded.
type guard struct {
	seed  maphash.Seed
	lines map[uint64]*sighting
	order []uint64 // ring of what lines holds
	next  int
}

// sighting counts how often a line was seen in each feed.
type sighting struct{ feeds map[string]int }

const guardLines = 50_000

func newGuard() *guard {
	return &guard{seed: maphash.MakeSeed(), lines: map[uint64]*sighting{}}
}

// hash stands for a line.
func (g *guard) hash(text []byte) uint64 { return maphash.Bytes(g.seed, text) }

// double reports whether another feed has had this line already, as often as this one now has.
func (g *guard) double(feed string, h uint64) bool {
	s := g.lines[h]
	if s == nil {
		s = &sighting{feeds: map[string]int{}}
		g.lines[h] = s
		if len(g.order) < guardLines {
			g.order = append(g.order, h)
		} else {
			delete(g.lines, g.order[g.next])
			g.order[g.next] = h
			g.next = (g.next + 1) % guardLines
		}
	}
	s.feeds[feed]++
	for other, n := range s.feeds {
		if other != feed && n >= s.feeds[feed] {
			return true
		}
	}
	return false
}
