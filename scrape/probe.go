package scrape

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Prober asks a target single questions, under the limits, the deadline, the authentication and the rule about
// redirects of a [Collector]: for looking at a target before a run. It has one owner.
type Prober struct {
	f        *fetcher
	own      *http.Transport
	limits   Limits
	sentinel func(family string) func(float64) bool
	timeout  time.Duration
	origin   time.Time
}

// NewProber returns a prober of a target that is asked for an exposition. Of the
// options it uses Timeout, Limits and Version.
func NewProber(t Target, o Options) (*Prober, error) {
	o = o.WithDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if t.Source != nil {
		return nil, fmt.Errorf("probe %s: a source of kind %q is no exposition", t, t.Kind)
	}
	p := &Prober{limits: o.Limits, sentinel: o.Sentinel,
		timeout: timeoutFor(cmp.Or(t.Timeout, o.Timeout), o.Interval), origin: time.Now()}
	p.own = newTransport(1, o.Limits)
	if strings.HasPrefix(t.URL, "unix:") {
		p.own = newUnixTransport(t.URL, o.Limits)
	}
	var err error
	if p.f, err = newFetcher(t, o, p.timeout, p.own, p.nowNS); err != nil {
		return nil, err
	}
	return p, nil
}

// Close closes the connections of the prober.
func (p *Prober) Close() { p.own.CloseIdleConnections() }

func (p *Prober) nowNS() int64 { return p.origin.UnixNano() + int64(time.Since(p.origin)) }

// ProbeRequest is one request of a Prober.
type ProbeRequest struct {
	Path      string   // in place of the path of the target; "" keeps it and its query
	Protocols []string // as in Options; an Accept header of the target overrides it
	Compress  bool     // ask for gzip
	Raw       bool     // the body is not decoded, but kept in Reply.Said
}

// ProbeResult is what a Question brought. Its snapshot is that of a poll: outcome,
// times, drops, warnings, and the whole dictionary and frame of the body.
type ProbeResult struct {
	metric.Snapshot
	URL         string        // asked, or redirected to, redacted
	ContentType string        // as sent
	Format      string        // that the body was read as: text, openmetrics or protobuf
	Encoding    string        // Content-Encoding as sent, "" when none
	Date        time.Time     // of the server's clock, to a second; zero without one
	Wire        int64         // bytes of the body as sent
	Distance    time.Duration // what the quickest connect so far took
	// Said is the body of another status than 200, or of a raw question, up to
	// 512 and 64 Ki bytes. It is as the target sent it.
	Said []byte
}

// maxRaw bounds the body that a raw question keeps.
const maxRaw = 64 << 10

// Ask asks one question with a decoder of its own. It never fails: what went wrong is the outcome.
func (p *Prober) Ask(ctx context.Context, q ProbeRequest) *ProbeResult {
	r := &ProbeResult{}
	accept, err := AcceptHeader(q.Protocols)
	if err != nil {
		r.Outcome, r.Err = metric.NotPrometheus, err.Error()
		return r
	}
	header := p.f.request.Header.Clone()
	if !p.f.ownAccept {
		header.Set("Accept", accept)
	}
	header.Set("Accept-Encoding", "identity")
	if q.Compress {
		header.Set("Accept-Encoding", "gzip")
	}
	p.f.request.Header = header
	u := *p.f.base
	if q.Path != "" {
		u = url.URL{Scheme: u.Scheme, Host: u.Host, Path: q.Path}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, errDeadline)
	defer cancel()
	p.f.buf = nil // the last reply may have it
	a := p.f.fetch(ctx, &u, &r.Snapshot)
	p.fill(r, &u, a)
	switch {
	case r.Outcome != metric.OK:
	case q.Raw:
		r.Said = a.body[:min(len(a.body), maxRaw)]
	default:
		d := newDecoder(Options{Limits: p.limits, Sentinel: p.sentinel})
		d.Decode(&r.Snapshot, Body{Bytes: a.body, ContentType: a.contentType, Cut: a.cut})
		if r.Outcome.Stored() {
			r.Format = d.format.String()
		}
	}
	return r
}

func (p *Prober) fill(r *ProbeResult, u *url.URL, a answer) {
	r.URL, r.ContentType, r.Said, r.Distance = redact(u.String()), metric.Clean(a.contentType, 200), a.said, p.f.distance()
	if a.final != nil {
		r.URL = redact(a.final.String())
	}
	if r.Wire = p.f.wire; r.Wire == 0 {
		r.Wire = int64(len(a.body))
	}
	if a.header != nil {
		r.Encoding = metric.Clean(a.header.Get("Content-Encoding"), 40)
		r.Date, _ = http.ParseTime(a.header.Get("Date")) // zero when it says nothing
	}
}

// Text makes one line of what a target wrote, without the target's secrets.
func (p *Prober) Text(b []byte) string { return p.f.text(string(b)) }
