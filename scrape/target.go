package scrape

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source"
)

// Target is an endpoint to poll. Name and URL suffice; a source of targets that
// knows more than an address sets the rest.
type Target struct {
	Name string // the user's alias, or ""
	// URL is polled as it is: http, https, or unix with the path of a socket.
	// It may hold userinfo, which is sent as basic authentication.
	URL    string
	Header http.Header // sent with each request, besides our own; not changed
	// Interval and Timeout override those of the options unless they are 0.
	Interval, Timeout time.Duration
	// Protocols overrides that of the options unless it is empty.
	Protocols []string
	// RoundTripper replaces the collector's own transport, for authentication or
	// TLS settings; nil is our own. Whoever gave it closes its connections.
	RoundTripper http.RoundTripper
	// Redact removes secrets from texts that are to be shown, besides those that
	// Header and URL hold; nil is for none. It may be called from any goroutine.
	Redact func(string) string
	// Labels say what the target is, such as its job. They are kept with the target and not merged into its series.
	Labels metric.Labels
	// Limits lowers those of the options; 0 leaves one as it is.
	Limits Limits
	// Relabel changes or refuses a series when it first appears; nil takes all as they are. It gets the name of
	// the sample and the labels of the series, without le and quantile, so that a histogram stays whole; false
	// drops the lines, which are counted as filtered.
	Relabel func(name string, labels metric.Labels) (string, metric.Labels, bool)
	// Source polls the target in place of a request for an exposition; nil is that request. Kind names it in
	// outputs ("triton"), "" being "prometheus". URL is then only what outputs show, and is not dialled.
	Source Source
	Kind   string
	Shown  string // URL as outputs show it; "" redacts it
}

// secretKey matches the query parameters whose value no output may show.
var secretKey = regexp.MustCompile(`(?i)token|key|secret|passw|pwd|auth|sig|credential|session|jwt`)

// Source is a target that is no exposition, such as the statistics extension of Triton. Poll makes one poll: it
// fills in how it went and what it brought, with times from now, which is the run's axis. It is called from one
// goroutine, one poll after the other. It returns soon after ctx is done, with the outcome Timeout when the
// error of ctx is its deadline and Cancelled otherwise. What s receives stays valid until the next Poll.
// Whoever gave the source closes what it holds when the run has ended.
type Source interface {
	Poll(ctx context.Context, now func() int64, s *metric.Snapshot)
}

// ParseTarget reads [NAME=]ADDRESS as the command line has it. Without a scheme an address is http; a path that
// does not end in /metrics gets it appended, and a query survives. A target of one of kinds comes back with its
// Kind and with its address as URL; the caller sets Source.
func ParseTarget(arg string, kinds ...source.Kind) (Target, error) {
	name, address, err := cutName(strings.TrimSpace(arg))
	if err != nil {
		return Target{}, err
	}
	t := Target{Name: name}
	for _, k := range kinds {
		if k.Has(address) {
			return t.ofKind(k, address)
		}
	}
	switch scheme, _, ok := strings.Cut(address, "://"); {
	case address == "":
		return Target{}, fmt.Errorf("parse target %q: address is empty, want [NAME=]host:port, a URL, or unix:///path.sock",
			metric.Clean(arg, 80))
	case ok && strings.EqualFold(scheme, "unix"):
		t.URL, err = unixURL(address)
	case ok && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
		return Target{}, fmt.Errorf("parse target: scheme %q is not known, want http, https or unix",
			metric.Clean(scheme, 40))
	case ok:
		t.URL, err = httpURL(address)
	default:
		t.URL, err = httpURL("http://" + address)
	}
	if err != nil {
		return Target{}, fmt.Errorf("parse target: %w", err)
	}
	return t, nil
}

func (t Target) ofKind(k source.Kind, address string) (Target, error) {
	t.Kind, t.URL = k.Name, address
	if k.Check != nil {
		if err := k.Check(address); err != nil {
			return Target{}, fmt.Errorf("parse target: %w", err)
		}
	}
	if k.Show != nil {
		t.Shown = k.Show(address)
	}
	return t, nil
}

