package pack

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/catalog/quantity"
	"github.com/scrapestat/scrapestat/metric"
)

// Direction says which way a quantity gets better.
type Direction int8

// The directions. Neutral: neither way is better: a change is worth showing, but is no verdict.
const (
	Neutral Direction = iota
	HigherBetter
	LowerBetter
)

// String returns "neutral", "higher" or "lower", as files spell it.
func (d Direction) String() string { return quantity.WordOf(directionNames[:], int(d)) }

var directionNames = [...]string{"neutral", "higher", "lower"}

// Category is what a quantity helps to answer about a run.
type Category uint8

// The questions, in the order in which people ask them. Check is none of theirs: it checks whether the numbers of a
// server agree with each other.
const (
	Other Category = iota
	Throughput
	Latency
	Saturation
	TimeSpent
	Cache
	Errors
	Efficiency
	Check
)

var questionNames = [...]string{"other", "throughput", "latency", "saturation", "time_spent", "cache", "errors",
	"efficiency", "check"}

// String returns the question as exports spell it: "time_spent".
func (q Category) String() string { return quantity.WordOf(questionNames[:], int(q)) }

// Family is what is known of a family.
type Family struct {
	Engine string // "vllm"; "generic" for those of no engine
	// Name is the newest name, as recordings spell it: a counter has lost its "_total".
	Name string
	// Aliases are older and other spellings of it, with the prefixes of the engine, each without "_total" where it is a
	// counter.
	Aliases []string
	// Scales has the factor that brings values and bucket bounds of an alias to the unit of the family; none is 1.
	Scales map[string]float64
	// Implied has the labels that the name of an alias says: finished_reason of one that counts aborts only.
	Implied map[string][]metric.Label

	Meaning string
	Unit    string      // as package units names it; "" for none
	Type    metric.Type // that the family is, whatever the server declares; Unknown when it is to be believed
	Better  Direction
	// Moves is when its values move: "arrival", "step", "token", "finish" (of a request), "poll" (of the server itself),
	// "start" (constant), "age" (of the process: with the time) or "" when it is each event. Staleness is how old a value
	// can be because the server renews it at intervals; 0 for none.
	Moves     string
	Staleness time.Duration
	Aggregate quantity.Aggregate
	// Traffic is "yes" or "no" where the family tells of requests, or does not, against what Moves suggests; else "".
	Traffic string
	// Quality is what keeps numbers of it from being exact: one of Qualities, "" for nothing.
	Quality string
	// Scrapes reports whether it counts the scrapes of its own server too.
	Scrapes bool
	// Only are the labels of those series that are the whole, where others are parts of it: priority="".
	Only []metric.Label
	// Identity are the labels that say what a series is of, Volatile those that differ between two runs of the same;
	// other labels name replicas.
	Identity, Volatile []string
	// Kinds are labels that keep series apart here and make scopes in other families of the pack.
	Kinds []string
	// Canonical is the id of the quantity across engines: "ttft_s", "running"; "" for none.
	Canonical string
	// Above are levels of a gauge such that the time above them is worth knowing.
	Above []float64

	home, stem string // the engine and the name without prefix that formulas know it by
}

// familyIn is a family as a file spells it.
type familyIn struct {
	Name      string                       `yaml:"name"`
	Type      string                       `yaml:"type"`
	Same      []string                     `yaml:"same"` // aliases too
	Aliases   []string                     `yaml:"aliases"`
	Scales    map[string]float64           `yaml:"scales"`
	Implied   map[string]map[string]string `yaml:"implied"`
	Meaning   string                       `yaml:"meaning"`
	Unit      string                       `yaml:"unit"`
	Better    string                       `yaml:"better"`
	Moves     string                       `yaml:"moves"`
	Staleness string                       `yaml:"staleness"`
	Aggregate string                       `yaml:"aggregate"`
	Traffic   string                       `yaml:"traffic"`
	Quality   string                       `yaml:"quality"`
	Scrapes   bool                         `yaml:"scrapes"`
	Only      map[string]string            `yaml:"only"`
	Identity  []string                     `yaml:"identity"`
	Volatile  []string                     `yaml:"volatile"`
	Kinds     []string                     `yaml:"kinds"`
	Canonical string                       `yaml:"canonical"`
	Above     []float64                    `yaml:"above"`
}

// moves are the words for when values move.
func moves() []string {
	return []string{"", "arrival", "step", "token", "finish", "poll", "start", "age"}
}

// Qualities are the words for what keeps numbers of a family from being exact: it tells of the last event alone, or of
// all since the process began.
func Qualities() []string { return []string{"last_event", "lifetime"} }

// Pattern is names of families that need no meaning yet: they are known, and nothing is made of them.
type Pattern struct {
	Engine, Text, Meaning string
	matches               func(name string) bool
}

// matcher is a function that compiles a pattern when it is first asked.
func matcher(text string) func(string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(whole(text)) })
	return func(name string) bool { return compiled().MatchString(name) }
}

// whole is the regular expression of whole names.
func whole(pattern string) string { return "^(?:" + pattern + ")$" }

