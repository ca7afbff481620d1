package discover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// addSources makes the discovery of a job.
func (j *job) addSources(d *Discoverer) error {
	for _, c := range j.c.Static {
		g := group{labels: c.Labels}
		for _, t := range c.Targets {
			g.targets = append(g.targets, map[string]string{model.AddressLabel: t})
		}
		j.sources = append(j.sources, &source{kind: "static_configs", every: 100 * 365 * 24 * time.Hour,
			poll: func(context.Context) ([]group, error) { return []group{g}, nil }})
	}
	for _, c := range j.c.Files {
		if len(c.Files) == 0 {
			return errors.New("file_sd_configs: files is missing")
		}
		f := &fileSource{patterns: c.Files, dir: j.dir(), read: map[string]readFile{}, warn: d.warn}
		j.sources = append(j.sources, &source{kind: "file_sd", guarded: true, poll: f.poll})
	}
	for _, c := range j.c.HTTP {
		s, err := newHTTPSource(d, c)
		if err != nil {
			return fmt.Errorf("http_sd_configs: %w", err)
		}
		j.sources = append(j.sources, s)
	}
	for _, c := range j.c.DNS {
		s, err := newDNSSource(d, c)
		if err != nil {
			return fmt.Errorf("dns_sd_configs: %w", err)
		}
		j.sources = append(j.sources, s)
	}
	for i := range j.c.Kubernetes {
		s, err := d.newKubernetesSource(j, &j.c.Kubernetes[i])
		if err != nil {
			return fmt.Errorf("kubernetes_sd_configs: %w", err)
		}
		if s != nil {
			j.sources = append(j.sources, s)
		}
	}
	return nil
}

// fileSource reads target files again when they have changed.
type fileSource struct {
	patterns []string
	dir      string
	read     map[string]readFile
	warn     func(...metric.Warning)
}

type readFile struct {
	mtime  time.Time
	size   int64
	groups []group
}

// maxFiles bounds how many files the patterns of one file_sd may match.
const maxFiles = 1000

// poll implements the poll of a source. A file that cannot be read or
// understood keeps what it said before; one that is gone has no targets.
func (f *fileSource) poll(context.Context) ([]group, error) {
	var out []group
	var bad error
	seen := map[string]bool{}
	for _, pattern := range f.patterns {
		names, err := filepath.Glob(config.JoinDir(f.dir, pattern))
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if len(names) == 0 && !strings.ContainsAny(pattern, "*?[") {
			bad = cmp.Or(bad, fmt.Errorf("read %s: no such file; it is looked for again", config.JoinDir(f.dir, pattern)))
		}
		for _, name := range names[:min(len(names), maxFiles)] {
			if seen[name] {
				continue
			}
			seen[name] = true
			groups, err := f.file(name)
			out, bad = append(out, groups...), cmp.Or(bad, err)
		}
	}
	for name := range f.read {
		if !seen[name] {
			delete(f.read, name)
		}
	}
	return out, partly(bad)
}

// partlyError is a failure of a part: what was found besides counts.
type partlyError struct{ error }

func partly(err error) error {
	if err == nil {
		return nil
	}
	return partlyError{err}
}

// file returns the groups of one file.
func (f *fileSource) file(name string) ([]group, error) {
	info, err := os.Stat(name)
	old, known := f.read[name]
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && known && info.ModTime().Equal(old.mtime) && info.Size() == old.size {
		return old.groups, nil
	}
	var data []byte
	if err == nil {
		data, err = readLimited(name)
	}
	var groups []group
	if err == nil {
		groups, err = parseGroups(data, strings.HasSuffix(name, ".json"))
	}
	if err != nil {
		return old.groups, fmt.Errorf("read %s: %w", name, err)
	}
	for i := range groups {
		groups[i].labels["__meta_filepath"] = name
	}
	f.warn(WarnWorldWritable(name)...)
	f.read[name] = readFile{info.ModTime(), info.Size(), groups}
	return groups, nil
}

// parseGroups reads the list of target groups of file_sd and http_sd.
func parseGroups(data []byte, isJSON bool) ([]group, error) {
	var list []staticConfig
	var err error
	if isJSON {
		err = json.Unmarshal(data, &list)
	} else {
		err = yaml.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("no list of targets and labels: %s", yamlText(err))
	}
	var out []group
	n := 0
	for _, c := range list {
		g := group{labels: map[string]string{}}
		maps.Copy(g.labels, c.Labels)
		for _, t := range c.Targets {
			if n++; n > maxTargets {
				return nil, fmt.Errorf("more than %d targets", maxTargets)
			}
			g.targets = append(g.targets, map[string]string{model.AddressLabel: t})
		}
		out = append(out, g)
	}
	return out, nil
}

// asker gets documents of a discovery server.
type asker struct {
	http *http.Client
}

