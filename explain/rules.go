package explain

import (
	_ "embed" // the rules as they come
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/suggest"
)

//go:embed rules.yaml
var embedded string

// DefaultText returns the rules as they come, in the form that Rules.Read takes.
func DefaultText() string { return embedded }

// Rules is what a result is judged by.
type Rules struct {
	Thresholds Thresholds
	Findings   map[string]Text // by id
	// Contributing are facts that may add to a cause, in the order in which they are told.
	Contributing []Contribution
}

// Text is what is told of a finding.
type Text struct {
	Says     string   `yaml:"says"`     // {share} stands for the share of requests or time
	Evidence []string `yaml:"evidence"` // canonical quantities of the catalog
	Try      string   `yaml:"try"`
}

// Thresholds are numbers of which rules.yaml tells the reasons. Shares are from 0 to 1.
type Thresholds struct {
	Few, Unexplained, KVFull, Pinned, Idle, Queue, Steps, Share, Prefill float64
	Cold, ColdLead, ColdRest, TailTimes, Tail, Interference, Stalls      float64
	BurstSpan, BurstRate, Loss, Abort, LossLeast, ClientBusy, ClientMost float64
}

// threshold is a field of Thresholds with its key and what it may be.
type threshold struct {
	key  string
	at   *float64
	most float64
}

func keys(list []threshold) (out []string) {
	for _, t := range list {
		out = append(out, t.key)
	}
	return out
}

// list returns the fields of t.
func (t *Thresholds) list() []threshold {
	many := 1e6
	return []threshold{{"few", &t.Few, many}, {"unexplained", &t.Unexplained, 1}, {"kv_full", &t.KVFull, 1},
		{"pinned", &t.Pinned, 1}, {"idle", &t.Idle, 1}, {"queue", &t.Queue, 1}, {"steps", &t.Steps, many},
		{"share", &t.Share, 1}, {"prefill", &t.Prefill, 1}, {"cold", &t.Cold, many}, {"cold_lead", &t.ColdLead, 1},
		{"cold_rest", &t.ColdRest, 1}, {"tail_times", &t.TailTimes, many}, {"tail", &t.Tail, 1},
		{"interference", &t.Interference, 1}, {"stalls", &t.Stalls, 1}, {"burst_span", &t.BurstSpan, 1},
		{"burst_rate", &t.BurstRate, many}, {"loss", &t.Loss, 1}, {"abort", &t.Abort, 1},
		{"loss_least", &t.LossLeast, many}, {"client_busy", &t.ClientBusy, 1}, {"client_most", &t.ClientMost, 1}}
}

// DefaultRules returns the rules as they come.
func DefaultRules() *Rules {
	r := &Rules{Findings: map[string]Text{}}
	if err := r.Read(strings.NewReader(embedded), catalog.Embedded()); err != nil {
		panic("explain: rules.yaml: " + err.Error()) // a mistake of this package, which its tests find
	}
	return r
}

// Names returns the ids of all findings, sorted, promoted facts among them. That of a queue of a stage stands for all.
func (r *Rules) Names() []string {
	names := slices.Collect(maps.Keys(r.Findings))
	for _, c := range r.Contributing {
		if c.Promote {
			names = append(names, c.ID)
		}
	}
	return slices.Sorted(slices.Values(names))
}

// Kind is the id of a finding without what it is of: stage_queue of stage_queue:1.
func Kind(id string) string {
	kind, _, _ := strings.Cut(id, ":")
	return kind
}

// Of returns what is told of a finding.
func (r *Rules) Of(id string) Text {
	if i := slices.IndexFunc(r.Contributing, func(c Contribution) bool { return c.ID == id }); i >= 0 {
		return Text{Says: r.Contributing[i].Says}
	}
	return r.Findings[Kind(id)]
}

// maxRules bounds a file of rules.
const maxRules = 1 << 20

// Read replaces keys of r by those of a YAML file, and adds contributing facts about quantities of a catalog. An error
// tells the line, and the nearest name of one that is not known; r is then of no further use.
func (r *Rules) Read(from io.Reader, c *catalog.Catalog) error {
	text, err := io.ReadAll(io.LimitReader(from, maxRules+1))
	if err != nil {
		return err
	}
	if len(text) > maxRules {
		return fmt.Errorf("a file of rules has at most %d bytes", maxRules)
	}
	var file struct {
		Thresholds   map[string]yaml.Node `yaml:"thresholds"`
		Findings     map[string]yaml.Node `yaml:"findings"`
		Contributing []yaml.Node          `yaml:"contributing"`
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errors.Join(r.readThresholds(file.Thresholds), r.readFindings(file.Findings),
		r.readContributing(file.Contributing, c))
}

func (r *Rules) readThresholds(nodes map[string]yaml.Node) error {
	known := r.Thresholds.list()
	return inOrder(nodes, func(key string, n *yaml.Node) error {
		i := slices.IndexFunc(known, func(t threshold) bool { return t.key == key })
		if i < 0 {
			return fmt.Errorf("line %d: no threshold is called %q%s", n.Line, key, suggest.Clause(key, keys(known)))
		}
		var v float64
		if err := n.Decode(&v); err != nil || !(v > 0 && v <= known[i].most) || math.IsInf(v, 0) {
			return fmt.Errorf("line %d: %s is a number above 0, at most %g", n.Line, key, known[i].most)
		}
		*known[i].at = v
		return nil
	})
}

func (r *Rules) readFindings(nodes map[string]yaml.Node) error {
	first := len(r.Findings) == 0
	return inOrder(nodes, func(key string, n *yaml.Node) error {
		old, ok := r.Findings[key]
		if !ok && !first {
			return fmt.Errorf("line %d: no finding is called %q%s", n.Line, key, suggest.Clause(key, r.Names()))
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if word := n.Content[i].Value; !slices.Contains([]string{"says", "evidence", "try"}, word) {
				return fmt.Errorf("line %d: a finding has says, evidence and try, not %q", n.Content[i].Line, word)
			}
		}
		if err := n.Decode(&old); err != nil {
			return err
		}
		r.Findings[key] = old
		return nil
	})
}

// inOrder calls f with each entry in the order of their lines, and joins its errors.
func inOrder(nodes map[string]yaml.Node, f func(key string, n *yaml.Node) error) error {
	keys := make([]string, 0, len(nodes))
	for k := range nodes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return nodes[a].Line - nodes[b].Line })
	var all error
	for _, k := range keys {
		n := nodes[k]
		all = errors.Join(all, f(k, &n))
	}
	return all
}