// pattern makes one of an entry whose name is a regular expression between slashes.
func (in *familyIn) pattern(p *Pack) error {
	only := familyIn{Name: in.Name, Meaning: in.Meaning}
	if !reflect.DeepEqual(*in, only) {
		return errors.New("of a pattern only the meaning is told")
	}
	text := in.Name[1 : len(in.Name)-1]
	if _, err := regexp.Compile(whole(text)); err != nil {
		return err
	}
	p.Patterns = append(p.Patterns, Pattern{p.Name, text, in.Meaning, matcher(text)})
	return nil
}

var familyName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:.]*$`)

// family checks an entry and makes a family of it.
func (in *familyIn) family(p *Pack) (*Family, error) {
	f := &Family{Engine: p.Name, Meaning: in.Meaning, Unit: in.Unit, Canonical: in.Canonical, Above: in.Above,
		Identity: union(p.Identity, in.Identity), Volatile: union(p.Volatile, in.Volatile), Moves: in.Moves, home: p.Name,
		Traffic: in.Traffic, Quality: in.Quality, Scrapes: in.Scrapes, Kinds: in.Kinds,
		stem: strings.TrimPrefix(in.Name, "=")}
	if in.Name == "" || in.Meaning == "" {
		return nil, errors.New("needs a name and a meaning")
	}
	var ok bool
	if f.Type, ok = metric.ParseType(in.Type); !ok && in.Type != "" {
		return nil, fmt.Errorf("unknown type %q", in.Type)
	}
	var err error
	if f.Better, err = direction(in.Better); err != nil {
		return nil, err
	}
	aggregate := slices.Index(quantity.AggregateNames(), in.Aggregate)
	if aggregate < 0 {
		return nil, fmt.Errorf("aggregate: %q must be one of%s", in.Aggregate,
			strings.Join(quantity.AggregateNames(), " "))
	}
	f.Aggregate = quantity.Aggregate(aggregate)
	if !slices.Contains(moves(), in.Moves) {
		return nil, fmt.Errorf("moves: %q must be one of%s", in.Moves, strings.Join(moves(), " "))
	}
	if !slices.Contains([]string{"", "yes", "no"}, in.Traffic) {
		return nil, fmt.Errorf("traffic: %q must be yes or no", in.Traffic)
	}
	if in.Quality != "" && !slices.Contains(Qualities(), in.Quality) {
		return nil, fmt.Errorf("quality: %q must be one of %s", in.Quality, strings.Join(Qualities(), " "))
	}
	if in.Staleness != "" {
		if f.Staleness, err = time.ParseDuration(in.Staleness); err != nil || f.Staleness <= 0 {
			return nil, fmt.Errorf("staleness: %q is no duration such as 2s", in.Staleness)
		}
	}
	if f.Canonical != "" && !slices.Contains(canonicalIDs(), f.Canonical) {
		return nil, fmt.Errorf("canonical: unknown id %q (known: %s)", f.Canonical, strings.Join(canonicalIDs(), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(in.Only)) {
		f.Only = append(f.Only, metric.Label{Name: name, Value: in.Only[name]})
	}
	f.Identity = slices.DeleteFunc(f.Identity, func(l string) bool { return slices.Contains(f.Kinds, l) })
	return f, in.names(p, f)
}

func direction(word string) (Direction, error) {
	better := slices.Index(directionNames[:], word)
	if better < 0 && word != "" {
		return 0, fmt.Errorf("better: %q must be higher, lower or neutral", word)
	}
	return Direction(max(0, better)), nil
}

// names gives a family its name and aliases under all prefixes of the pack.
func (in *familyIn) names(p *Pack, f *Family) error {
	prefixes := p.Prefixes
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	in.Aliases = slices.Concat(in.Same, in.Aliases)
	for alias, scale := range in.Scales {
		if !slices.Contains(in.Aliases, alias) || !metric.Finite(scale) || scale <= 0 {
			return fmt.Errorf("scales: %v of %q, which must be a positive factor of an alias", scale, alias)
		}
	}
	for alias := range in.Implied {
		if !slices.Contains(in.Aliases, alias) {
			return fmt.Errorf("implied: %q is no alias", alias)
		}
	}
	for _, stem := range append([]string{in.Name}, in.Aliases...) {
		whole, bare := strings.CutPrefix(stem, "=") // as it is
		for _, prefix := range prefixes {
			name := prefix + stem
			if bare {
				name = whole
			}
			if !familyName.MatchString(name) {
				return fmt.Errorf("%q is no name of a family", name)
			}
			if f.Name == "" {
				f.Name = name
				continue
			}
			if bare && name == f.Name || slices.Contains(f.Aliases, name) {
				continue
			}
			f.Aliases = append(f.Aliases, name)
			if scale, ok := in.Scales[stem]; ok {
				f.Scales = with(f.Scales, name, scale)
			}
			if labels := in.Implied[stem]; len(labels) > 0 {
				f.Implied = with(f.Implied, name, pairs(metric.LabelsFromMap(labels)))
			}
		}
	}
	return nil
}

// with sets an entry of a map that may be nil.
func with[V any](m map[string]V, key string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = v
	return m
}

func pairs(l metric.Labels) []metric.Label {
	out := make([]metric.Label, 0, l.Len())
	for name, value := range l.All() {
		out = append(out, metric.Label{Name: name, Value: value})
	}
	return out
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