func newAsker(c *Client) asker {
	return asker{&http.Client{Transport: c, CheckRedirect: refuseRedirect, Timeout: 10 * time.Second}}
}

// maxAnswer bounds the answer of a discovery server.
const maxAnswer = 32 << 20

// statusError is an answer that is none.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	return "status " + strconv.Itoa(e.status) + "; the answer begins " + strconv.Quote(e.text)
}

// get returns the body of a successful answer.
func (a asker) get(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address is no URL")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "scrapestat")
	resp, err := a.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", r.URL.Host, metric.WithoutURL(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer of %s: %w", r.URL.Host, err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("answer of %s is larger than %d MiB", r.URL.Host, maxAnswer>>20)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("ask %s: %w", r.URL.Host,
			&statusError{resp.StatusCode, metric.Clean(string(data[:min(len(data), 200)]), maxMessage)})
	}
	return data, nil
}

func newHTTPSource(d *Discoverer, c httpSD) (*source, error) {
	if !strings.HasPrefix(c.URL, "http://") && !strings.HasPrefix(c.URL, "https://") {
		return nil, errors.New("url is missing, or neither http nor https")
	}
	client, err := d.keep(newClient(c.Client, "", reach{}, scrape.Limits{}))
	if err != nil {
		return nil, err
	}
	a := newAsker(client)
	every := cmp.Or(time.Duration(c.RefreshInterval), defaultRefresh)
	return &source{kind: "http_sd", guarded: true, wary: !d.o.TrustDiscovery, every: every, client: client,
		poll: func(ctx context.Context) ([]group, error) {
			data, err := a.get(ctx, c.URL)
			if err != nil {
				return nil, err
			}
			groups, err := parseGroups(bytes.TrimSpace(data), true)
			for i := range groups {
				groups[i].labels["__meta_url"] = c.URL
			}
			return groups, err
		}}, nil
}

func newDNSSource(d *Discoverer, c dnsSD) (*source, error) {
	fill(&c.Type, "SRV")
	c.Type = strings.ToUpper(c.Type)
	switch {
	case len(c.Names) == 0:
		return nil, errors.New("names is missing")
	case !slices.Contains([]string{"A", "AAAA", "SRV"}, c.Type):
		return nil, fmt.Errorf("type %q is not supported, want A, AAAA or SRV", c.Type)
	case c.Type != "SRV" && (c.Port < 1 || c.Port > 65535):
		return nil, fmt.Errorf("port is missing: type %s needs one", c.Type)
	}
	resolver := d.o.Resolver
	if resolver == nil {
		resolver = systemResolver{}
	}
	every := cmp.Or(time.Duration(c.RefreshInterval), defaultRefresh)
	return &source{kind: "dns_sd", guarded: true, every: every, poll: func(ctx context.Context) ([]group, error) {
		var out []group
		for _, name := range c.Names {
			g, err := askDNS(ctx, resolver, c, name)
			if err != nil {
				return nil, err
			}
			out = append(out, g)
		}
		return out, nil
	}}, nil
}

// askDNS makes the targets of one name.
func askDNS(ctx context.Context, resolver Resolver, c dnsSD, name string) (group, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	g := group{labels: map[string]string{"__meta_dns_name": name}}
	if c.Type == "SRV" {
		list, err := resolver.LookupSRV(ctx, name)
		if err != nil {
			return g, fmt.Errorf("resolve %s: %w", name, err)
		}
		for _, s := range list {
			host := strings.TrimRight(s.Host, ".")
			g.targets = append(g.targets, map[string]string{model.AddressLabel: net.JoinHostPort(host,
				strconv.Itoa(int(s.Port))),
				"__meta_dns_srv_record_target": s.Host, "__meta_dns_srv_record_port": strconv.Itoa(int(s.Port))})
		}
		return g, nil
	}
	network := map[string]string{"A": "ip4", "AAAA": "ip6"}[c.Type]
	list, err := resolver.LookupIP(ctx, network, name)
	if err != nil {
		return g, fmt.Errorf("resolve %s: %w", name, err)
	}
	for _, ip := range list {
		g.targets = append(g.targets, map[string]string{model.AddressLabel: net.JoinHostPort(ip, strconv.Itoa(c.Port))})
	}
	return g, nil
}

// systemResolver asks as the system is configured.
type systemResolver struct{}

func (systemResolver) LookupIP(ctx context.Context, network, host string) ([]string, error) {
	list, err := net.DefaultResolver.LookupIP(ctx, network, host)
	var out []string
	for _, ip := range list {
		out = append(out, ip.String())
	}
	return out, err
}

func (systemResolver) LookupSRV(ctx context.Context, name string) ([]Service, error) {
	_, list, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
	var out []Service
	for _, s := range list {
		out = append(out, Service{s.Target, s.Port})
	}
	return out, err
}
