package catalog

import (
	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/catalog/quantity"
)

// What packages quantity and pack have is known by these names too.
type (
	// Gain is what one series did over a stretch.
	Gain = quantity.Gain
	// Bucket is the increase of one bucket of a histogram.
	Bucket = quantity.Bucket
	// Interval is what an endpoint gained between two instants.
	Interval = quantity.Interval
	// Part is what of a gain a term takes.
	Part = quantity.Part
	// Aggregate is how the series of a family become one number.
	Aggregate = quantity.Aggregate
	// Status is how far a derived value can be believed.
	Status = quantity.Status
	// SLOAttainment is how many observations are at most x.
	SLOAttainment = quantity.SLOAttainment
	// Direction is which way a quantity gets better.
	Direction = pack.Direction
	// Category is what a quantity helps to answer.
	Category = pack.Category
	// Family is what is known of a family.
	Family = pack.Family
	// Inputs is what a server cannot tell.
	Inputs = pack.Inputs
	// Server is what is known of a server.
	Server = pack.Pack
	// Hint is what to tell of a server.
	Hint = pack.Hint
	// Canonical is a quantity that several engines have.
	Canonical = pack.Canonical
)

// The constants of package quantity.
const (
	Value    = quantity.Value
	Count    = quantity.Count
	Sum      = quantity.Sum
	Mean     = quantity.Mean
	Max      = quantity.Max
	Min      = quantity.Min
	Integral = quantity.Integral

	AggregateByType = quantity.AggregateByType
	AggregateSum    = quantity.AggregateSum
	AggregateMax    = quantity.AggregateMax
	AggregateMean   = quantity.AggregateMean
	AggregateRank0  = quantity.AggregateRank0
	AggregateMerge  = quantity.AggregateMerge
	AggregateNever  = quantity.AggregateNever

	OK              = quantity.OK
	ResetCorrected  = quantity.ResetCorrected
	BornInWindow    = quantity.BornInWindow
	Partial         = quantity.Partial
	Estimate        = quantity.Estimate
	Bound           = quantity.Bound
	Ambiguous       = quantity.Ambiguous
	LowerBound      = quantity.LowerBound
	ZeroDenominator = quantity.ZeroDenominator
	Missing         = quantity.Missing
	Refused         = quantity.Refused
)

// The constants of package pack.
const (
	Neutral      = pack.Neutral
	HigherBetter = pack.HigherBetter
	LowerBetter  = pack.LowerBetter

	Other      = pack.Other
	Throughput = pack.Throughput
	Latency    = pack.Latency
	Saturation = pack.Saturation
	TimeSpent  = pack.TimeSpent
	Cache      = pack.Cache
	Errors     = pack.Errors
	Efficiency = pack.Efficiency
	Check      = pack.Check

	Silent = pack.Silent
	Fast   = pack.Fast
)

// Canonicals returns the quantities across engines: those that families are, then those that are derived.
func Canonicals() []Canonical { return pack.Canonicals() }

// CanonicalOf returns the quantity of that id.
func CanonicalOf(id string) (Canonical, bool) { return pack.CanonicalOf(id) }
