package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// job is one of scrape_configs, with the clients of its targets.
type job struct {
	name    string
	c       *parsedJob
	sources []*source
	clients map[reach]*Client
	told    bool // that listed hosts do not get the credentials
	relabel func(string, metric.Labels) (string, metric.Labels, bool)
}

// source is one discovery of a job.
type source struct {
	kind    string // "file_sd"
	guarded bool   // its targets were not named by the user
	wary    bool   // the credentials of the job go only to hosts that it names
	every   time.Duration
	due     time.Time
	client  *Client // that asks; nil when there is none
	poll    func(ctx context.Context) ([]group, error)
	groups  []group
}

// group is targets with labels that all of them have.
type group struct {
	targets []map[string]string
	labels  map[string]string
}

func (d *Discoverer) newJob(c *parsedJob) (*job, error) {
	j := &job{name: c.JobName, c: c, clients: map[reach]*Client{}}
	if len(c.MetricRelabel) > 0 {
		j.relabel = metricRelabel(c.MetricRelabel)
		d.warnBounds(c)
	}
	if c.Client.TLSConfig.InsecureSkipVerify {
		d.warnf("tls_not_verified", "certificates of job %q were not verified (insecure_skip_verify): anybody in between "+
			"could have answered", j.name)
	}
	d.warn(openFile(c.Client.TLSConfig.KeyFile)...)
	if _, err := scrape.AcceptHeader(c.ScrapeProtocols); err != nil {
		return nil, fmt.Errorf("scrape_protocols: %w", err)
	}
	if _, err := j.client(d, reach{}); err != nil { // so that a missing file is told now
		return nil, err
	}
	return j, j.addSources(d)
}

// dir is the folder that relative paths count from.
func (j *job) dir() string { return filepath.Dir(j.c.file) }

// warnBounds names rules that look at bounds, which they do not get to see.
func (d *Discoverer) warnBounds(c *parsedJob) {
	for i, r := range c.MetricRelabel {
		if slices.Contains(r.SourceLabels, "le") || slices.Contains(r.SourceLabels, "quantile") {
			d.warnf("config_not_understood", "%s: metric_relabel_configs rule %d looks at le or quantile: rules see a "+
				"histogram as a whole, so these labels are empty to it", c.where(), i+1)
		}
	}
}

// client returns the client of targets that are reached in the same way.
func (j *job) client(d *Discoverer, to reach) (*Client, error) {
	if c := j.clients[to]; c != nil {
		return c, nil
	}
	settings := j.c.Client
	if to.bare {
		settings, _ = withoutCredentials(settings)
	}
	c, err := d.keep(newClient(settings, "", to, d.o.Limits))
	if err == nil {
		j.clients[to] = c
	}
	return c, err
}

// metricRelabel makes the hook that relabels a new series.
func metricRelabel(rules []*relabel.Config) func(string, metric.Labels) (string, metric.Labels, bool) {
	return func(name string, l metric.Labels) (string, metric.Labels, bool) {
		b := labels.NewBuilder(labels.EmptyLabels())
		for n, v := range l.All() {
			b.Set(n, v)
		}
		b.Set(model.MetricNameLabel, name)
		if !relabel.ProcessBuilder(b, rules...) {
			return "", metric.Labels{}, false
		}
		name = b.Get(model.MetricNameLabel)
		return name, ourLabels(b.Labels(), model.MetricNameLabel), true
	}
}

// ourLabels converts labels, without one.
func ourLabels(l labels.Labels, without string) metric.Labels {
	var pairs []metric.Label
	l.Range(func(x labels.Label) {
		if x.Name != without {
			pairs = append(pairs, metric.Label{Name: x.Name, Value: x.Value})
		}
	})
	return metric.NewLabels(pairs...)
}

// targets makes the targets of a group.
func (j *job) targets(d *Discoverer, s *source, g *group) []Found {
	var out []Found
	for _, own := range g.targets {
		f, ok, err := j.target(d, s, g.labels, own)
		if err != nil {
			d.warnf("target_refused", "%s of job %q: target %q: %v", s.kind, j.name, own[model.AddressLabel], err)
		} else if ok {
			out = append(out, f)
		}
	}
	return out
}

// target relabels one target, in the order in which Prometheus does it (scrape.PopulateLabels): the job's own labels
// where there are none, the rules, then the address, and the default of instance at the end.
func (j *job) target(d *Discoverer, s *source, shared, own map[string]string) (Found, bool, error) {
	b := labels.NewBuilder(labels.EmptyLabels())
	for n, v := range shared {
		b.Set(n, v)
	}
	for n, v := range own {
		b.Set(n, v)
	}
	for n, v := range j.defaultLabels(d) {
		if b.Get(n) == "" {
			b.Set(n, v)
		}
	}
	if !relabel.ProcessBuilder(b, j.c.Relabel...) {
		return Found{}, false, nil
	}
	address := b.Get(model.AddressLabel)
	if address == "" {
		return Found{}, false, errors.New("it has no address")
	}
	if !d.o.Shard.has(b.Get) {
		return Found{}, false, nil
	}
	if b.Get(model.InstanceLabel) == "" {
		b.Set(model.InstanceLabel, address)
	}
	t, err := j.scrapeTarget(d, s, b)
	if err != nil {
		return Found{}, false, err
	}
	final := labels.NewBuilder(labels.EmptyLabels())
	b.Labels().Range(func(l labels.Label) {
		if !strings.HasPrefix(l.Name, model.ReservedLabelPrefix) {
			final.Set(l.Name, l.Value)
		}
	})
	t.Labels = ourLabels(final.Labels(), "")
	if instance := b.Get(model.InstanceLabel); instance != address && len(instance) <= 128 {
		t.Name = metric.Clean(instance, maxMessage)
	}
	return Found{ID: t.Labels.String() + " " + t.URL, Target: t, Reason: "listed by " + s.kind + " of job " + j.name},
		true, nil
}

