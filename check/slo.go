package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/suggest"
)

// maxSLO bounds an SLO file, in bytes.
const maxSLO = 1 << 20

// sloFile is the YAML of an SLO file; unknown keys are errors.
type sloFile struct {
	Checks  []sloCheck `yaml:"checks"`
	Ready   []sloText  `yaml:"ready"`
	Targets []sloText  `yaml:"targets"`
}

// sloText is a text and where it stands.
type sloText struct {
	text string
	line int
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *sloText) UnmarshalYAML(n *yaml.Node) error {
	t.line = n.Line
	if err := n.Decode(&t.text); err != nil {
		return fmt.Errorf("line %d: want a text", n.Line)
	}
	return nil
}

// sloCheck is an expression, or the same in parts.
type sloCheck struct {
	line   int
	Name   string  `yaml:"name"`
	Check  string  `yaml:"check"`
	Metric string  `yaml:"metric"`
	Stat   string  `yaml:"stat"`
	By     *string `yaml:"by"`
	Min    string  `yaml:"min"`
	Max    string  `yaml:"max"`
}

var sloKeys = []string{"name", "check", "metric", "stat", "by", "min", "max"}

// UnmarshalYAML implements yaml.Unmarshaler: KnownFields of the decoder does not reach into types that decode
// themselves.
func (c *sloCheck) UnmarshalYAML(n *yaml.Node) error {
	c.line = n.Line
	if n.Kind == yaml.ScalarNode {
		c.Check = n.Value
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want an expression, or a map of %s", n.Line, strings.Join(sloKeys, ", "))
	}
	into := map[string]*string{"name": &c.Name, "check": &c.Check, "metric": &c.Metric, "stat": &c.Stat, "min": &c.Min,
		"max": &c.Max}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		to := into[key.Value]
		if key.Value == "by" {
			c.By = new(string)
			to = c.By
		}
		if to == nil {
			return fmt.Errorf("line %d: unknown key %q%s (known: %s)", key.Line, shorten(key.Value),
				suggest.Clause(key.Value, sloKeys), strings.Join(sloKeys, ", "))
		}
		if value.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: %s is no text", value.Line, key.Value)
		}
		*to = value.Value
	}
	return nil
}

// ReadSLO reads a file of checks:
//
//	checks:
//	  - vllm:num_preemptions total == 0
//	  - name: time to first token
//	    check: vllm:time_to_first_token_seconds p99 <= 450ms
//	  - metric: vllm:kv_cache_usage_perc
//	    stat: max
//	    max: 95%
//	ready: [resets, complete, concurrency=64]
//	targets: [qps=100, ttft_p99<=450ms]   # as requests validate takes them
//
// An unknown key, a check that cannot be parsed and an empty file are errors that name the line.
func ReadSLO(r io.Reader) (*Gate, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSLO+1))
	if err != nil {
		return nil, fmt.Errorf("read checks: %w", err)
	}
	if len(text) > maxSLO {
		return nil, fmt.Errorf("read checks: the file is longer than %d bytes", maxSLO)
	}
	var f sloFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read checks: %s (top-level keys: checks, ready, targets)",
			strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("read checks: there is a second document behind ---; put all checks into one")
	}
	g := &Gate{}
	for i := range f.Checks {
		ds, err := f.Checks[i].demands()
		if err != nil {
			return nil, fmt.Errorf("read checks: line %d: %w", f.Checks[i].line, err)
		}
		g.Demands = append(g.Demands, ds...)
	}
	for _, t := range f.Targets {
		ds, err := FromTargets([]string{t.text})
		if err != nil {
			return nil, fmt.Errorf("read checks: line %d: %w", t.line, err)
		}
		g.Demands = append(g.Demands, ds...)
	}
	for _, t := range f.Ready {
		r, err := ParseReady(t.text)
		if err != nil {
			return nil, fmt.Errorf("read checks: line %d: %w", t.line, err)
		}
		g.Ready = append(g.Ready, r)
	}
	if len(g.Demands)+len(g.Ready) == 0 {
		return nil, errors.New("read checks: there is none: want checks, ready or targets")
	}
	return g, nil
}

// demands are those of an entry: one, or two for min and max.
func (c *sloCheck) demands() (out []Assertion, err error) {
	texts := []string{c.Check}
	if c.Check == "" {
		if texts, err = c.spell(); err != nil {
			return nil, err
		}
	} else if c.Metric+c.Stat+c.Min+c.Max != "" || c.By != nil {
		return nil, errors.New("check is the whole expression: it does not go with metric, stat, by, min and max")
	}
	for _, text := range texts {
		d, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if d.Line = c.line; c.Name != "" {
			d.Name = c.Name
		}
		out = append(out, d)
	}
	if len(out) == 2 && !out[0].Want.Baseline && !out[1].Want.Baseline {
		low, high := out[0].Want, out[1].Want
		v, err := convert(low.Value, low.Unit, high.Unit)
		if err != nil {
			return nil, fmt.Errorf("min and max: %w", err)
		}
		if v > high.Value {
			return nil, fmt.Errorf("min %s is above max %s: nothing can keep both", c.Min, c.Max)
		}
	}
	return out, nil
}

// spell writes the expressions of an entry in parts.
func (c *sloCheck) spell() (texts []string, err error) {
	if c.Metric == "" || c.Min == "" && c.Max == "" {
		return nil, errors.New("want check, or metric with min or max")
	}
	head := c.Metric
	if c.By != nil {
		head += " by (" + *c.By + ")"
	}
	head += " " + c.Stat
	if c.Min != "" {
		texts = append(texts, head+" >= "+c.Min)
	}
	if c.Max != "" {
		texts = append(texts, head+" <= "+c.Max)
	}
	return texts, nil
}

// FromTargets turns the targets of events.ParseTargets, MLPerf's among them, into demands on requests. "=" keeps
// MLPerf's tolerance of 10 % of the larger of both.
func FromTargets(texts []string) (out []Assertion, err error) {
	targets, err := events.ParseTargets(texts)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		d := Assertion{Name: t.Text, Text: t.Text, From: FromRequests, Metric: t.Metric, Op: t.Op,
			Want: Limit{Value: t.Value}}
		if t.IsTime() {
			d.Want.Unit = "ns"
		}
		if t.Stat != "" {
			if d.Stat, err = targetStat(t.Stat); err != nil {
				return nil, fmt.Errorf("target %s: %w", t.Text, err)
			}
		}
		if d.Op == Equals {
			d.Tolerance = Margin{Value: events.DefaultTolerance, Percent: true}
		}
		out = append(out, d)
	}
	return out, nil
}

func targetStat(word string) (Stat, error) {
	s, ok, err := parseStat(word)
	if !ok && err == nil {
		if s, ok, err = parseStat("p" + word); !ok && err == nil {
			err = fmt.Errorf("unknown statistic %s", word)
		}
	}
	return s, err
}
