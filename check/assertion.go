package check

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/histest"
)

// The sources of numbers.
const (
	FromQuantity = "quantity" // words of package headline, of each engine and model
	FromFamily   = "family"
	FromDerived  = "derived"  // quantities of package catalog
	FromRequests = "requests" // what clients saw
	FromExplain  = "explain"  // causes of package explain
)

// The operators. Equals is MLPerf's: within the tolerance of the larger of both; Near is within the tolerance of the
// wanted value.
const (
	Below   = "<"
	AtMost  = "<="
	Above   = ">"
	AtLeast = ">="
	Same    = "=="
	Differs = "!="
	Near    = "~="
	Equals  = "="
)

var operators = []string{AtMost, AtLeast, Same, Differs, Near, Below, Above, Equals} // longest first

// Assertion is one expression.
type Assertion struct {
	Name string // for people; the text of the expression where none was given
	Text string // the expression as it was written
	Line int    // of the file that it stands in; 0 for none

	From   string // one of the sources
	Metric string
	Match  []Matcher
	// By are the labels by which series are taken together, as --by does; Grouped tells "by ()", all together, from no
	// grouping.
	By      []string
	Grouped bool
	Stat    Stat
	Op      string
	Want    Limit
	// Tolerance belongs to Near and Equals.
	Tolerance Margin
}

// Matcher is a condition on a label, as in PromQL: an absent label is "".
type Matcher struct {
	Label, Op, Value string
	re               *regexp.Regexp
}

// Matches reports whether a value of the label meets the condition.
func (m *Matcher) Matches(value string) bool {
	switch m.Op {
	case "=":
		return value == m.Value
	case "!=":
		return value != m.Value
	case "=~":
		return m.re.MatchString(value)
	default:
		return !m.re.MatchString(value)
	}
}

// Limit is a number to hold against: Value in Unit ("" is the unit of what is measured), or what a baseline run has,
// plus Shift.
type Limit struct {
	Value    float64
	Unit     string
	Baseline bool
	Shift    Margin // of the baseline
	Word     string // a finding, of explain:verdict
}

// Margin is a share of another number, or an amount.
type Margin struct {
	Value   float64 // 0.05 for 5 %
	Percent bool
	Unit    string
}

// of is the margin in the unit of what it is a margin of.
func (m Margin) of(base float64, unit string) (float64, error) {
	if m.Percent {
		return math.Abs(base) * m.Value, nil
	}
	return convert(m.Value, m.Unit, unit)
}

// Stat is a statistic: its name and the argument of those that have one.
type Stat struct {
	Name string // "" where there is only one: rates of requests, derived quantities
	Arg  float64
	Unit string // of Arg: share(450ms)
}

// String is the statistic as it is written.
func (s Stat) String() string {
	switch s.Name {
	case "p":
		return "p" + strconv.FormatFloat(s.Arg, 'g', -1, 64)
	case "share":
		return fmt.Sprintf("share(%s%s)", strconv.FormatFloat(s.Arg, 'g', -1, 64), s.Unit)
	}
	return s.Name
}

// statForms are the statistics by what they may be asked of.
var statForms = map[string][]string{
	"counter":   {"total", "rate", "resets", "samples"},
	"gauge":     {"avg", "time_avg", "min", "max", "std", "first", "last", "pNN", "samples"},
	"histogram": {"count", "rate", "sum", "avg", "pNN", "share(VALUE)", "resets"},
	"summary":   {"count", "rate", "sum", "avg", "resets"},
	"requests":  {"avg", "min", "max", "count", "pNN"},
}

var plainStats = []string{"total", "rate", "resets", "samples", "avg", "time_avg", "min", "max", "std", "first",
	"last", "count", "sum", "series"}

// statAliases are other words for the same.
var statAliases = map[string]string{"mean": "avg", "average": "avg", "increase": "total", "delta": "total",
	"median": "p50", "tw_avg": "time_avg"}

// parseStat reads a statistic; ok is false for a word that is none.
func parseStat(word string) (s Stat, ok bool, err error) {
	if other := statAliases[word]; other != "" {
		word = other
	}
	if slices.Contains(plainStats, word) {
		return Stat{Name: word}, true, nil
	}
	if p, ok := histest.Percentile(word); ok {
		return Stat{Name: "p", Arg: p}, true, nil
	}
	rest, found := strings.CutPrefix(word, "p")
	if found && rest != "" && strings.Trim(rest, "-0123456789.") == "" {
		return s, false, fmt.Errorf("percentile %s is not between 0 and 100", word)
	}
	if rest, found = strings.CutPrefix(word, "share("); found {
		value, unit, err := parseAmount(strings.TrimSuffix(rest, ")"))
		if err != nil || !strings.HasSuffix(rest, ")") {
			return s, false, fmt.Errorf(
				"%s: want share(VALUE), such as share(450ms), the share of observations that are not larger", word)
		}
		return Stat{Name: "share", Arg: value, Unit: unit}, true, nil
	}
	return s, false, nil
}

// quantile is the share of a percentile statistic.
func (s Stat) quantile() float64 { return s.Arg / 100 }

// Quantiles are the quantiles that the demands need, ascending; they belong into the options of the analysis.
func Quantiles(ds []Assertion) (out []float64) {
	for _, d := range ds {
		if d.Stat.Name == "p" {
			out = append(out, d.Stat.quantile())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Groupings are the distinct label lists that demands group by, in the order in which they come: the analyses that
// Evidence.Grouped must have.
func Groupings(ds []Assertion) (out [][]string) {
	seen := map[string]bool{}
	for _, d := range ds {
		if d.Grouped && !seen[GroupKey(d.By)] {
			seen[GroupKey(d.By)] = true
			out = append(out, d.By)
		}
	}
	return out
}

// GroupKey is the key of a grouping in Evidence.Grouped.
func GroupKey(by []string) string { return strings.Join(by, ",") }
