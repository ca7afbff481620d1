package catalog

import (
	"strconv"
	"time"

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

// String returns "neutral", "higher" or "lower", as the tables spell it.
func (d Direction) String() string { return wordOf(directionNames[:], int(d)) }

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
func (q Category) String() string { return wordOf(questionNames[:], int(q)) }

// Aggregate says how the series of a family become one number.
type Aggregate uint8

// The rules. Of counters and histograms the gains are meant, of gauges the values.
const (
	AggregateByType Aggregate = iota // counters add up, histograms merge, gauges do neither
	AggregateSum                     // add up
	AggregateMax                     // take the largest
	AggregateMean                    // the mean, each series with the same weight
	AggregateRank0                   // every rank reports the whole: add up those of rank 0
	AggregateMerge                   // pool the observations of histograms
	AggregateNever                   // no number of them means anything together
)

var aggregateNames = [...]string{"", "sum", "max", "mean", "rank0", "merge", "never"}

// String returns the rule as the tables spell it, "" for none.
func (a Aggregate) String() string { return wordOf(aggregateNames[:], int(a)) }

func wordOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "unknown(" + strconv.Itoa(i) + ")"
	}
	return names[i]
}

// Family is what the catalog knows of a family.
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
	// "start" (constant) or "" when it is each event. Staleness is how old a value can be because the server renews it at
	// intervals; 0 for none.
	Moves     string
	Staleness time.Duration
	Aggregate Aggregate
	// Traffic is "yes" or "no" where the family tells of requests, or does not, against what Moves suggests; else "".
	Traffic string
	// Only are the labels of those series that are the whole, where others are parts of it: priority="".
	Only []metric.Label
	// Identity are the labels that say what a series is of, Volatile those that differ between two runs of the same;
	// other labels name replicas.
	Identity, Volatile []string
	// Canonical is the id of the quantity across engines: "ttft_s", "running"; "" for none.
	Canonical string
	// Above are levels of a gauge such that the time above them is worth knowing.
	Above []float64
}
