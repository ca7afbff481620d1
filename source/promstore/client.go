package promstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/scrapestat/scrapestat/metric"
)

// The limits on what a server may send.
const (
	maxResponse  = 256 << 20 // bytes of an answer, decompressed
	maxMetadata  = 32 << 20
	maxValue     = 8 << 20 // bytes of one JSON value that is read as a whole
	maxErrorBody = 64 << 10
	maxBlock     = 64 << 20 // bytes of a snappy block, decompressed
	// maxSnappyRatio is above what a block can grow by: 64 bytes of a copy that
	// takes 3, or 11 of one that takes 2.
	maxSnappyRatio = 32
	maxFrame       = 16 << 20 // bytes of a frame of remote read
	maxChunk       = 1 << 20  // bytes of a chunk
)

// errTooMuch is wrapped by errors that a shorter slice of time may avoid.
var errTooMuch = errors.New("too much for one request")

// errUnsupported is wrapped by the error of a server that does not offer remote read.
var errUnsupported = errors.New("not offered by this server")

// client talks to one store.
type client struct {
	base   *url.URL
	http   *http.Client
	header http.Header
	redact func(string) string // takes secrets out of texts; nil takes none
}

// newClient checks the address of a store. transport may be nil.
func newClient(address string, transport http.RoundTripper, header http.Header, redact func(string) string) (*client,
	error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the store is no URL")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("store %s: want http://HOST:PORT or https://HOST:PORT", Redact(address))
	}
	return &client{base: u, http: &http.Client{Transport: transport, CheckRedirect: sameOrigin}, header: header,
		redact: redact}, nil
}

// sameOrigin follows up to three redirects inside an origin, so that no credential goes elsewhere.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// Redact returns an address without userinfo and without the values of its query.
func Redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(no URL)"
	}
	u.User = nil
	if u.RawQuery != "" {
		u.RawQuery = "REDACTED"
	}
	return u.String()
}

func (c *client) name() string { return Redact(c.base.String()) }

// do sends a request to a path below the base and returns an answer with status 200, whose body the caller closes.
func (c *client) do(ctx context.Context, path, contentType string, body string, header http.Header) (*http.Response,
	error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawPath = ""
	method := http.MethodPost
	if contentType == "" {
		method = http.MethodGet
	}
	const tries = 3
	for try := 1; ; try++ {
		req, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("ask %s%s: bad request", c.name(), path)
		}
		for _, h := range []http.Header{c.header, header} {
			for name, values := range h {
				req.Header[name] = values
			}
		}
		if contentType != "" {
			req.Header.Set("Content-Type", contentType)
		}
		resp, err := c.http.Do(req)
		if err == nil && resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		again := err != nil || resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusTooManyRequests
		if err == nil {
			err = c.statusError(resp)
		} else {
			again = !distrusted(err)
			err = metric.WithoutURL(err)
			if c.redact != nil {
				err = redactedError{err, c.redact(err.Error())}
			}
		}
		err = fmt.Errorf("ask %s%s: %w", c.name(), path, err)
		if ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		if !again || try == tries {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(try) * 300 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// distrusted reports whether a certificate was not accepted, by us or by the server: asking again does not help.
func distrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var alert tls.AlertError
	return errors.As(err, &verification) || errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls:")
}

// redactedError is an error whose text may be shown.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }

func (e redactedError) Unwrap() error { return e.error }

// statusError reads the error that an answer holds and closes it.
func (c *client) statusError(resp *http.Response) error {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		body = nil // the status says enough
	}
	text := c.errorText(body)
	sentinel := error(nil)
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed || code == http.StatusNotImplemented ||
		code == http.StatusUnsupportedMediaType:
		sentinel = errUnsupported
	case code == http.StatusRequestEntityTooLarge || code == http.StatusServiceUnavailable ||
		code == http.StatusGatewayTimeout ||
		code == http.StatusUnprocessableEntity,
		code >= 400 && (strings.Contains(text, "too many") || strings.Contains(text, "exceed") ||
			strings.Contains(text, "limit")):
		sentinel = errTooMuch
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		text += " (credentials: --bearer-token-file, --basic-auth-file or --header)"
	}
	if sentinel != nil {
		return fmt.Errorf("status %d: %s: %w", resp.StatusCode, text, sentinel)
	}
	return fmt.Errorf("status %d: %s", resp.StatusCode, text)
}

// errorText is what an error body says, fit for one line.
func (c *client) errorText(body []byte) string {
	text := string(body)
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() == '{' {
		_ = eachMember(d, func(name string) error { // what is no JSON is shown as it is
			if name != "error" {
				return d.SkipValue()
			}
			tok, err := d.ReadToken()
			if err == nil && tok.Kind() == '"' {
				text = tok.String()
			}
			return err
		})
	}
	if c.redact != nil { // before it is cut, lest half a secret be left
		text = c.redact(text)
	}
	return metric.Clean(strings.Join(strings.Fields(text), " "), 200)
}

// eachMember calls visit for each member of the object that comes next. visit reads the value.
func eachMember(d *jsontext.Decoder, visit func(name string) error) error {
	tok, err := d.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != '{' {
		return fmt.Errorf("an object was expected, got %v", tok.Kind())
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := visit(name.String()); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// eachElement calls visit for each element of the array that comes next, or not
// at all for null. visit reads the element.
func eachElement(d *jsontext.Decoder, visit func() error) error {
	tok, err := d.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() == 'n' {
		return nil
	}
	if tok.Kind() != '[' {
		return fmt.Errorf("an array was expected, got %v", tok.Kind())
	}
	for d.PeekKind() != ']' {
		if err := visit(); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// newDecoder reads JSON of a store, no value of which takes more than maxValue of memory.
func newDecoder(r io.Reader) *jsontext.Decoder {
	s := &stepped{r: r}
	s.d = jsontext.NewDecoder(s, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return s.d
}

// stepped reads for a decoder that goes forward.
type stepped struct {
	r    io.Reader
	d    *jsontext.Decoder
	read int64
}

func (s *stepped) Read(p []byte) (int, error) {
	if s.read-s.d.InputOffset() > maxValue {
		return 0, fmt.Errorf("a value of the answer has more than %d bytes", maxValue)
	}
	n, err := s.r.Read(p)
	s.read += int64(n)
	return n, err
}

// bounded reads up to a limit and then fails with an error that wraps errTooMuch.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is too long: %w", errTooMuch)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
