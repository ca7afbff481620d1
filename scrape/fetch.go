package scrape

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// fetcher does the requests of one target.
type fetcher struct {
	client  *http.Client
	base    *url.URL // what the target says
	now     *url.URL // what is polled: base, its fallback, or where it redirected to
	limits  Limits
	request http.Request
	secrets *strings.Replacer
	given   *strings.Replacer   // the credentials among secrets
	redact  func(string) string // nil when nobody knows more secrets
	secret  bool                // there are secrets
	gzip    gzip.Reader
	wire    int64 // bytes of a compressed body, as far as read
	buffers *buffers
	buf     []byte // lent by buffers from the first body of a poll to release
	size    int    // of the last body

	nowNS   func() int64
	trace   httptrace.ClientTrace
	firstNS int64 // of the body of the current request
	// The transport sets these from goroutines of its own.
	sentNS, dialNS    atomic.Int64
	pinned, ownAccept bool // the Accept header is settled, or not ours
	kept              bool // the first good body was seen: the recording keeps that one

	connectNS atomic.Int64 // the quickest connect so far: what is distance, not service

	addresses atomic.Int64           // that the name has
	peer      atomic.Pointer[string] // the one that was used last
}

var (
	errForeignRedirect = errors.New("redirect refused")
	errDeadline        = errors.New("deadline of the whole scrape passed; see --timeout")
)

const (
	maxErrorText  = 400
	startCapacity = 64 << 10
)

func newFetcher(t Target, o Options, timeout time.Duration, own http.RoundTripper,
	nowNS func() int64) (*fetcher, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" && u.Scheme != "unix" {
		return nil, fmt.Errorf("make target: URL %s is not usable", quote(redact(t.URL), 200))
	}
	switch u.Scheme {
	case "unix":
		u = &url.URL{Scheme: "http", Host: "localhost", Path: "/metrics"}
	case "http", "https":
	default:
		return nil, fmt.Errorf("make target %s: scheme %q is not known, want http, https or unix", redact(t.URL),
			metric.Clean(u.Scheme, 40))
	}
	secrets, credentials := t.secrets()
	f := &fetcher{base: u, now: u, limits: o.Limits, nowNS: nowNS, secrets: newSecrets(secrets),
		given: newSecrets(credentials), redact: t.Redact, buffers: new(buffers),
		secret: t.Redact != nil || len(secrets) > 0}
	rt := t.RoundTripper
	if rt == nil {
		rt = own
	}
	f.client = &http.Client{Transport: rt, CheckRedirect: f.checkRedirect}
	header := http.Header{}
	for k, v := range t.Header {
		header[http.CanonicalHeaderKey(k)] = v
	}
	if u.User != nil {
		// As a header it survives a redirect at the same origin.
		auth := http.Request{Header: header}
		password, _ := u.User.Password()
		auth.SetBasicAuth(u.User.Username(), password)
		u.User = nil
	}
	encoding := "identity"
	if o.Compress {
		encoding = "gzip"
	}
	for k, v := range map[string]string{"User-Agent": "scrapestat/" + o.Version, "Accept-Encoding": encoding,
		"X-Prometheus-Scrape-Timeout-Seconds": strconv.FormatFloat(timeout.Seconds(), 'g', -1, 64)} {
		if _, ok := header[k]; !ok {
			header.Set(k, v)
		}
	}
	accept, err := AcceptHeader(orProtocols(t.Protocols, o.Protocols))
	if err != nil {
		return nil, err
	}
	f.setAccept(header, accept)
	f.request = http.Request{Method: http.MethodGet, Header: header, Host: header.Get("Host"),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	f.watch()
	return f, nil
}

// watch has the transport say when a request was sent, and to where.
func (f *fetcher) watch() {
	f.trace = httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { f.sentNS.Store(f.nowNS()) },
		ConnectStart: func(string, string) { f.dialNS.Store(f.nowNS()) },
		ConnectDone:  f.connected,
		DNSDone:      func(i httptrace.DNSDoneInfo) { f.addresses.Store(int64(len(i.Addrs))) },
		GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				peer := i.Conn.RemoteAddr().String()
				f.peer.Store(&peer)
			}
		},
	}
}

