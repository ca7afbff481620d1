package events

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// The kinds of files that Open reads.
const (
	KindMLPerfDB = "mlperf-db"      // table events of MLPerf's endpoints benchmark, old or new
	KindMLPerf   = "events-jsonl"   // its events.jsonl, old or new
	KindAIPerf   = "aiperf"         // AIPerf's profile_export.jsonl
	KindVLLM     = "vllm-bench"     // vllm bench serve --save-result --save-detailed
	KindGuideLLM = "guidellm"       // guidellm's benchmarks.json
	TokensLoad   = "load_generator" // Request.Source: the load generator counted, by its own means
)

// Kinds are the values of FileOptions.Kind that have requests; [KindSummary] is the other one.
var Kinds = []string{KindMLPerfDB, KindMLPerf, KindAIPerf, KindVLLM, KindGuideLLM}

// kindHelp names them for people.
const kindHelp = "mlperf-db and events-jsonl (MLPerf endpoints, old and new), aiperf (profile_export.jsonl), " +
	"vllm-bench (vllm bench serve --save-detailed), guidellm (JSON)"

// Clock says which clock the times of a file are of.
type Clock string

// The clocks.
const (
	ClockUnix      Clock = "unix"      // nanoseconds since 1970
	ClockMonotonic Clock = "monotonic" // of a machine's boot or a process: only differences mean anything
	ClockAnchored  Clock = "anchored"  // monotonic, placed by an anchor
)

// unixFrom tells Unix times from monotonic ones: 2001, or 31 years after a boot.
const unixFrom = int64(1e18)

// Anchor places monotonic times on the axis of Unix time. The zero value does not.
type Anchor struct {
	Source   string // how it is known, "" for no anchor
	FirstNS  int64  // when the first event of the file was, or 0
	OffsetNS int64  // with FirstNS 0: Unix minus monotonic time
}

// FileOptions adjusts Open. The zero value finds the kind by itself.
type FileOptions struct {
	Kind    string
	Anchor  Anchor
	MaxLine int   // longest line in bytes; 0 is 64 MiB
	MaxSize int64 // largest JSON document in bytes; 0 is 2 GiB
	// MaxRequests limits those of a JSON document; 0 is 5 million.
	MaxRequests int
}

func (o *FileOptions) defaults() {
	o.MaxLine = cmp.Or(o.MaxLine, 64<<20)
	o.MaxSize = cmp.Or(o.MaxSize, 2<<30)
	o.MaxRequests = cmp.Or(o.MaxRequests, defaultMaxRequests)
}

// File is a recording of another tool. It is read once, by one goroutine.
type File struct {
	Kind string
	// The rest is complete when the events have been read.
	Clock    Clock
	Anchor   Anchor // that placed the events; of the file itself where it has one
	Events   int64
	Requests int64 // of the kinds that tell requests as a whole
	Bad      int64 // lines or entries that could not be read
	FirstBad string
	FirstNS  int64 // earliest and latest event, after anchoring
	LastNS   int64

	path string
	in   *bufio.Reader
	o    FileOptions
	emit func(*metric.Event) bool
	ev   metric.Event
	stop bool
}

// ErrKind is wrapped by the error of Open when a file is of no known kind.
var ErrKind = errors.New("unknown kind of file")

// peekBytes is how much of a file decides on its kind.
const peekBytes = 256 << 10

// Open finds out what the file at path is. in is its content, decompressed; a database is read through path, which is
// "" where there is no file.
func Open(path string, in io.Reader, o FileOptions) (*File, error) {
	o.defaults()
	f := &File{path: path, in: bufio.NewReaderSize(in, peekBytes), o: o, Kind: o.Kind}
	head, err := f.in.Peek(peekBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if f.Kind == "" || f.Kind == "auto" {
		if f.Kind, err = sniff(head); err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
	}
	if !slices.Contains(Kinds, f.Kind) && f.Kind != KindSummary {
		return nil, fmt.Errorf("open %s: %w %q; known are %s", path, ErrKind, f.Kind, kindHelp)
	}
	if f.Kind == KindMLPerfDB {
		if _, err := os.Stat(path); path == "" || err != nil {
			return nil, fmt.Errorf("open %s: a database must be a file that is not compressed", path)
		}
	}
	return f, nil
}

// sniff finds the kind of a file by its beginning.
func sniff(head []byte) (string, error) {
	if bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return KindMLPerfDB, nil
	}
	keys := topKeys(head)
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(keys, n) })
	}
	switch {
	case has("event_type", "timestamp_ns"):
		return KindMLPerf, nil
	case has("metadata") && bytes.Contains(head, []byte(`"request_start_ns"`)):
		return KindAIPerf, nil
	case has("benchmarks"), has("metadata", "args"):
		return KindGuideLLM, nil
	case has("ttfts"), has("start_times"), has("request_throughput"), has("tokenizer_id", "num_prompts"):
		return KindVLLM, nil
	case has("n_samples_issued"), has("state", "metrics"):
		return KindSummary, nil
	case has("input_config"), has("aiperf_version"):
		return "", fmt.Errorf("%w: it is AIPerf's summary and has no requests; take profile_export.jsonl of that run",
			ErrKind)
	}
	return "", fmt.Errorf("%w; known are %s", ErrKind, kindHelp)
}

