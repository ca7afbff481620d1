package discover

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// leastInterval is the shortest interval that a discovery may ask for, unless the user's own is shorter.
const leastInterval = 100 * time.Millisecond

// hostPattern is a host, *.domain, or a prefix of addresses such as 10.0.0.0/8.
type hostPattern string

func (h *hostPattern) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err != nil {
		return err
	}
	*h = hostPattern(plainHost(text))
	_, noPrefix := netip.ParsePrefix(text)
	_, noAddress := netip.ParseAddr(text)
	if noPrefix != nil && noAddress != nil && (text == "" || strings.ContainsAny(text, "/:@[] ")) {
		return fmt.Errorf("follow_hosts: want a host without a port, *.domain or a prefix such as 10.0.0.0/8, not %q", text)
	}
	return nil
}

// plainHost is a host as hosts are compared.
func plainHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// has reports whether a host is one of those.
func (h hostPattern) has(host string) bool {
	if domain, ok := strings.CutPrefix(string(h), "*"); ok {
		return strings.HasPrefix(domain, ".") && strings.HasSuffix(host, domain)
	}
	prefix, err := netip.ParsePrefix(string(h))
	if a, notIP := netip.ParseAddr(host); err == nil && notIP == nil {
		return prefix.Contains(a.Unmap())
	}
	return host == string(h)
}

// mayKnow reports whether what the job sends to its targets may go to an address that its discovery names: to hosts of
// its static_configs and follow_hosts, and in the clear only when the job does so itself.
func (j *job) mayKnow(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "http" && j.c.Scheme != "http" {
		return false
	}
	host := plainHost(u.Hostname())
	for _, p := range j.c.FollowHosts {
		if p.has(host) {
			return true
		}
	}
	for _, c := range j.c.Static {
		for _, t := range c.Targets {
			if given, err := url.Parse("//" + t); err == nil && plainHost(given.Hostname()) == host {
				return true
			}
		}
	}
	return false
}

// withhold says once that listed hosts do not get the credentials of a job that has some.
func (j *job) withhold(d *Discoverer, s *source, address string) {
	if _, some := withoutCredentials(j.c.Client); !some || j.told {
		return
	}
	j.told = true
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	d.warnf("credentials_withheld", "%s of job %q lists %s, which the job does not name: targets like it are polled "+
		"without the credentials of the job; name them in static_configs or follow_hosts, or give --trust-discovery",
		s.kind, j.name, u.Host)
}

// withoutCredentials returns settings without what tells who is asking, and whether there was any of it.
func withoutCredentials(c config.HTTPClientConfig) (config.HTTPClientConfig, bool) {
	t := &c.TLSConfig
	some := c.Authorization != nil || c.BasicAuth != nil || c.OAuth2 != nil || c.HTTPHeaders != nil ||
		cmp.Or(t.Cert, t.CertFile, t.CertRef) != ""
	c.Authorization, c.BasicAuth, c.OAuth2, c.HTTPHeaders = nil, nil, nil, nil
	t.Cert, t.CertFile, t.CertRef, t.Key, t.KeyFile, t.KeyRef = "", "", "", "", "", ""
	return c, some
}

// interval reads the interval of a target; what a discovery asks for has a lower end.
func (j *job) interval(d *Discoverer, s *source, text string) (time.Duration, error) {
	v, err := labelDuration(text, time.Millisecond, 24*time.Hour)
	own, _ := labelDuration(j.defaultLabels(d)[model.ScrapeIntervalLabel], 0, 24*time.Hour)
	least := min(leastInterval, cmp.Or(own, leastInterval))
	if err != nil || v == 0 || v >= least || !s.guarded {
		return v, err
	}
	d.warnf("interval_raised", "%s of job %q asks for an interval below %s, which is used instead", s.kind, j.name, least)
	return least, nil
}
