package promstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"

	"github.com/scrapestat/scrapestat/metric"
)

// The versions of remote write.
const (
	WriteAuto = "auto" // 2.0 where it is understood, else 1.0
	WriteV1   = "1"
	WriteV2   = "2"
)

// WriterOptions says where to write. URL is needed.
type WriterOptions struct {
	URL       string            // of the receiver, such as http://host:9090/api/v1/write
	Header    http.Header       // sent with each request
	Transport http.RoundTripper // for authentication and TLS; nil is the default one
	// Redact takes secrets out of texts of the receiver that are shown; nil takes
	// none.
	Redact  func(string) string
	Version string // "" is WriteAuto
	// Labels are added to every series. The label job is scrapestat unless it is
	// among them.
	Labels map[string]string
	// QueueSamples is how many samples wait before the oldest are dropped; 0 is 2,000,000, 8 bytes each.
	QueueSamples int
	BatchSamples int           // of a request; 0 is 5000
	Timeout      time.Duration // of a request; 0 is 5 s
	Retries      int           // after a failed request; 0 is 3
}

// anyURL finds addresses in error texts.
var anyURL = regexp.MustCompile(`https?://[^\s"]+`)

// maxBatchTime bounds what a batch may take with all its retries, whatever a Retry-After header says.
const maxBatchTime = 10 * time.Second

// gatherTime is how long samples wait for more, so that a request is worth it.
const gatherTime = 300 * time.Millisecond

// WriteStats is what became of the samples that were recorded.
type WriteStats struct {
	Sent     int64 // samples that the receiver accepted
	Dropped  int64 // samples that were thrown away because the queue was full or the run ended
	Failed   int64 // samples of requests that failed for good
	Native   int64 // buckets of native histograms, which are not sent
	Queued   int64
	Requests int64
	Retries  int64
	Version  string // "1" or "2"; "" while not decided
	Err      string // the last error, fit for output
}

// Lost is the number of samples that the receiver does not have.
func (s WriteStats) Lost() int64 { return s.Dropped + s.Failed }

// RemoteWriter sends what is recorded to a receiver of Prometheus remote write. Record
// never blocks and never fails; Run does the work.
type RemoteWriter struct {
	o       WriterOptions
	api     *remote.API
	targets []*writeTarget
	used    map[string]bool // instances
	wake    chan struct{}

	mu     sync.Mutex
	queue  []*polled
	closed bool
	stats  WriteStats
}

// polled is one poll of a target that waits to be sent.
type polled struct {
	atMS   int64
	layout *layout
	bits   []uint64 // parallel to layout.series, then staleness markers
	next   int      // what was sent already
}

// NewWriter checks the options. Nothing is sent before Run.
func NewWriter(o WriterOptions) (*RemoteWriter, error) {
	c, err := newClient(o.URL, o.Transport, o.Header, o.Redact)
	if err != nil {
		return nil, fmt.Errorf("remote write: %w", err)
	}
	o.Version = cmp.Or(o.Version, WriteAuto)
	if o.Version != WriteAuto && o.Version != WriteV1 && o.Version != WriteV2 {
		return nil, fmt.Errorf("remote write: unknown version %q (known: auto, 1, 2)", o.Version)
	}
	o.QueueSamples = cmp.Or(max(o.QueueSamples, 0), 2_000_000)
	o.BatchSamples = cmp.Or(max(o.BatchSamples, 0), 5000)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 5*time.Second)
	o.Retries = cmp.Or(max(o.Retries, 0), 3)
	next := c.http.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	w := &RemoteWriter{o: o, used: map[string]bool{}, wake: make(chan struct{}, 1)}
	if o.Version != WriteAuto {
		w.stats.Version = o.Version
	}
	c.http.Transport = &writeTransport{next: next, header: o.Header}
	c.http.Timeout = o.Timeout
	w.api, err = remote.NewAPI(o.URL, remote.WithAPIPath(""), remote.WithAPIHTTPClient(c.http),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: 100 * time.Millisecond, Max: time.Second, MaxRetries: o.Retries}))
	if err != nil {
		return nil, fmt.Errorf("remote write to %s: the address is no URL", Redact(o.URL))
	}
	return w, nil
}

// String is the address of the receiver as outputs may show it.
func (w *RemoteWriter) String() string { return Redact(w.o.URL) }

// writeTransport adds headers and bounds what is read of an answer.
type writeTransport struct {
	next   http.RoundTripper
	header http.Header
}

// RoundTrip implements http.RoundTripper.
func (t *writeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range t.header {
		r.Header[name] = values
	}
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
	}
	return resp, err
}

