package scrape

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"time"
)

// sharedIdle is how many connections to one host a transport of unknown use keeps.
const sharedIdle = 64

// NewTransport returns a transport like the collector's own, with TLS settings: for the RoundTripper of targets
// that need a certificate authority, a client certificate or a server name. A nil config is Go's default. Of
// the limits it keeps Header and Connect. The caller closes its idle connections when the run has ended.
func NewTransport(config *tls.Config, l Limits) *http.Transport {
	t := newTransport(sharedIdle, l.withDefaults())
	t.TLSClientConfig = config
	return t
}

// newTransport returns a transport that scrapes directly: no proxy from the environment, no compression that
// was not asked for, no HTTP/2. It keeps a connection for each of the targets, which may share a host.
func newTransport(targets int, l Limits) *http.Transport {
	dialer := &net.Dialer{Timeout: l.Connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    max(2, targets),
		IdleConnTimeout:        5 * time.Minute,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: l.Header,
	}
}

// newUnixTransport returns a transport that talks to one socket, whatever the host of a URL.
func newUnixTransport(address string, l Limits) *http.Transport {
	t := newTransport(1, l)
	path := strings.TrimPrefix(address, "unix://")
	dialer := &net.Dialer{Timeout: l.Connect}
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", path)
	}
	return t
}
