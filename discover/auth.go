package discover

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/prometheus/common/config"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// Header is a header that is sent with each request. Its value is a secret.
type Header struct {
	Name  string
	Value Secret
}

// ParseHeader reads "Name: value".
func ParseHeader(text string) (Header, error) {
	name, value, ok := strings.Cut(text, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" || strings.ContainsFunc(name, notToken) {
		return Header{}, fmt.Errorf("parse header: want 'Name: value'")
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return Header{}, fmt.Errorf("parse header %s: the value has a line end", name)
	}
	return Header{name, NewSecret(value)}, nil
}

// notToken reports whether a rune is none of a header name (RFC 9110, section 5.6.2).
func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// Auth is the authentication and transport of targets that are given by their address. The zero value is none of it.
type Auth struct {
	Headers         []Header
	BearerTokenFile string
	BasicAuthFile   string // a file that holds USER:PASSWORD

	CAFile, CertFile, KeyFile, ServerName string
	InsecureSkipVerify                    bool
	ProxyFromEnvironment                  bool

	Limits scrape.Limits // of connections; the zero value has the collector's own

	// Prefix is what the names of the flags begin with, after the dashes, and Who
	// the servers they are for: messages name both. "" is the targets.
	Prefix, Who string
}

// Apply returns the targets with these settings, and the clients that they use, whose connections the caller closes
// after the run. Files are read again when they are used. Targets that are no HTTP endpoints stay as they are.
func (a Auth) Apply(targets []scrape.Target) ([]scrape.Target, []*Client, []metric.Warning, error) {
	if err := a.check(); err != nil {
		return nil, nil, nil, err
	}
	out := make([]scrape.Target, len(targets))
	copy(out, targets)
	var clients []*Client
	shared := map[string]*Client{} // by socket
	for i := range out {
		t := &out[i]
		if t.Source != nil || t.RoundTripper != nil {
			continue
		}
		a.headers(t)
		if !a.needsClient() {
			continue
		}
		socket, _ := strings.CutPrefix(t.URL, "unix://")
		if socket == t.URL {
			socket = ""
		}
		c := shared[socket]
		if c == nil {
			var err error
			if c, err = a.client(socket); err != nil {
				return nil, nil, nil, err
			}
			shared[socket] = c
			clients = append(clients, c)
		}
		t.RoundTripper, t.Redact = c, c.Redact
	}
	return out, clients, a.warnings(), nil
}

// Open returns what requests to one server that is no target are sent with: the
// headers, and a client whose connections the caller closes.
func (a Auth) Open() (http.Header, *Client, []metric.Warning, error) {
	if err := a.check(); err != nil {
		return nil, nil, nil, err
	}
	c, err := a.client("")
	if err != nil {
		return nil, nil, nil, err
	}
	c.explain, c.files = &a.Prefix, a.BearerTokenFile+a.BasicAuthFile != ""
	header := http.Header{}
	for _, h := range a.Headers {
		header.Add(h.Name, h.Value.text)
		c.vault.addHeader(h.Value.text)
	}
	return header, c, a.warnings(), nil
}

// check refuses settings that contradict each other.
func (a Auth) check() error {
	if a.BearerTokenFile != "" && a.BasicAuthFile != "" {
		return fmt.Errorf("--%sbearer-token-file and --%sbasic-auth-file exclude each other", a.Prefix, a.Prefix)
	}
	if (a.CertFile == "") != (a.KeyFile == "") {
		return fmt.Errorf("--%stls-cert and --%stls-key belong together: give both", a.Prefix, a.Prefix)
	}
	for _, f := range [][2]string{{"bearer-token-file", a.BearerTokenFile}, {"basic-auth-file", a.BasicAuthFile},
		{"tls-ca", a.CAFile}, {"tls-cert", a.CertFile}, {"tls-key", a.KeyFile}} {
		if f[1] == "" {
			continue
		}
		if _, err := readSmall(f[1]); err != nil {
			return fmt.Errorf("--%s%s: %w", a.Prefix, f[0], err)
		}
	}
	return nil
}

// headers adds the headers to a target.
func (a Auth) headers(t *scrape.Target) {
	if len(a.Headers) == 0 {
		return
	}
	t.Header = t.Header.Clone()
	if t.Header == nil {
		t.Header = map[string][]string{}
	}
	for _, h := range a.Headers {
		t.Header.Add(h.Name, h.Value.text)
	}
}

func (a Auth) needsClient() bool {
	return a.BearerTokenFile+a.BasicAuthFile+a.CAFile+a.CertFile+a.ServerName != "" || a.InsecureSkipVerify ||
		a.ProxyFromEnvironment
}

func (a Auth) client(socket string) (*Client, error) {
	c := config.DefaultHTTPClientConfig
	c.TLSConfig = config.TLSConfig{CAFile: a.CAFile, CertFile: a.CertFile, KeyFile: a.KeyFile,
		ServerName: a.ServerName, InsecureSkipVerify: a.InsecureSkipVerify}
	c.ProxyFromEnvironment = a.ProxyFromEnvironment
	if a.BearerTokenFile != "" {
		c.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: a.BearerTokenFile}
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if a.BasicAuthFile != "" {
		if _, err := (basicPart{a.BasicAuthFile, 0}).Fetch(context.Background()); err != nil {
			return nil, err
		}
	}
	return newClient(c, a.BasicAuthFile, reach{socket: socket}, a.Limits)
}

// warnings says what is unsafe about the settings.
func (a Auth) warnings() []metric.Warning {
	var out []metric.Warning
	if a.InsecureSkipVerify {
		out = append(out, metric.Warning{Code: "tls_not_verified",
			Text: fmt.Sprintf("certificates of %s were not verified (--%sinsecure-skip-verify): anybody in between could have "+
				"answered", cmp.Or(a.Who, "the targets"), a.Prefix)})
	}
	for _, f := range []string{a.KeyFile, a.BearerTokenFile, a.BasicAuthFile} {
		out = append(out, openFile(f)...)
	}
	return out
}

// openFile warns of a file with a secret that others may read.
func openFile(path string) []metric.Warning {
	info, err := os.Stat(path)
	if path == "" || err != nil || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return append(WarnWorldWritable(path), metric.Warning{Code: "secret_readable",
		Text: fmt.Sprintf("%s holds a secret and others may read it (mode %04o): chmod 600 it", path, info.Mode().Perm())})
}

// WarnWorldWritable warns of a file of settings that every account of the machine may change: who changes it decides
// what is polled, and where credentials go. It says nothing of pipes and devices, and of a file that is not there.
func WarnWorldWritable(path string) []metric.Warning {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o002 == 0 {
		return nil
	}
	return []metric.Warning{{Code: "config_writable",
		Text: metric.Clean(fmt.Sprintf("%s may be changed by everybody on this machine (mode %04o): chmod o-w it", path,
			info.Mode().Perm()), maxMessage)}}
}
