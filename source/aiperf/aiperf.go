package aiperf

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

// Options adjusts an import. The zero value is usable.
type Options struct {
	Types Types
	// Counters matches the names of families that are counters where Types does not know them; nil is none.
	Counters *regexp.Regexp
	// Step is the least time between two polls of a target; 0 keeps all.
	Step time.Duration
	// Keep and Drop choose families, as scrape.Options has it.
	Keep, Drop *regexp.Regexp
	Limits     Limits
	// Progress is told now and then what was read; nil is not.
	Progress func(polls, samples int64)
}

// Limits bounds what is accepted. In each field 0 is the default.
type Limits struct {
	Line        int   // bytes of a line; 64 MiB
	Endpoints   int   // 10,000
	Series      int   // series lines of an endpoint (a bucket counts as one); 1,000,000
	Labels      int   // of one series; 128
	NameLength  int   // bytes of a metric or label name; 1024
	ValueLength int   // bytes of a label value; 16 KiB
	Buckets     int   // of one histogram; 5000
	Memory      int64 // bytes for the series of all endpoints, as they first come; 1 GiB
}

// Stats is what became of the file.
type Stats struct {
	Targets  int
	Polls    int   // given to the sink
	Thinned  int   // left out because of Step
	Stored   int64 // samples; each bucket, sum and count is one
	Dropped  int64 // samples that could not be stored, the filtered ones not among them
	Refused  []metric.Drop
	Untyped  int // families whose type nothing says
	FirstNS  int64
	LastNS   int64
	Lines    int64
	Reversed int64 // lines that came after a later one of their endpoint; they are sorted in
	// Marks are the phases by the lines themselves, which newer releases tag with the phase they were scraped in: AIPerf's
	// statistics are of the lines so tagged. Their Kind says which were measured. Empty when no line of one has a tag.
	Marks []metric.Mark
}

// window is how many polls of an endpoint wait to be sorted.
const window = 32

// record is one line.
type record struct {
	URL     string   `json:"endpoint_url"`
	AtNS    int64    `json:"timestamp_ns"`
	TookNS  int64    `json:"endpoint_latency_ns"`
	SentNS  int64    `json:"request_sent_ns"`
	FirstNS int64    `json:"first_byte_ns"`
	Metrics families `json:"metrics"`
	tag
}

// families are the metrics of a line in the order of the file, which is the order in which the server showed them.
type families []family

type family struct {
	name   string
	series []series
}

// UnmarshalJSON reads an object whose order counts.
func (f *families) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New("metrics is no object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var x family
		x.name, _ = name.(string) // the keys of an object are strings
		if err := d.Decode(&x.series); err != nil {
			return err
		}
		*f = append(*f, x)
	}
	return nil
}

// series is one label set of a family: a value, or a histogram.
type series struct {
	Labels  map[string]string  `json:"labels"`
	Value   *float64           `json:"value"`
	Buckets map[string]float64 `json:"buckets"`
	Sum     *float64           `json:"sum"`
	Count   *float64           `json:"count"`
}

// Import reads a JSONL file to its end and gives its polls to sink. When reading breaks off, what was read is given to
// sink all the same and the error says where it broke.
func Import(ctx context.Context, r io.Reader, o Options, sink timeline.Sink) (Stats, error) {
	l := &o.Limits
	l.Line = cmp.Or(max(l.Line, 0), 64<<20)
	l.Endpoints = cmp.Or(max(l.Endpoints, 0), 10_000)
	l.Series = cmp.Or(max(l.Series, 0), 1_000_000)
	l.Labels = cmp.Or(max(l.Labels, 0), 128)
	l.NameLength = cmp.Or(max(l.NameLength, 0), 1024)
	l.ValueLength = cmp.Or(max(l.ValueLength, 0), 16<<10)
	l.Buckets = cmp.Or(max(l.Buckets, 0), 5000)
	l.Memory = cmp.Or(max(l.Memory, 0), 1<<30)
	i := &reader{o: o, sink: sink, endpoints: map[string]*endpoint{}, untyped: map[string]bool{},
		bounds: map[string]bound{}, memory: metric.NewMemory(l.Memory)}
	readErr := i.read(ctx, r)
	err := i.drain(ctx)
	i.stats.Targets, i.stats.Untyped = len(i.order), len(i.untyped)
	i.stats.Marks = i.marks()
	return i.stats, errors.Join(readErr, err)
}