func (f *fetcher) connected(_, _ string, err error) {
	took, best := f.nowNS()-f.dialNS.Load(), f.connectNS.Load()
	if err == nil && (best == 0 || took < best) {
		f.connectNS.Store(took)
	}
}

// address reports which address is polled when the name has several.
func (f *fetcher) address() (text string, several bool) {
	n, peer := f.addresses.Load(), f.peer.Load()
	if n < 2 || peer == nil {
		return "", false
	}
	return fmt.Sprintf("%s has %d addresses; %s is polled", metric.Clean(f.now.Hostname(), 200), n,
		metric.Clean(*peer, 100)), true
}

// distance is the time that a connect takes at least.
func (f *fetcher) distance() time.Duration { return time.Duration(f.connectNS.Load()) }

// checkRedirect allows a few redirects that stay at the origin. Headers with
// secrets would follow to any host otherwise.
func (f *fetcher) checkRedirect(r *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case r.URL.Scheme != from.Scheme || !strings.EqualFold(originHost(r.URL), originHost(from)):
		return fmt.Errorf("%w: it leads to another origin, %s", errForeignRedirect, redact(r.URL.Scheme+"://"+r.URL.Host))
	case len(via) > f.limits.Redirects:
		return fmt.Errorf("%w: more than %d in a row, see --max-redirects", errForeignRedirect, max(0, f.limits.Redirects))
	}
	return nil
}

func originHost(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return u.Host + ":443"
	}
	return u.Host + ":80"
}

// answer is what a request brought: a body, or an outcome without one.
type answer struct {
	body        []byte
	contentType string
	cut         bool
	final       *url.URL // after redirects
	header      http.Header
	said        []byte // the beginning of a body with another status than 200
}

// fetch does one request and fills the times, status and outcome of s. The body is valid until the next fetch
// or release. s.Outcome is OK when there is a body to decode.
func (f *fetcher) fetch(ctx context.Context, u *url.URL, s *metric.Snapshot) (a answer) {
	f.sentNS.Store(f.nowNS())
	f.firstNS, f.wire = 0, 0
	s.Outcome, s.Status, s.Err, s.FirstByteNS = metric.OK, 0, "", 0
	r := f.request.WithContext(httptrace.WithClientTrace(ctx, &f.trace))
	r.URL = u
	resp, err := f.client.Do(r)
	if err != nil {
		s.Outcome, s.Err = f.failure(ctx, err)
	} else {
		a.header = resp.Header
		a.final, a.contentType, s.Status = resp.Request.URL, resp.Header.Get("Content-Type"), resp.StatusCode
		if resp.StatusCode != http.StatusOK {
			a.said = f.statusError(resp, s)
		} else {
			f.readBody(ctx, resp, &a, s)
		}
		resp.Body.Close()
	}
	s.SentNS, s.FirstByteNS = f.sentNS.Load(), f.firstNS
	if s.FirstByteNS != 0 {
		s.SentNS = min(s.SentNS, s.FirstByteNS) // a server may answer before it has read all
	}
	s.Duration = time.Duration(f.nowNS() - s.SentNS)
	return a
}

// release gives the memory of the last body back.
func (f *fetcher) release() {
	f.buffers.give(f.buf)
	f.buf = nil
}

// failure names what went wrong before a body came.
func (f *fetcher) failure(ctx context.Context, err error) (metric.Outcome, string) {
	switch err = metric.WithoutURL(err); {
	case errors.Is(err, errForeignRedirect):
		return metric.RefusedRedirect, f.text(err.Error())
	case ctx.Err() != nil:
		return interrupted(ctx)
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return metric.TooLarge, fmt.Sprintf("response headers are longer than %d bytes; raise --max-headers", f.limits.Header)
	}
	return metric.ConnectError, f.text(err.Error() + f.dialHint(err) + TLSHint(err, ""))
}

// dialHint names the flag behind a connection that took too long to make.
func (f *fetcher) dialHint(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && op.Timeout() {
		return fmt.Sprintf("; there was no connection after %v, see --connect-timeout", f.limits.Connect)
	}
	return ""
}

