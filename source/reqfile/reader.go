package reqfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Kind is a kind of files.
type Kind struct {
	Name string // as a command line has it
	metric.ServerClock
	// Pattern is how the files of a folder are named.
	Pattern string
	// Warning is what to tell when a file has prompts, which are not read; "" is of a kind without.
	Warning string
	line    func(r *Reader, text []byte) error
	// whole reads a document in place of lines; nil where there is none.
	whole func(r *Reader, text []byte) error
}

// The kinds of files.
var (
	SGLang = Kind{Name: "sglang-requests", Pattern: "sglang-request-metrics-*.log", line: (*Reader).sglang,
		ServerClock: metric.ServerClock{Clock: metric.ServerUnix, Resolution: time.Microsecond},
		Warning: "the files of SGLang hold prompts, which are not read: start it with --log-requests " +
			"--log-requests-level 0 and it writes none"}
	TensorRT = Kind{Name: "trtllm-requests", Pattern: "perf_metrics-*.jsonl", line: (*Reader).trtllm,
		whole:       (*Reader).trtllmList,
		ServerClock: metric.ServerClock{Clock: metric.ServerMonotonic, Resolution: time.Microsecond}}
	Dynamo = Kind{Name: "dynamo-trace", Pattern: "*.jsonl", line: (*Reader).dynamo,
		ServerClock: metric.ServerClock{Clock: metric.ServerUnix, Resolution: time.Millisecond},
		Warning:     "the trace of Dynamo holds prompts, which are not read: leave request_payload out of its records"}
	Triton = Kind{Name: "triton-trace", Pattern: "*", line: (*Reader).tritonLine, whole: (*Reader).triton,
		ServerClock: metric.ServerClock{Clock: metric.ServerMonotonic, Resolution: 1}}
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{SGLang, TensorRT, Dynamo, Triton} }

// The limits of what is read.
const (
	maxLine  = 1 << 20
	maxWhole = 256 << 20 // of a document
)

// Reader turns files of one kind into records. It is not safe for concurrent use.
type Reader struct {
	kind    Kind
	record  func(*metric.ServerRequest)
	counts  metric.ServerCounts
	private bool // prompts were seen
	traces  map[int64]*trace
	seed    maphash.Seed
	seen    map[uint64]struct{}
	order   []uint64
	next    int
}

// NewReader returns a reader that hands on records, each valid until record returns.
func NewReader(k Kind, record func(*metric.ServerRequest)) *Reader {
	return &Reader{kind: k, record: record, traces: map[int64]*trace{}, seed: maphash.MakeSeed(),
		seen: map[uint64]struct{}{}}
}

// Counts says what was in the files so far.
func (r *Reader) Counts() metric.ServerCounts { return r.counts }

// Warning is what to tell the user of the files, or "".
func (r *Reader) Warning() string {
	if !r.private {
		return ""
	}
	return r.kind.Warning
}

// Read reads a file to its end, be it lines or one document. Only in fails.
func (r *Reader) Read(ctx context.Context, in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	head, err := b.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if r.kind.whole != nil && bytes.HasPrefix(bytes.TrimSpace(head), []byte("[")) {
		return r.document(b)
	}
	if err := r.lines(ctx, b); err != nil {
		return err
	}
	r.finish()
	return nil
}

// document reads one JSON array.
func (r *Reader) document(in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, maxWhole+1))
	if err != nil {
		return err
	}
	if len(text) > maxWhole {
		r.counts.Note("longer than %d MiB", maxWhole>>20)
		return nil
	}
	if err := r.kind.whole(r, text); err != nil {
		r.counts.Note("%v", err)
	}
	r.finish()
	return nil
}

