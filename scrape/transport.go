package scrape

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	dialTimeout    = 2 * time.Second
	maxHeaderBytes = 64 << 10
	sharedIdle     = 64 // connections kept to one host by a transport of unknown use
)

// NewTransport returns a transport like the collector's own, with TLS settings:
// for the RoundTripper of targets that need a certificate authority, a client
// certificate or a server name. A nil config is Go's default. The caller closes
// its idle connections when the run has ended.
func NewTransport(config *tls.Config) *http.Transport {
	t := newTransport(sharedIdle)
	t.TLSClientConfig = config
	return t
}

// newTransport returns a transport that scrapes directly: no proxy from the
// environment, no compression that was not asked for, no HTTP/2. It keeps a
// connection for each of the targets, which may share a host.
func newTransport(targets int) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    max(2, targets),
		IdleConnTimeout:        5 * time.Minute,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// newUnixTransport returns a transport that talks to one socket, whatever the
// host of a URL.
func newUnixTransport(address string) *http.Transport {
	t := newTransport(1)
	path := strings.TrimPrefix(address, "unix://")
	dialer := &net.Dialer{Timeout: dialTimeout}
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", path)
	}
	return t
}