// interrupted tells a passed deadline from the end of the run.
func interrupted(ctx context.Context) (metric.Outcome, string) {
	if errors.Is(context.Cause(ctx), errDeadline) {
		return metric.Timeout, errDeadline.Error()
	}
	return metric.Cancelled, "the run ended first"
}

// text makes a message of what others wrote, without the target's secrets.
func (f *fetcher) text(s string) string {
	return metric.Clean(f.hide(s), maxErrorText)
}

// hide replaces the target's secrets in a message.
func (f *fetcher) hide(s string) string { return f.replace(f.secrets, s) }

// hideGiven replaces the credentials in what the target sent.
func (f *fetcher) hideGiven(s string) string { return f.replace(f.given, s) }

func (f *fetcher) replace(r *strings.Replacer, s string) string {
	s = r.Replace(s)
	if f.redact != nil {
		s = f.redact(s)
	}
	return s
}

// conceal takes the target's secrets out of what a poll brought besides values: a login page may repeat them, as may
// HELP texts and labels, and bodies are kept. Names of families stay, as what is derived is found by them.
func (f *fetcher) conceal(s *metric.Snapshot) {
	if f == nil || !f.secret {
		return
	}
	if s.Err != "" {
		s.Err = f.hide(s.Err)
	}
	for i := range s.Drops {
		s.Drops[i].First = f.hide(s.Drops[i].First)
	}
	for i := range s.Warnings {
		s.Warnings[i].Text = f.hide(s.Warnings[i].Text)
	}
	for i := range s.DictDelta.Families {
		x := &s.DictDelta.Families[i]
		x.Help, x.Unit = f.hideGiven(x.Help), f.hideGiven(x.Unit)
	}
	for i := range s.DictDelta.Series {
		f.hideLabels(&s.DictDelta.Series[i].Labels)
	}
	for i := range s.Exemplars {
		f.hideLabels(&s.Exemplars[i].Labels)
	}
	if s.Body != nil && (s.Outcome != metric.OK || !f.kept) {
		f.kept = f.kept || s.Outcome == metric.OK
		text := string(s.Body)
		if hidden := f.hide(text); hidden != text {
			s.Body = []byte(hidden)
		}
	}
}

// hideLabels replaces the target's credentials in names and values of labels.
func (f *fetcher) hideLabels(l *metric.Labels) {
	if text := l.String(); f.hideGiven(text) == text {
		return
	}
	hidden := map[string]string{}
	for name, value := range l.All() {
		hidden[f.hideGiven(name)] = f.hideGiven(value)
	}
	*l = metric.LabelsFromMap(hidden)
}

func newSecrets(texts []string) *strings.Replacer {
	var pairs []string
	for _, s := range texts {
		pairs = append(pairs, s, "xxxxx")
	}
	return strings.NewReplacer(pairs...)
}

// statusHints is what a status usually means for an inference server.
var statusHints = map[int]string{
	http.StatusUnauthorized: "; give --header, --bearer-token-file or --basic-auth-file",
	http.StatusForbidden:    "; give --header, --bearer-token-file or --basic-auth-file",
	http.StatusNotFound: "; check the path, or the server flag that turns metrics on (SGLang --enable-metrics, " +
		"vLLM-Omni --log-stats)",
	http.StatusNotImplemented: "; llama-server needs --metrics",
}

// statusError returns the beginning of the body.
func (f *fetcher) statusError(resp *http.Response, s *metric.Snapshot) []byte {
	s.Outcome = metric.HTTPError
	most := f.limits.ErrorBody
	text := make([]byte, most+1)
	n, _ := io.ReadFull(resp.Body, text) // an excerpt for the message; the status is the error
	s.Err = "status " + strconv.Itoa(resp.StatusCode) + statusHints[resp.StatusCode]
	if said := metric.Clean(f.hide(strings.TrimSpace(string(text[:min(n, most)]))), most); said != "" {
		s.Err += `; the body begins "` + said + `"`
	}
	if n > most {
		s.Err += fmt.Sprintf(" and goes on beyond %d bytes, see --max-error-body", most)
	}
	return text[:min(n, most)]
}