// defaultLabels are those of a target before relabelling.
func (j *job) defaultLabels(d *Discoverer) map[string]string {
	interval := cmp.Or(d.o.Interval, time.Duration(j.c.ScrapeInterval), d.o.DefaultInterval)
	timeout := cmp.Or(d.o.Timeout, time.Duration(j.c.ScrapeTimeout))
	m := map[string]string{
		model.JobLabel:            j.name,
		model.SchemeLabel:         j.c.Scheme,
		model.MetricsPathLabel:    j.c.MetricsPath,
		model.ScrapeIntervalLabel: durationText(interval),
		model.ScrapeTimeoutLabel:  durationText(timeout),
	}
	for k, v := range j.c.Params {
		if len(v) > 0 {
			m[model.ParamLabelPrefix+k] = v[0]
		}
	}
	return m
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return model.Duration(d).String()
}

// scrapeTarget turns relabelled labels into what is polled.
func (j *job) scrapeTarget(d *Discoverer, s *source, b *labels.Builder) (scrape.Target, error) {
	t := scrape.Target{Protocols: j.c.ScrapeProtocols, Relabel: j.relabel, Limits: scrape.Limits{
		Body: int64(j.c.BodySizeLimit), Samples: j.c.SampleLimit, Labels: j.c.LabelLimit,
		NameLength: j.c.LabelNameLimit, ValueLength: j.c.LabelValueLimit}}
	var err error
	if t.Interval, err = j.interval(d, s, b.Get(model.ScrapeIntervalLabel)); err != nil {
		return t, fmt.Errorf("scrape_interval: %w", err)
	}
	if t.Timeout, err = labelDuration(b.Get(model.ScrapeTimeoutLabel), time.Millisecond, time.Minute); err != nil {
		return t, fmt.Errorf("scrape_timeout: %w", err)
	}
	to := reach{guarded: s.guarded}
	if t.URL, err = j.url(b, &to); err != nil {
		return t, err
	}
	if to.bare = s.wary && !j.mayKnow(t.URL); to.bare {
		j.withhold(d, s, t.URL)
	}
	c, err := j.client(d, to)
	if err != nil {
		return t, err
	}
	t.RoundTripper, t.Redact = c, c.Redact
	return t, nil
}

// labelDuration reads a duration; "" is 0, which is the collector's own.
func labelDuration(text string, least, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if v := time.Duration(d); v < least || v > most {
		return 0, fmt.Errorf("%s is outside %s to %s", text, least, most)
	}
	return time.Duration(d), nil
}

// url makes the address of a target from its labels.
func (j *job) url(b *labels.Builder, to *reach) (string, error) {
	address := b.Get(model.AddressLabel)
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		if to.guarded || !strings.HasPrefix(path, "/") {
			return "", errors.New("a socket must be an absolute path in static_configs")
		}
		to.socket = path
		return address, nil
	}
	scheme := b.Get(model.SchemeLabel)
	if scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("scheme %q is not known", scheme)
	}
	if err := checkAddress(address, to.guarded); err != nil {
		return "", err
	}
	q := url.Values{}
	for k, v := range j.c.Params {
		q[k] = slices.Clone(v)
	}
	b.Range(func(l labels.Label) {
		if k, ok := strings.CutPrefix(l.Name, model.ParamLabelPrefix); ok {
			if len(q[k]) == 0 {
				q[k] = []string{""}
			}
			q[k][0] = l.Value
		}
	})
	u := url.URL{Scheme: scheme, Host: address, RawQuery: q.Encode()}
	path, query, _ := strings.Cut(b.Get(model.MetricsPathLabel), "?")
	if query != "" {
		u.RawQuery = strings.Trim(query+"&"+u.RawQuery, "&")
	}
	u.Path = "/" + strings.TrimPrefix(path, "/")
	if _, err := url.Parse(u.String()); err != nil { // the query of a path is as it was given
		return "", fmt.Errorf("%s %q is no path of a URL", model.MetricsPathLabel,
			metric.Clean(b.Get(model.MetricsPathLabel), 100))
	}
	return u.String(), nil
}

// checkAddress wants host, host:port or an IP address.
func checkAddress(address string, guarded bool) error {
	if strings.ContainsAny(address, "/?#@\\ \t\r\n\"<>%") || len(address) > 512 {
		return errors.New("the address is not host:port")
	}
	u, err := url.Parse("http://" + address)
	if err != nil || u.Hostname() == "" {
		return errors.New("the address is not host:port; an IPv6 address needs brackets")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && guarded {
		return guard(net.JoinHostPort(ip.String(), "80"))
	}
	return nil
}
