package triton

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// address is what a target address says.
type address struct {
	grpc, tls      bool
	host           string // with port
	prefix         string // path before /v2, of a gateway
	user           *url.Userinfo
	model, version string
}

// parseAddress reads triton+http://host[:port][?model=M&version=V] and its
// variants. An error never repeats the address, which may hold a password.
func parseAddress(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return address{}, errors.New("address is no URL, want triton+http://host:8000 or triton+grpc://host:8001")
	}
	a := address{user: u.User}
	switch strings.ToLower(u.Scheme) {
	case "triton+http":
	case "triton+https", "tritons+http", "tritons+https":
		a.tls = true
	case "triton+grpc":
		a.grpc = true
	case "triton+grpcs", "tritons+grpc", "tritons+grpcs":
		a.grpc, a.tls = true, true
	default:
		return address{}, fmt.Errorf("scheme %q is not known, want triton+http, triton+https, triton+grpc or triton+grpcs",
			metric.Clean(u.Scheme, 40))
	}
	port := u.Port()
	if port == "" {
		if port = "8000"; a.grpc {
			port = "8001"
		}
	}
	if u.Hostname() == "" {
		return address{}, errors.New("address has no host, want triton+http://host:8000")
	}
	a.host = net.JoinHostPort(u.Hostname(), port)
	a.prefix = strings.TrimRight(u.EscapedPath(), "/")
	if a.grpc && a.prefix != "" {
		return address{}, errors.New("a gRPC address has no path, want triton+grpc://host:8001")
	}
	return a, a.parseQuery(u.RawQuery)
}

func (a *address) parseQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return errors.New("query of the address is damaged, want ?model=M&version=V")
	}
	for name, values := range query {
		if len(values) != 1 || values[0] == "" {
			return fmt.Errorf("parameter %q wants one value", metric.Clean(name, 40))
		}
		switch name {
		case "model":
			a.model = values[0]
		case "version":
			a.version = values[0]
		default:
			return fmt.Errorf("parameter %q is not known, want model and version", metric.Clean(name, 40))
		}
	}
	if a.version != "" && a.model == "" {
		return errors.New("parameter version needs a model")
	}
	if strings.Trim(a.version, "0123456789") != "" {
		return fmt.Errorf("version %q is no number", metric.Clean(a.version, 40))
	}
	return nil
}

// statsURL is what is polled over HTTP.
func (a *address) statsURL() string { return a.modelURL(a.model, a.version, "stats") }

// baseURL is that of the server itself.
func (a *address) baseURL() string {
	if a.tls {
		return "https://" + a.host + a.prefix + "/v2"
	}
	return "http://" + a.host + a.prefix + "/v2"
}

// modelURL names a resource of a model; of all models when it is "".
func (a *address) modelURL(model, version, resource string) string {
	text := a.baseURL() + "/models"
	if model != "" {
		text += "/" + url.PathEscape(model)
	}
	if version != "" {
		text += "/versions/" + url.PathEscape(version)
	}
	return text + "/" + resource
}