func (r *Reader) lines(ctx context.Context, in *bufio.Reader) error {
	var line []byte
	for n := 1; ; n++ {
		long := false
		line = line[:0]
		part, err := in.ReadSlice('\n')
		for ; ; part, err = in.ReadSlice('\n') {
			if long = long || len(line)+len(part) > maxLine; !long {
				line = append(line, part...)
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if long {
			r.counts.Note("line %d: longer than 1 MiB", n)
		} else {
			r.take(n, line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n%1024 == 0 && ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// take reads a line of a file.
func (r *Reader) take(n int, line []byte) {
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		return
	}
	if err := r.kind.line(r, text); err != nil {
		r.counts.Note("line %d: %v", n, err)
	}
}

var errJSON = errors.New("it is no JSON object of this kind")

// tell checks a record and hands it on, unless it was told before.
func (r *Reader) tell(q *metric.ServerRequest) error {
	if err := q.Check(r.kind.Clock); err != nil {
		return err
	}
	if r.repeated(q) {
		r.counts.Seen++
		return nil
	}
	r.counts.Records++
	r.record(q)
	return nil
}

// maxSeen is how many records are known again when a file is read anew.
const maxSeen = 1 << 18

// repeated reports whether the same record was told before.
func (r *Reader) repeated(q *metric.ServerRequest) bool {
	var b [8 * 4]byte
	key := append(append(append(b[:0], q.ID...), 0), q.Stage...)
	for _, n := range []int64{q.ArrivalNS, q.FirstNS, q.FinishNS, q.LastNS} {
		key = strconv.AppendInt(append(key, 0), n, 36)
	}
	h := maphash.Bytes(r.seed, key)
	if _, ok := r.seen[h]; ok {
		return true
	}
	r.seen[h] = struct{}{}
	if len(r.order) < maxSeen {
		r.order = append(r.order, h)
		return false
	}
	delete(r.seen, r.order[r.next])
	r.order[r.next] = h
	r.next = (r.next + 1) % maxSeen
	return false
}

// finish takes what is known when no more comes.
func (r *Reader) finish() {
	ids := make([]int64, 0, len(r.traces))
	for id := range r.traces {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r.endTrace(id)
	}
	clear(r.traces)
}

// seconds is a number of seconds in nanoseconds, missing where it is null or absent.
type seconds struct {
	ns    int64
	given bool
}

// UnmarshalJSON takes a number. Decimals are exact to the nanosecond, also those of Unix time, which no float64 is.
func (s *seconds) UnmarshalJSON(b []byte) error { return s.parse(b, 9) }

// millis is the same of milliseconds.
type millis struct{ seconds }

// UnmarshalJSON takes a number.
func (m *millis) UnmarshalJSON(b []byte) error { return m.parse(b, 6) }

// parse reads a number of units of 10^digits nanoseconds.
func (s *seconds) parse(b []byte, digits int) error {
	text := string(b[:min(len(b), 64)])
	if text == "null" {
		return nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	unit := int64(math.Pow10(digits))
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && n >= 0 && n < math.MaxInt64/unit-1 {
		for len(fraction) < digits+1 {
			fraction += "0"
		}
		if part, err := strconv.ParseInt(fraction[:digits+1], 10, 64); err == nil && part >= 0 {
			s.ns, s.given = n*unit+(part+5)/10, true
			return nil
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > 1e12 {
		return errors.New("a time is no number")
	}
	s.ns, s.given = int64(math.Round(v*float64(unit))), true
	return nil
}

// instant is 0 when it is missing.
func (s seconds) instant() int64 { return s.ns }

// duration is -1 when it is missing.
func (s seconds) duration() time.Duration {
	if !s.given {
		return -1
	}
	if s.ns < 0 {
		return -2 // which no record may have
	}
	return time.Duration(s.ns)
}

// between is the time from one instant to another, -1 unless both are given.
func between(from, to seconds) time.Duration {
	if !from.given || !to.given {
		return -1
	}
	if to.ns < from.ns {
		return -2 // which no record may have
	}
	return time.Duration(to.ns - from.ns)
}

// count is -1 when it is missing.
func count(n *int64) int64 {
	if n == nil {
		return -1
	}
	if *n < 0 {
		return -2
	}
	return *n
}

// decode reads an object; its error tells nothing of the text.
func decode(text []byte, to any) error {
	if len(text) == 0 || text[0] != '{' || json.Unmarshal(text, to) != nil {
		return errJSON
	}
	return nil
}