type reader struct {
	o         Options
	sink      timeline.Sink
	stats     Stats
	begun     bool
	endpoints map[string]*endpoint
	order     []*endpoint
	untyped   map[string]bool
	tagged    []span // phases by the tags of lines, as they came
	bounds    map[string]bound
	memory    *metric.Memory
}

func (i *reader) read(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(r, 256<<10)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > i.o.Limits.Line {
			return fmt.Errorf("read JSONL: line %d is longer than %d bytes", i.stats.Lines+1, i.o.Limits.Line)
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("read JSONL: after line %d: %w", i.stats.Lines, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			i.stats.Lines++
			if err := i.line(text); err != nil {
				return err
			}
		}
		line = line[:0]
		if err == io.EOF {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if i.o.Progress != nil && i.stats.Lines%64 == 0 {
			i.o.Progress(int64(i.stats.Polls), i.stats.Stored)
		}
	}
}

// line takes one line; an error is that of the sink.
func (i *reader) line(text []byte) error {
	rec := &record{}
	if err := json.Unmarshal(text, rec); err != nil {
		i.refuse("parse", text)
		return nil
	}
	if rec.URL == "" || rec.AtNS <= 0 || rec.SentNS < 0 || rec.TookNS < 0 || rec.TookNS > int64(24*time.Hour) {
		i.refuse("no_poll", text)
		return nil
	}
	e, err := i.endpoint(rec)
	if err != nil {
		return err
	}
	if e == nil {
		i.refuse("endpoint_limit", text)
		return nil
	}
	i.noteTag(rec)
	at, _ := slices.BinarySearchFunc(e.waiting, rec.AtNS+1,
		func(r *record, ns int64) int { return int(min(max(r.AtNS-ns, -1), 1)) })
	if at < len(e.waiting) {
		i.stats.Reversed++
	}
	e.waiting = slices.Insert(e.waiting, at, rec)
	if len(e.waiting) > window {
		return i.emitFirst(e)
	}
	return nil
}

// endpoint returns the endpoint of a line; nil beyond the limit.
func (i *reader) endpoint(rec *record) (*endpoint, error) {
	if e, ok := i.endpoints[rec.URL]; ok {
		return e, nil
	}
	if len(i.order) >= i.o.Limits.Endpoints {
		return nil, nil
	}
	if !i.begun {
		i.begun = true
		if err := i.sink.Begin(rec.AtNS); err != nil {
			return nil, err
		}
	}
	target, err := i.sink.AddTarget(metric.Target{URL: public(rec.URL), Source: "aiperf-jsonl"})
	if err != nil {
		return nil, err
	}
	e := &endpoint{target: target, memory: i.memory.Share()}
	i.endpoints[strings.Clone(rec.URL)] = e
	i.order = append(i.order, e)
	return e, nil
}

// drain gives what waits to the sink.
func (i *reader) drain(ctx context.Context) error {
	for _, e := range i.order {
		for len(e.waiting) > 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := i.emitFirst(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuse counts a line of which nothing is stored.
func (i *reader) refuse(reason string, text []byte) {
	i.stats.Refused = metric.AddDrop(i.stats.Refused, reason, 1, func() string {
		return fmt.Sprintf("line %d: %.120q", i.stats.Lines, text[:min(len(text), 120)])
	})
}

// public makes an address of the file fit for outputs: AIPerf has redacted it already, others may not have.
func public(address string) string {
	address = timeline.Clean(address, 500)
	scheme := strings.Index(address, "://")
	end := len(address)
	if scheme >= 0 {
		if n := strings.IndexAny(address[scheme+3:], "/?#"); n >= 0 {
			end = scheme + 3 + n
		}
		if at := strings.LastIndexByte(address[:end], '@'); at > scheme {
			return address[:scheme+3] + address[at+1:]
		}
	}
	return address
}
