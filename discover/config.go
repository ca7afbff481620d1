package discover

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/metric"
)

// maxMessage bounds a message that repeats a text of others.
const maxMessage = 500

// maxConfig bounds a configuration or target file.
const maxConfig = 4 << 20

// fileConfig is what of a Prometheus configuration is understood.
type fileConfig[Job any] struct {
	Global            defaults `yaml:"global"`
	ScrapeConfigFiles []string `yaml:"scrape_config_files"`
	ScrapeConfigs     []Job    `yaml:"scrape_configs"`
}

// defaults are the settings of a job that the section global may give.
type defaults struct {
	ScrapeInterval  model.Duration `yaml:"scrape_interval"`
	ScrapeTimeout   model.Duration `yaml:"scrape_timeout"`
	ScrapeProtocols []string       `yaml:"scrape_protocols"`
	BodySizeLimit   byteSize       `yaml:"body_size_limit"`
	SampleLimit     int            `yaml:"sample_limit"`
	LabelLimit      int            `yaml:"label_limit"`
	LabelNameLimit  int            `yaml:"label_name_length_limit"`
	LabelValueLimit int            `yaml:"label_value_length_limit"`
}

// jobConfig is one of scrape_configs.
type jobConfig struct {
	defaults `yaml:",inline"`

	JobName         string     `yaml:"job_name"`
	MetricsPath     string     `yaml:"metrics_path"`
	Scheme          string     `yaml:"scheme"`
	Params          url.Values `yaml:"params"`
	HonorLabels     bool       `yaml:"honor_labels"`     // of no consequence: target labels are not merged
	HonorTimestamps *bool      `yaml:"honor_timestamps"` // of no consequence: the time of the scrape counts

	Static     []staticConfig `yaml:"static_configs"`
	Files      []fileSD       `yaml:"file_sd_configs"`
	HTTP       []httpSD       `yaml:"http_sd_configs"`
	DNS        []dnsSD        `yaml:"dns_sd_configs"`
	Kubernetes []kubernetesSD `yaml:"kubernetes_sd_configs"`

	// FollowHosts are hosts besides those of Static that may have the job's
	// credentials when http_sd lists them: our own key, which Prometheus refuses.
	FollowHosts []hostPattern `yaml:"follow_hosts"`

	Relabel       []*relabel.Config `yaml:"relabel_configs"`
	MetricRelabel []*relabel.Config `yaml:"metric_relabel_configs"`

	Client config.HTTPClientConfig `yaml:",inline"`
}

// UnmarshalYAML presets what an inlined HTTPClientConfig does not preset itself.
func (c *jobConfig) UnmarshalYAML(unmarshal func(any) error) error {
	*c = jobConfig{Client: config.DefaultHTTPClientConfig}
	type plain jobConfig
	return unmarshal((*plain)(c))
}

type staticConfig struct {
	Targets []string          `yaml:"targets" json:"targets"`
	Labels  map[string]string `yaml:"labels" json:"labels"`
}

type fileSD struct {
	Files           []string       `yaml:"files"`
	RefreshInterval model.Duration `yaml:"refresh_interval"`
}

type httpSD struct {
	URL             string         `yaml:"url"`
	RefreshInterval model.Duration `yaml:"refresh_interval"`

	Client config.HTTPClientConfig `yaml:",inline"`
}

func (c *httpSD) UnmarshalYAML(unmarshal func(any) error) error {
	*c = httpSD{Client: config.DefaultHTTPClientConfig}
	type plain httpSD
	return unmarshal((*plain)(c))
}

type dnsSD struct {
	Names           []string       `yaml:"names"`
	Type            string         `yaml:"type"`
	Port            int            `yaml:"port"`
	RefreshInterval model.Duration `yaml:"refresh_interval"`
}

type kubernetesSD struct {
	Role           string         `yaml:"role"`
	APIServer      string         `yaml:"api_server"`
	KubeconfigFile string         `yaml:"kubeconfig_file"`
	Namespaces     kubeNamespaces `yaml:"namespaces"`
	Selectors      []kubeSelector `yaml:"selectors"`

	Client config.HTTPClientConfig `yaml:",inline"`
}

type kubeNamespaces struct {
	OwnNamespace bool     `yaml:"own_namespace"`
	Names        []string `yaml:"names"`
}