// topKeys lists the keys of the object a file begins with, as far as head goes.
func topKeys(head []byte) (keys []string) {
	dec := json.NewDecoder(bytes.NewReader(head))
	if open(dec) == nil {
		_ = eachField(dec, func(name string) error { // the head ends anywhere
			keys = append(keys, name)
			return skipValue(dec)
		})
	}
	return keys
}

// skipValue reads over one value without keeping it.
func skipValue(dec *json.Decoder) error {
	for depth := 0; ; {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// Stream returns the events of the file, once, with today's names for their types. A recording of MLPerf's old design
// says so in a Detail of its first event.
func (f *File) Stream(ctx context.Context) Stream {
	return func(yield func(*metric.Event, error) bool) {
		f.emit = func(ev *metric.Event) bool {
			if f.stop = f.stop || !yield(ev, nil); f.stop {
				return false
			}
			return true
		}
		var err error
		switch f.Kind {
		case KindMLPerfDB:
			err = f.readDB(ctx)
		case KindMLPerf:
			err = f.readLines(ctx, f.eventLine)
		case KindAIPerf:
			err = f.readLines(ctx, f.aiperfLine)
		case KindVLLM:
			err = f.readDocument(f.readVLLM)
		case KindGuideLLM:
			err = f.readDocument(f.readGuideLLM)
		case KindSummary:
			err = ErrSummary
		}
		if err != nil && !f.stop {
			yield(nil, fmt.Errorf("read %s file %s: %w", f.Kind, f.path, err))
		}
	}
}

// send anchors an event, names its type as today and passes it on.
func (f *File) send(ev *metric.Event) bool {
	name, legacy := Current(ev.Type)
	f.ev = *ev
	f.ev.Type = name
	if f.Events == 0 {
		f.anchor(ev.AtNS)
		if legacy && name != SessionStarted {
			mark := metric.Event{Type: SessionNote, AtNS: ev.AtNS, Data: legacyMark()}
			f.place(&mark)
			if !f.emit(&mark) {
				return false
			}
		}
	}
	if legacy && name == SessionStarted {
		f.ev.Data = legacyMark()
	}
	f.place(&f.ev)
	f.Events++
	return f.emit(&f.ev)
}

func legacyMark() []byte { return []byte(`{"rules":"` + LegacyRules + `"}`) }

// anchor decides on the clock when the first event is known.
func (f *File) anchor(firstNS int64) {
	switch a := f.o.Anchor; {
	case firstNS >= unixFrom:
		f.Clock = ClockUnix
	case f.Anchor.Source != "": // the file has its own
		f.Clock = ClockAnchored
	case a.Source == "":
		f.Clock = ClockMonotonic
	default:
		f.Clock, f.Anchor = ClockAnchored, a
		if a.FirstNS != 0 {
			f.Anchor.OffsetNS = a.FirstNS - firstNS
		}
	}
}

func (f *File) place(ev *metric.Event) {
	if f.Clock == ClockAnchored {
		ev.AtNS += f.Anchor.OffsetNS
	}
	if f.Events == 0 || ev.AtNS < f.FirstNS {
		f.FirstNS = ev.AtNS
	}
	if f.Events == 0 || ev.AtNS > f.LastNS {
		f.LastNS = ev.AtNS
	}
}

// sendRequest passes on the events of a request that is known as a whole.
func (f *File) sendRequest(q *Request) bool {
	f.Requests++
	list := q.Events()
	for i := range list {
		if !f.send(&list[i]) {
			return false
		}
	}
	return true
}

// bad notes what could not be read.
func (f *File) bad(format string, args ...any) {
	f.Bad++
	if f.FirstBad == "" {
		f.FirstBad = cut(fmt.Sprintf(format, args...))
	}
}

func (f *File) readDB(ctx context.Context) error {
	for ev, err := range rundb.ForeignEvents(ctx, f.path) {
		if err != nil {
			return err
		}
		if !f.send(ev) {
			return nil
		}
	}
	return nil
}

// readLines calls one for every line that is not empty. A line that is too long is read over and counted.
func (f *File) readLines(ctx context.Context, one func(n int, line []byte) bool) error {
	var line []byte
	for n := 1; ; n++ {
		var tooLong bool
		var err error
		if line, tooLong, err = readLine(f.in, line[:0], f.o.MaxLine); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if tooLong {
			f.bad("line %d: longer than %d bytes", n, f.o.MaxLine)
		} else if text := bytes.TrimSpace(line); len(text) > 0 && !one(n, text) {
			return nil
		}
		if err != nil {
			return nil
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// limited fails when a document is larger than allowed.
type limited struct {
	r    io.Reader
	left int64
	max  int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("larger than %d bytes (--max-size)", l.max)
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

func (f *File) readDocument(read func(*json.Decoder) error) error {
	dec := json.NewDecoder(&limited{f.in, f.o.MaxSize, f.o.MaxSize})
	if t, err := dec.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return errors.New("it does not begin with an object")
	}
	return read(dec)
}

// idOf is a name that is not empty and not too long.
func idOf(parts ...string) string {
	for _, p := range parts {
		if p != "" {
			return strings.ToValidUTF8(cut(p), "")
		}
	}
	return ""
}