// readBody reads the body under the limits and the deadline.
func (f *fetcher) readBody(ctx context.Context, resp *http.Response, a *answer, s *metric.Snapshot) {
	src, limit, err := f.reader(resp)
	if err == nil && resp.ContentLength > limit && src == resp.Body {
		err = errTooLarge
	}
	if err == nil {
		if f.buf == nil { // now, as a slow server would hold it for long
			f.buf = f.buffers.take(f.size)
		}
		if n := resp.ContentLength; n > int64(cap(f.buf)) && n <= limit {
			f.buf = make([]byte, 0, n+n/16+512) // bodies grow
		}
		a.body, err = f.readAll(src, f.buf[:0], limit)
		f.buf, f.size = a.body, len(a.body)
	}
	if errors.Is(err, errTooLarge) {
		a.body, f.buf = nil, nil
	}
	switch {
	case err == nil:
	case errors.Is(err, errTooLarge):
		s.Outcome, s.Err = metric.TooLarge, fmt.Sprintf("body is longer than %d bytes; raise --max-body, or choose "+
			"families at the server", limit)
	case errors.Is(err, errGzipTooLarge):
		s.Outcome, s.Err = metric.TooLarge, fmt.Sprintf("compressed body is longer than %d bytes; raise "+
			"--max-compressed-body", f.limits.Compressed)
	case ctx.Err() != nil:
		s.Outcome, s.Err = interrupted(ctx)
	case errors.Is(err, errEncoding):
		s.Outcome, s.Err = metric.NotPrometheus, f.text(err.Error())
	case src != resp.Body:
		// Bytes of a damaged gzip stream have not passed its checksum.
		s.Outcome, s.Err = metric.Truncated, f.text("gzip body is damaged or was cut short: "+err.Error())
	case f.firstNS == 0:
		s.Outcome, s.Err = metric.ConnectError, f.text("connection broke before the body: "+err.Error())
	default:
		a.cut = true
	}
}

var (
	errTooLarge     = errors.New("body is too large")
	errGzipTooLarge = errors.New("compressed body is too large")
	errEncoding     = errors.New("content encoding is not supported")
)

// reader returns the decoded body and its limit.
func (f *fetcher) reader(resp *http.Response) (io.Reader, int64, error) {
	switch enc := strings.ToLower(resp.Header.Get("Content-Encoding")); enc {
	case "", "identity":
		return resp.Body, f.limits.Body, nil
	case "gzip", "x-gzip":
		if err := f.gzip.Reset(&gzipSource{f: f, src: resp.Body, left: f.limits.Compressed}); err != nil {
			return &f.gzip, f.limits.Body, fmt.Errorf("read gzip header: %w", err)
		}
		return &f.gzip, f.limits.Body, nil
	default:
		return resp.Body, f.limits.Body, fmt.Errorf("%w: %s", errEncoding, enc)
	}
}

// gzipSource bounds what a gzip reader may take, and notes the first byte.
type gzipSource struct {
	f    *fetcher
	src  io.Reader
	left int64
}

func (g *gzipSource) Read(p []byte) (int, error) {
	if g.left < 0 {
		return 0, errGzipTooLarge
	}
	n, err := g.src.Read(p[:min(int64(len(p)), g.left+1)])
	if g.left -= int64(n); g.left < 0 {
		return n, errGzipTooLarge
	}
	g.f.firstByte(n)
	g.f.wire += int64(n)
	return n, err
}

func (f *fetcher) firstByte(n int) {
	if n > 0 && f.firstNS == 0 {
		f.firstNS = f.nowNS()
	}
}

// readAll reads src into buf, at most limit bytes.
func (f *fetcher) readAll(src io.Reader, buf []byte, limit int64) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			// The last step goes all the way, from a quarter: all buffers on the way up
			// to a body that is too large take less than twice the limit together.
			next := max(startCapacity, 2*int64(cap(buf)))
			if next >= limit/2 {
				next = limit + 1
			}
			grown := make([]byte, len(buf), next)
			copy(grown, buf)
			buf = grown
		}
		n, err := src.Read(buf[len(buf):cap(buf)])
		f.firstByte(n)
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return buf[:0], errTooLarge
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