type kubeSelector struct {
	Role  string `yaml:"role"`
	Label string `yaml:"label"`
	Field string `yaml:"field"`
}

func (c *kubernetesSD) UnmarshalYAML(unmarshal func(any) error) error {
	*c = kubernetesSD{Client: config.DefaultHTTPClientConfig}
	type plain kubernetesSD
	return unmarshal((*plain)(c))
}

// byteSize is a number of bytes with an optional unit, which is binary as in Prometheus: 10MB is 10 MiB.
type byteSize int64

func (b *byteSize) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err != nil {
		return err
	}
	n, err := parseByteSize(text)
	*b = byteSize(n)
	return err
}

func parseByteSize(text string) (int64, error) {
	number := strings.TrimRight(text, "KMGTPEiB")
	unit := strings.Replace(text[len(number):], "i", "", 1)
	shift := map[string]int{"": 0, "B": 0, "KB": 10, "MB": 20, "GB": 30, "TB": 40, "PB": 50, "EB": 60}
	n, err := strconv.ParseInt(number, 10, 64)
	s, ok := shift[unit]
	if err != nil || !ok || n < 0 || n > (1<<62)>>s {
		return 0, &yaml.TypeError{Errors: []string{fmt.Sprintf("%q is no size, want for example 64MB", text)}}
	}
	return n << s, nil
}

// readLimited reads a file that somebody else may have written.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() || info.Mode()&os.ModeDevice != 0 {
		return nil, fmt.Errorf("%s is no file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxConfig>>20)
	}
	return data, err
}

// parsed is a configuration that was read.
type parsed struct {
	jobs     []*parsedJob
	warnings []metric.Warning
}

type parsedJob struct {
	jobConfig
	file string
	line int
}

// where is how messages name a job.
func (j *parsedJob) where() string {
	return fmt.Sprintf("%s:%d: job %q", j.file, j.line, j.JobName)
}

// parseConfig reads a configuration and the files it includes.
func parseConfig(path string) (*parsed, error) {
	data, err := readLimited(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, data, true)
}

// parse reads the text of a configuration; path names it and is what relative paths in it are relative to.
func parse(path string, data []byte, include bool) (*parsed, error) {
	p := &parsed{warnings: WarnWorldWritable(path)}
	var f fileConfig[yaml.Node]
	if err := yaml.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("read configuration %s: %s", path, yamlText(err))
	}
	p.listUnknown(path, data)
	for i := range f.ScrapeConfigs {
		n := &f.ScrapeConfigs[i]
		j := &parsedJob{file: path, line: n.Line}
		if err := n.Decode(&j.jobConfig); err != nil {
			return nil, fmt.Errorf("read configuration %s:%d: %s", path, n.Line, yamlText(err))
		}
		if err := j.complete(f.Global); err != nil {
			return nil, fmt.Errorf("read configuration %s: %w", j.where(), err)
		}
		p.jobs = append(p.jobs, j)
	}
	if !include {
		return p, p.checkNames()
	}
	for _, pattern := range f.ScrapeConfigFiles {
		if err := p.include(config.JoinDir(filepath.Dir(path), pattern), f.Global); err != nil {
			return nil, err
		}
	}
	return p, p.checkNames()
}

// include reads the files of scrape_config_files.
func (p *parsed) include(pattern string, global defaults) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("read scrape_config_files %q: %w", pattern, err)
	}
	if len(files) == 0 {
		p.warn("config_file_missing", "scrape_config_files %q: no such file", pattern)
	}
	for _, name := range files {
		data, err := readLimited(name)
		if err != nil {
			return fmt.Errorf("read configuration: %w", err)
		}
		q, err := parse(name, data, false)
		if err != nil {
			return err
		}
		for _, j := range q.jobs {
			j.inherit(global)
		}
		p.jobs, p.warnings = append(p.jobs, q.jobs...), append(p.warnings, q.warnings...)
	}
	return nil
}

func (p *parsed) checkNames() error {
	seen := map[string]*parsedJob{}
	for _, j := range p.jobs {
		if old := seen[j.JobName]; old != nil {
			return fmt.Errorf("read configuration %s: the job of %s:%d has the same name; rename one", j.where(), old.file,
				old.line)
		}
		seen[j.JobName] = j
	}
	return nil
}