// cutName splits NAME= off. A name holds none of the bytes that an address has
// before a '=' of its own, which stands in a query or in userinfo.
func cutName(arg string) (name, address string, err error) {
	name, address, ok := strings.Cut(arg, "=")
	if !ok || strings.ContainsAny(name, ":/?#@[]") {
		return "", arg, nil
	}
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", "", fmt.Errorf("parse target: name %q before '=' is empty, too long or not printable",
			metric.Clean(name, 80))
	}
	return name, strings.TrimSpace(address), nil
}

func unixURL(address string) (string, error) {
	path := address[len("unix://"):]
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return "", fmt.Errorf("socket path %q is not absolute, want unix:///path/to.sock", metric.Clean(path, 80))
	}
	return "unix://" + path, nil
}

func httpURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of url.Parse repeats the address with its secrets.
		return "", errors.New("address is no URL, want host:port or http://host:port/path; an IPv6 address needs brackets")
	}
	if err := checkHost(u); err != nil {
		return "", err
	}
	u.Fragment, u.RawFragment = "", "" // never sent
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	if !strings.HasSuffix(u.Path, "/metrics") {
		u.Path += "/metrics"
		if u.RawPath != "" {
			u.RawPath += "/metrics"
		}
	}
	return u.String(), nil
}

func checkHost(u *url.URL) error {
	host, port := u.Hostname(), u.Port()
	switch {
	case host == "":
		return errors.New("address has no host, want host:port")
	case strings.Contains(host, ":") && net.ParseIP(strings.SplitN(host, "%", 2)[0]) == nil:
		return fmt.Errorf("host %q is no IPv6 address", metric.Clean(host, 80))
	case strings.ContainsAny(host, " \t\"<>\\^`{|}"):
		return fmt.Errorf("host %q has a byte that no host name has", metric.Clean(host, 80))
	case strings.HasSuffix(u.Host, ":"):
		return fmt.Errorf("port of %q is empty", metric.Clean(u.Host, 80))
	case port != "":
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %q is not in 1 to 65535", metric.Clean(port, 20))
		}
	}
	return nil
}

// Public returns the target as outputs may show it: without userinfo, and with
// the values of query parameters that look like secrets replaced.
func (t Target) Public() metric.Target {
	return metric.Target{Name: t.Name, URL: t.String(), Source: cmp.Or(t.Kind, "prometheus"), Labels: t.Labels}
}

// Close closes what Source and RoundTripper hold, if they can be closed.
func (t Target) Close() {
	if c, ok := t.Source.(io.Closer); ok {
		c.Close() // what was read is recorded: there is nothing to lose
	}
	if c, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// String returns the redacted URL, so that no log line shows a secret.
func (t Target) String() string {
	return cmp.Or(t.Shown, redact(t.URL))
}

func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "invalid address"
	}
	u.User = nil
	u.RawQuery = redactQuery(u.RawQuery)
	return metric.Clean(u.String(), 1024)
}

// redactQuery keeps order and spelling of all that is not secret.
func redactQuery(raw string) string {
	if raw == "" {
		return ""
	}
	parts := strings.Split(raw, "&")
	for i, p := range parts {
		key, _, ok := strings.Cut(p, "=")
		plain, err := url.QueryUnescape(key)
		if ok && (err != nil || secretKey.MatchString(plain)) {
			parts[i] = key + "=xxxxx"
		}
	}
	return strings.Join(parts, "&")
}

// secrets returns the texts that no message about this target may contain, and the credentials among them, which
// nothing that the target sends may repeat either. A tenant or a user name is no credential: a label may well be
// called the same.
func (t Target) secrets() (all, credentials []string) {
	add := func(s string, credential bool) {
		if len(s) >= 4 {
			all = append(all, s)
		}
		if credential && len(s) >= 8 {
			credentials = append(credentials, s)
		}
	}
	for name, values := range t.Header {
		credential := secretKey.MatchString(name) || http.CanonicalHeaderKey(name) == "Cookie"
		for _, v := range values {
			add(v, credential)
			if _, token, ok := strings.Cut(v, " "); ok {
				add(token, credential)
			}
		}
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return all, credentials
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add(password, true)
		add(u.User.Username(), false)
	}
	for key, values := range u.Query() {
		for _, v := range values {
			if secretKey.MatchString(key) {
				add(v, true)
			}
		}
	}
	return all, credentials
}
