package triton

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// httpAPI asks over HTTP.
type httpAPI struct {
	client  *http.Client
	own     *http.Transport // nil when the caller gave one
	address address
	header  http.Header
	secrets *strings.Replacer
	options *Options
	limit   int64
	buf     []byte
}

const (
	maxErrorBody  = 4 << 10
	maxConfigBody = 4 << 20
	startCapacity = 16 << 10
)

func newHTTP(a *address, o Options, limit int64) *httpAPI {
	h := &httpAPI{address: *a, header: http.Header{}, secrets: censor(o.Header, a), options: &o, limit: limit}
	rt := o.RoundTripper
	if rt == nil {
		h.own = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1, TLSClientConfig: o.TLS,
			IdleConnTimeout:        6 * time.Minute,
			MaxResponseHeaderBytes: 64 << 10, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
		rt = h.own
	}
	h.client = &http.Client{Transport: rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	h.header.Set("User-Agent", "scrapestat/"+o.Version)
	h.header.Set("Accept", "application/json")
	h.header.Set("Accept-Encoding", "identity")
	if a.user != nil {
		auth := http.Request{Header: h.header}
		password, _ := a.user.Password()
		auth.SetBasicAuth(a.user.Username(), password)
	}
	for k, v := range o.Header {
		h.header[http.CanonicalHeaderKey(k)] = v
	}
	return h
}

func (h *httpAPI) close() error {
	if h.own != nil {
		h.own.CloseIdleConnections()
	}
	return nil
}

func (h *httpAPI) decode(d *Decoder, body []byte, s *metric.Snapshot) { d.JSON(body, s) }

func (h *httpAPI) request(ctx context.Context, target string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, errors.New("address is not usable as a URL")
	}
	r.Header = h.header
	r.Host = h.header.Get("Host")
	return r, nil
}

func (h *httpAPI) fetch(ctx context.Context, now func() int64, s *metric.Snapshot) []byte {
	var sent atomic.Int64 // the transport writes it from a goroutine of its own
	sent.Store(s.SentNS)
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent.Store(now()) }}
	r, err := h.request(httptrace.WithClientTrace(ctx, trace), h.address.statsURL())
	if err != nil {
		s.Outcome, s.Err = metric.ConnectError, err.Error()
		return nil
	}
	resp, err := h.client.Do(r)
	s.SentNS = sent.Load()
	if err != nil {
		if s.Outcome, s.Err = metric.ConnectError, h.text(metric.WithoutURL(err)); ctx.Err() != nil {
			if s.Outcome, s.Err = interrupted(ctx); s.Outcome == metric.Timeout {
				s.Err += "; while Triton loads models it may not answer over HTTP: poll triton+grpc://HOST:8001"
			}
		}
		return nil
	}
	defer resp.Body.Close()
	s.Status = resp.StatusCode
	if resp.StatusCode != http.StatusOK {
		h.statusError(resp, s)
		return nil
	}
	if resp.ContentLength > h.limit {
		s.Outcome, s.Err = metric.TooLarge, tooLong(h.limit)
		return nil
	}
	body, err := h.read(resp.Body, now, s)
	s.SentNS = min(s.SentNS, max(s.FirstByteNS, 1)) // a server may answer before it has read all
	if s.FirstByteNS == 0 {
		s.SentNS = sent.Load()
	}
	switch {
	case err == nil:
		return body
	case errors.Is(err, errTooLong):
		s.Outcome, s.Err = metric.TooLarge, tooLong(h.limit)
	case ctx.Err() != nil:
		s.Outcome, s.Err = interrupted(ctx)
	case s.FirstByteNS == 0:
		s.Outcome, s.Err = metric.ConnectError, h.text(fmt.Errorf("connection broke before the answer: %w", err))
	default:
		s.Outcome, s.Err = metric.Truncated, h.text(fmt.Errorf("answer broke off: %w", err))
	}
	return nil
}

var errTooLong = errors.New("answer is too long")

// read reads the body into the buffer of the source.
func (h *httpAPI) read(src io.Reader, now func() int64, s *metric.Snapshot) ([]byte, error) {
	h.buf = h.buf[:0]
	for {
		if len(h.buf) == cap(h.buf) {
			h.buf = append(make([]byte, 0, max(startCapacity, min(2*int64(cap(h.buf)), h.limit+1))), h.buf...)
		}
		n, err := src.Read(h.buf[len(h.buf):cap(h.buf)])
		if n > 0 && s.FirstByteNS == 0 {
			s.FirstByteNS = now()
		}
		h.buf = h.buf[:len(h.buf)+n]
		switch {
		case int64(len(h.buf)) > h.limit:
			h.buf = nil
			return nil, errTooLong
		case err == io.EOF:
			if s.FirstByteNS == 0 {
				s.FirstByteNS = now()
			}
			return h.buf, nil
		case err != nil:
			return nil, err
		}
	}
}