func (p *parsed) warn(code, format string, args ...any) {
	p.warnings = append(p.warnings,
		metric.Warning{Code: code, Text: metric.Clean(fmt.Sprintf(format, args...), maxMessage)})
}

// unknownField is what the YAML library says about a key without a field.
var unknownField = regexp.MustCompile(`^line (\d+): field (.*) not found in type `)

// maxUnknown bounds how many keys are listed.
const maxUnknown = 100

// listUnknown warns of each key that is not understood.
func (p *parsed) listUnknown(path string, data []byte) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var f fileConfig[jobConfig]
	all, ok := errors.AsType[*yaml.TypeError](d.Decode(&f))
	if !ok {
		return
	}
	n := 0
	for _, e := range all.Errors {
		m := unknownField.FindStringSubmatch(e)
		if m == nil {
			continue
		}
		if n++; n > maxUnknown {
			p.warn("config_not_understood", "%s: more than %d keys are not understood; the rest is not listed", path, maxUnknown)
			return
		}
		if strings.HasSuffix(m[2], "_sd_configs") {
			p.warn("config_not_understood", "%s:%s: %s is not supported: its targets are not polled", path, m[1], m[2])
		} else {
			p.warn("config_not_understood", "%s:%s: %s is not used by scrapestat", path, m[1], m[2])
		}
	}
}

// yamlText is the first thing the YAML library says, without the value of the file, which may be a secret.
func yamlText(err error) string {
	text := err.Error()
	if all, ok := errors.AsType[*yaml.TypeError](err); ok && len(all.Errors) > 0 {
		text = all.Errors[0]
	}
	text, _, _ = strings.Cut(text, "\n")
	if i := strings.Index(text, "`"); i >= 0 {
		if j := strings.LastIndex(text, "`"); j > i {
			text = text[:i] + "the value" + text[j+1:]
		}
	}
	return metric.Clean(strings.TrimPrefix(text, "yaml: "), maxMessage)
}

// inherit takes over what the global section says and the job does not.
func (j *parsedJob) inherit(g defaults) {
	d := &j.defaults
	fill(&d.ScrapeInterval, g.ScrapeInterval)
	fill(&d.ScrapeTimeout, g.ScrapeTimeout)
	fill(&d.BodySizeLimit, g.BodySizeLimit)
	fill(&d.SampleLimit, g.SampleLimit)
	fill(&d.LabelLimit, g.LabelLimit)
	fill(&d.LabelNameLimit, g.LabelNameLimit)
	fill(&d.LabelValueLimit, g.LabelValueLimit)
	if len(d.ScrapeProtocols) == 0 {
		d.ScrapeProtocols = g.ScrapeProtocols
	}
}

func fill[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// complete fills in defaults and refuses what cannot work.
func (j *parsedJob) complete(g defaults) error {
	j.inherit(g)
	fill(&j.MetricsPath, "/metrics")
	fill(&j.Scheme, "http")
	switch {
	case j.JobName == "":
		return errors.New("job_name is missing")
	case j.Scheme != "http" && j.Scheme != "https":
		return fmt.Errorf("scheme %q is not known, want http or https", j.Scheme)
	}
	dir := filepath.Dir(j.file)
	for _, c := range j.clients() {
		c.SetDirectory(dir)
		if err := c.Validate(); err != nil {
			return err
		}
	}
	for _, list := range [][]*relabel.Config{j.Relabel, j.MetricRelabel} {
		for i, r := range list {
			if r == nil {
				return fmt.Errorf("relabel rule %d is empty", i+1)
			}
			if err := r.Validate(model.UTF8Validation); err != nil {
				return fmt.Errorf("relabel rule %d: %w", i+1, err)
			}
		}
	}
	return nil
}

// clients lists the HTTP settings of a job and of its discovery.
func (j *parsedJob) clients() []*config.HTTPClientConfig {
	out := []*config.HTTPClientConfig{&j.Client}
	for i := range j.HTTP {
		out = append(out, &j.HTTP[i].Client)
	}
	for i := range j.Kubernetes {
		out = append(out, &j.Kubernetes[i].Client)
	}
	return out
}