// Stats returns what became of the samples so far. It may be called from any goroutine.
func (w *RemoteWriter) Stats() WriteStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// push queues a poll, dropping the oldest ones where the queue is full.
func (w *RemoteWriter) push(p *polled) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		w.stats.Dropped += int64(len(p.bits))
		return
	}
	w.queue = append(w.queue, p)
	w.stats.Queued += int64(len(p.bits))
	for len(w.queue) > 0 && w.stats.Queued > int64(w.o.QueueSamples) {
		n := int64(len(w.queue[0].bits) - w.queue[0].next)
		w.queue[0] = nil
		w.queue = w.queue[1:]
		w.stats.Queued -= n
		w.stats.Dropped += n
	}
	if w.stats.Queued >= int64(w.o.BatchSamples) {
		w.nudge()
	}
}

func (w *RemoteWriter) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close ends the recording: Run ends when the queue is empty.
func (w *RemoteWriter) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.nudge()
}

// Run sends what is queued until Close was called and the queue is empty, or
// until ctx is done, which drops what is left.
func (w *RemoteWriter) Run(ctx context.Context) {
	tick := time.NewTicker(gatherTime)
	defer tick.Stop()
	for ctx.Err() == nil {
		batch, closed := w.take()
		if batch != nil {
			w.send(ctx, batch)
			continue
		}
		if closed {
			break
		}
		select {
		case <-tick.C:
		case <-w.wake:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Dropped += w.stats.Queued
	w.stats.Queued = 0
	w.closed, w.queue = true, nil
}

// piece is a part of a poll that one request holds.
type piece struct {
	*polled
	from, to int
}

// take removes up to a request's worth of samples from the queue; nil when there are none.
func (w *RemoteWriter) take() (batch []piece, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	room := w.o.BatchSamples
	for len(w.queue) > 0 && room > 0 {
		p := w.queue[0]
		n := min(len(p.bits)-p.next, room)
		batch = append(batch, piece{p, p.next, p.next + n})
		p.next += n
		room -= n
		w.stats.Queued -= int64(n)
		if p.next == len(p.bits) {
			w.queue[0] = nil
			w.queue = w.queue[1:]
		}
	}
	return batch, w.closed
}

// send writes one batch, with the version that the receiver understands.
func (w *RemoteWriter) send(ctx context.Context, batch []piece) {
	ctx, cancel := context.WithTimeout(ctx, maxBatchTime)
	defer cancel()
	samples := int64(0)
	for _, p := range batch {
		samples += int64(p.to - p.from)
	}
	version := w.Stats().Version
	var err error
	if version != WriteV1 {
		if err = w.write(ctx, remote.WriteV2MessageType, requestV2(batch)); err == nil {
			version = WriteV2
		}
	}
	if version == WriteV1 || version == "" && err != nil && ctx.Err() == nil {
		if err1 := w.write(ctx, remote.WriteV1MessageType, requestV1(batch)); err1 == nil {
			version, err = WriteV1, nil
		} else if version == WriteV1 {
			err = err1
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.stats.Failed += samples
		// The library hides the error of net/http, and that shows the address.
		text := anyURL.ReplaceAllStringFunc(err.Error(), Redact)
		if ctx.Err() != nil && w.stats.Err != "" && errors.Is(err, ctx.Err()) {
			return // what was said before says more
		}
		if w.o.Redact != nil {
			text = w.o.Redact(text)
		}
		w.stats.Err = metric.Clean(strings.Join(strings.Fields(text), " "), 400)
		return
	}
	w.stats.Sent += samples
	w.stats.Version = version
}

func (w *RemoteWriter) write(ctx context.Context, kind remote.WriteMessageType, message any) error {
	var last error // before a retry
	count := func(retries int64) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stats.Requests++
		w.stats.Retries += retries
	}
	count(0)
	_, err := w.api.Write(ctx, kind, message, remote.WithWriteRetryCallback(func(err error) { last = err; count(1) }))
	if err != nil && ctx.Err() != nil && last != nil {
		return last // why it was tried again says more than that the time is up
	}
	return err
}

// AddTarget says what the target with the next index is, before its first Record.
func (w *RemoteWriter) AddTarget(t metric.Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.targets = append(w.targets, newWriteTarget(t, w.o.Labels, w.used))
}

// Record queues the samples of a stored poll; others have none. The snapshot is the caller's again when it returns.
// Polls of one target come one after the other, those of different targets may come concurrently.
func (w *RemoteWriter) Record(s *metric.Snapshot) {
	w.mu.Lock()
	t := w.targets[s.Target]
	w.mu.Unlock()
	p, native, dropped := t.poll(s)
	if native+dropped > 0 {
		w.mu.Lock()
		w.stats.Native += int64(native)
		w.stats.Dropped += int64(dropped)
		w.mu.Unlock()
	}
	if p != nil {
		w.push(p)
	}
}