func (h *httpAPI) text(err error) string {
	return metric.Clean(redact(h.options, h.secrets, err.Error()), maxText)
}

// statusHint says what a status means, and what to do.
func statusHint(status int, said string) string {
	switch {
	case status == http.StatusForbidden && strings.Contains(said, "restricted"):
		return "; give the header of the restricted API: --header 'NAME: VALUE'"
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return "; give --header or another way of authentication"
	case status == http.StatusNotFound:
		return "; is this Triton's HTTP port (8000, not 8002), and the version a number?"
	case status == http.StatusBadRequest && strings.Contains(said, "not available"):
		return "; the model is not loaded, or was unloaded"
	case status == http.StatusNotImplemented:
		return "; the server was built without statistics"
	case status == http.StatusServiceUnavailable:
		return "; the server is starting, or was built without statistics"
	}
	return ""
}

// statusError names an answer that is none, with the server's own words.
func (h *httpAPI) statusError(resp *http.Response, s *metric.Snapshot) {
	s.Outcome = metric.HTTPError
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // an excerpt for the message; the status is the error
	if resp.StatusCode/100 == 3 {
		s.Outcome, s.Err = metric.RefusedRedirect, "status "+strconv.Itoa(resp.StatusCode)+": redirects are not followed; "+
			"give the address itself"
		return
	}
	said := strings.TrimSpace(string(raw))
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(raw, &body) == nil && body.Error != "" {
		said = body.Error
	}
	s.Err = "status " + strconv.Itoa(resp.StatusCode)
	hint := statusHint(resp.StatusCode, said)
	if said = metric.Clean(redact(h.options, h.secrets, said), 200); said != "" {
		s.Err += ": " + said
	}
	s.Err += hint
}

func (h *httpAPI) config(ctx context.Context, model, version string) ([]string, error) {
	body, err := h.get(ctx, h.address.modelURL(model, version, "config"), "model configuration")
	if err != nil {
		return nil, err
	}
	return jsonSteps(body)
}

func (h *httpAPI) version(ctx context.Context) (string, error) {
	body, err := h.get(ctx, h.address.baseURL(), "server")
	if err != nil {
		return "", err
	}
	var server struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(body, &server); err != nil {
		return "", fmt.Errorf("read server: %w", err)
	}
	return server.Version, nil
}

// get asks for something beside the statistics.
func (h *httpAPI) get(ctx context.Context, target, what string) ([]byte, error) {
	r, err := h.request(ctx, target)
	if err != nil {
		return nil, err
	}
	resp, err := h.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", what, metric.WithoutURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for %s: status %d", what, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxConfigBody+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if len(body) > maxConfigBody {
		return nil, fmt.Errorf("read %s: %w", what, errTooLong)
	}
	return body, nil
}

// jsonSteps returns what the steps of an ensemble call: ensemble_scheduling.step[].model_name and model_version.
func jsonSteps(body []byte) ([]string, error) {
	var steps []string
	c := newCursor(bytes.NewBuffer(body))
	member := func(name string, read func()) func(key string) {
		return func(key string) {
			if snake(key) == name {
				read()
			} else {
				c.skip()
			}
		}
	}
	c.members(member("ensemble_scheduling", func() {
		c.members(member("step", func() {
			c.elements(func() {
				name, version := "", ""
				c.members(func(key string) {
					switch snake(key) {
					case "model_name":
						name = c.text()
					case "model_version":
						version, _ = c.number()
					default:
						c.skip()
					}
				})
				steps = appendStep(steps, name, version)
			})
		}))
	}))
	if c.read(); c.err != io.EOF {
		return nil, errors.New("model configuration is no JSON")
	}
	return steps, nil
}

// appendStep adds what a step calls, up to their bound.
func appendStep(steps []string, model, version string) []string {
	if model == "" || len(steps) == maxSteps {
		return steps
	}
	if _, err := strconv.ParseUint(version, 10, 64); err == nil {
		model += "/" + version
	}
	return append(steps, model)
}
