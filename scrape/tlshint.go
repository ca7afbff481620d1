package scrape

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"strings"
)

// TLSHint returns what to do about a request that failed before it was sent, "" when
// that is not known. The names of the flags it names begin with prefix.
func TLSHint(err error, prefix string) string {
	var (
		invalid  x509.CertificateInvalidError
		host     x509.HostnameError
		unknown  x509.UnknownAuthorityError
		alert    tls.AlertError
		record   tls.RecordHeaderError
		pathErr  *fs.PathError
		expired  = errors.As(err, &invalid) && invalid.Reason == x509.Expired
		fromPeer = errors.As(err, &alert)
	)
	switch {
	case expired:
		return "; renew the server's certificate, or check the clock of this machine"
	case errors.As(err, &host):
		return "; give the name of the certificate with --" + prefix + "tls-server-name, or use that name in the address"
	case errors.As(err, &unknown):
		return "; give the authority that signed the server's certificate with --" + prefix + "tls-ca"
	case errors.As(err, &invalid):
		return "; the server's certificate cannot be used: issue another one"
	case errors.As(err, &record) && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP"),
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "; the server speaks plain HTTP at this port: use http://"
	case fromPeer || strings.Contains(err.Error(), "remote error: tls:"):
		return "; the server refused the handshake: it may want a client certificate of an authority it knows, see --" +
			prefix + "tls-cert and --" + prefix + "tls-key"
	case errors.As(err, &pathErr):
		return "; make the file readable"
	}
	return ""
}
