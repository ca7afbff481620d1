package scrape

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
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

// TLSHint returns what to do about a request that failed before it was sent, "" when
// that is not known. The names of the flags it names begin with prefix.
func TLSHint(err error, prefix string) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	record, _ := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired:
		return "; renew the server's certificate, or check the clock of this machine"
	case is[x509.HostnameError](err):
		return "; give the name of the certificate with --" + prefix + "tls-server-name, or use that name in the address"
	case is[x509.UnknownAuthorityError](err):
		return "; give the authority that signed the server's certificate with --" + prefix + "tls-ca"
	case isInvalid:
		return "; the server's certificate cannot be used: issue another one"
	case strings.HasPrefix(string(record.RecordHeader[:]), "HTTP"),
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "; the server speaks plain HTTP at this port: use http://"
	case is[tls.AlertError](err) || strings.Contains(err.Error(), "remote error: tls:"):
		return "; the server refused the handshake: it may want a client certificate of an authority it knows, see --" +
			prefix + "tls-cert and --" + prefix + "tls-key"
	case is[*fs.PathError](err):
		return "; make the file readable"
	}
	return ""
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
