package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// maxTargets bounds how many targets there may be at a time.
const maxTargets = 10_000

// defaultRefresh is the time between two questions to a server.
const defaultRefresh = 30 * time.Second

// Options adjusts a Discoverer. The zero value is what collect uses.
type Options struct {
	// Interval replaces every scrape_interval unless it is 0.
	Interval time.Duration
	// Timeout replaces every scrape_timeout unless it is 0.
	Timeout time.Duration
	// DefaultInterval is what relabelling sees where no scrape_interval is given.
	DefaultInterval time.Duration
	// Refresh replaces every refresh_interval unless it is 0. Without it files are
	// looked at by each Refresh, and servers asked every 30 s or as they say.
	Refresh time.Duration
	// Shard leaves out the targets of other shards.
	Shard Shard
	// TrustDiscovery sends the credentials of a job wherever http_sd says.
	TrustDiscovery bool
	// Limits bounds the connections to targets; the zero value has the collector's own.
	Limits scrape.Limits
	// Resolver answers dns_sd_configs; nil is that of the system.
	Resolver Resolver
	// ServiceAccount is the folder with the credentials of the pod this runs in; "" is where Kubernetes puts it.
	ServiceAccount string
}

// Resolver answers questions for addresses and services.
type Resolver interface {
	LookupIP(ctx context.Context, network, host string) ([]string, error)
	LookupSRV(ctx context.Context, name string) ([]Service, error)
}

// Service is one answer to a question for a service.
type Service struct {
	Host string
	Port uint16
}

// Found is a target and the source that lists it.
type Found struct {
	// ID tells targets apart and stays the same while one comes and goes: its labels and its URL.
	ID     string
	Target scrape.Target
	Reason string // "listed by file_sd of job vllm"
}

// Result is what a Refresh has found.
type Result struct {
	Targets  []Found          // sorted by ID
	Warnings []metric.Warning // what was not said before
}

// Refresh asks several discoverers, one after the other. A target that is among given too, or was
// found before, is left out.
func Refresh(ctx context.Context, given []scrape.Target, from []*Discoverer) Result {
	seen := map[string]bool{}
	for _, t := range given {
		seen[t.URL] = true
	}
	var out Result
	for _, d := range from {
		r := d.Refresh(ctx)
		out.Warnings = append(out.Warnings, r.Warnings...)
		for _, f := range r.Targets {
			if !seen[f.Target.URL] {
				seen[f.Target.URL] = true
				out.Targets = append(out.Targets, f)
			}
		}
	}
	return out
}

// Discoverer finds targets. One caller at a time may use it.
type Discoverer struct {
	o        Options
	jobs     []*job
	clients  []*Client
	said     map[string]bool
	warnings []metric.Warning
}

// Load reads a Prometheus configuration. Files of credentials that it names are read as well, to say now what is
// missing; targets come by Refresh. An error names file, line and job.
func Load(path string, o Options) (*Discoverer, error) {
	p, err := parseConfig(path)
	if err != nil {
		return nil, err
	}
	d := &Discoverer{o: o, said: map[string]bool{}}
	d.warn(p.warnings...)
	if len(p.jobs) == 0 {
		return nil, fmt.Errorf("read configuration %s: no scrape_configs in it; give targets as arguments instead", path)
	}
	for _, pj := range p.jobs {
		j, err := d.newJob(pj)
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("read configuration %s: %w", pj.where(), err)
		}
		d.jobs = append(d.jobs, j)
	}
	return d, nil
}

// warn keeps warnings for the next result, each text once.
func (d *Discoverer) warn(list ...metric.Warning) {
	for _, w := range list {
		if !d.said[w.Text] {
			d.said[w.Text] = true
			d.warnings = append(d.warnings, w)
		}
	}
}

func (d *Discoverer) warnf(code, format string, args ...any) {
	d.warn(metric.Warning{Code: code, Text: metric.Clean(fmt.Sprintf(format, args...), maxMessage)})
}

// Refresh asks the sources that are due and returns all targets there are. It
// returns soon after ctx is done, with what was known before.
func (d *Discoverer) Refresh(ctx context.Context) Result {
	now := time.Now()
	byURL, byID := map[string]*job{}, map[string]bool{}
	var r Result
	for _, j := range d.jobs {
		for _, s := range j.sources {
			d.ask(ctx, j, s, now)
			for i := range s.groups {
				for _, found := range j.targets(d, s, &s.groups[i]) {
					url := found.Target.URL
					switch other := byURL[url]; {
					case byID[found.ID]:
						continue // listed twice
					case other != nil:
						d.warnf("target_listed_twice", "%s is a target of job %q and of job %q; it is polled once, for the first",
							found.Target, other.name, j.name)
						continue
					case len(r.Targets) == maxTargets:
						d.warnf("too_many_targets", "more than %d targets; those beyond are not polled", maxTargets)
						continue
					}
					byURL[url], byID[found.ID] = j, true
					r.Targets = append(r.Targets, found)
				}
			}
		}
	}
	dropSharedNames(r.Targets)
	slices.SortFunc(r.Targets, func(a, b Found) int { return cmp.Compare(a.ID, b.ID) })
	r.Warnings, d.warnings = d.warnings, nil
	return r
}

// dropSharedNames leaves without a name what would not be told apart by it.
func dropSharedNames(list []Found) {
	count := map[string]int{}
	for _, f := range list {
		count[f.Target.Name]++
	}
	for i := range list {
		if count[list[i].Target.Name] > 1 {
			list[i].Target.Name = ""
		}
	}
}

// ask polls a source that is due. One that fails keeps what it had.
func (d *Discoverer) ask(ctx context.Context, j *job, s *source, now time.Time) {
	if now.Before(s.due) {
		return
	}
	groups, err := s.poll(ctx)
	if ctx.Err() != nil {
		return
	}
	s.due = now.Add(cmp.Or(d.o.Refresh, s.every))
	if err != nil {
		text := err.Error()
		if s.client != nil {
			text = s.client.Redact(text)
		}
		d.warnf("discovery_failed", "%s of job %q: %s; the targets it listed before are kept", s.kind, j.name, text)
		if _, some := errors.AsType[partlyError](err); !some {
			return
		}
	}
	s.groups = groups
}

// client makes a client that Close closes.
func (d *Discoverer) keep(c *Client, err error) (*Client, error) {
	if err == nil {
		d.clients = append(d.clients, c)
	}
	return c, err
}

// Close closes the connections of the discovery and of the targets it gave.
func (d *Discoverer) Close() {
	for _, c := range d.clients {
		c.CloseIdleConnections()
	}
}

// refuseRedirect lets a discovery server send us nowhere else.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
