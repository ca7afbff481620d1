package scrape

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	dialTimeout    = 2 * time.Second
	maxHeaderBytes = 64 << 10
)

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
