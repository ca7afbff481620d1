package metric

import "fmt"

// Type is the type a family declares, or was found to have.
type Type uint8

// The types of the exposition formats. Unknown is the zero value: a family without a usable TYPE line.
const (
	Unknown Type = iota
	Counter
	Gauge
	Histogram
	Summary
	Info
	StateSet
	GaugeHistogram
)

var typeNames = [...]string{"unknown", "counter", "gauge", "histogram", "summary", "info", "stateset", "gaugehistogram"}

// String returns the lower-case name of the type, as TYPE lines spell it.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// ParseType returns the type of that name; "untyped" is Unknown. ok is false for any other word.
func ParseType(name string) (t Type, ok bool) {
	if name == "untyped" {
		return Unknown, true
	}
	for i, n := range typeNames {
		if n == name {
			return Type(i), true
		}
	}
	return Unknown, false
}

// Family is a named group of series of one type. The name is the one AIPerf uses: a counter has lost its "_total".
// Within a target a family is identified by name and type; one that changes its type becomes a second family.
type Family struct {
	Name string
	Type Type
	Help string
	Unit string // as declared by a UNIT line; "" in formats without one
	// Suffix is what the server's own name of the values has behind Name: "_total" of a counter or "_info" of an info
	// family that has it, else ""; SuffixUnknown where a recording does not tell.
	Suffix string
}

// SuffixUnknown is the Family.Suffix of counters and info families of which only the name without one is known.
const SuffixUnknown = "?"

// Series is one label set of a family. Its labels leave out "le" and "quantile", which belong to its slots.
type Series struct {
	Family int // index into Schema.Families
	Labels Labels
}

// Role is what a slot holds of its series.
type Role uint8

// The roles. A counter, gauge or unknown series has one Value slot; a histogram has Bucket, Sum and Count
// slots, a native one Native in place of Bucket; a summary has Quantile, Sum and Count. Created holds the start
// time a server reports for a series, in seconds since 1970; it is metadata, never a metric of its own.
const (
	RoleValue Role = iota
	RoleSum
	RoleCount
	RoleBucket
	RoleQuantile
	RoleCreated
	// RoleNative is a bucket of a native histogram: the observations between SampleID.Lower and SampleID.Bound,
	// not those below as well. Its buckets come and go as the server needs them; one that is absent is empty.
	RoleNative
	// RoleSampleTime holds the time that a server gave the samples of a series, in milliseconds since 1970: a slot of each
	// series that has one. Like Created it is metadata, and no line of its own; samples are at the time of their poll.
	RoleSampleTime
)

// Roles is the number of roles: valid ones are below it.
const Roles = RoleSampleTime + 1

// Metadata reports whether a slot with this role describes its series and measures nothing of it.
func (r Role) Metadata() bool { return r == RoleCreated || r == RoleSampleTime }

var roleNames = [...]string{"value", "sum", "count", "bucket", "quantile", "created", "native_bucket", "sample_time"}

// String returns the lower-case name of the role.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// SampleID is one scalar of a series, usually one line of an exposition.
type SampleID struct {
	Series int // index into Schema.Series
	Role   Role
	// Bound is the upper bound of a bucket (+Inf for the last) or the quantile
	// of a summary; 0 for other roles. Within a series role and bounds are unique.
	Bound float64
	// Lower is the lower bound of a native bucket, which holds what is above it and not above Bound; the bucket
	// of zero holds [Lower, Bound], negative ones [Lower, Bound). 0 for other roles.
	Lower float64
	// Text is the bound as the server first wrote it ("0.5", "1", "+Inf").
	Text string
	// Integer is set when the bits of this slot are an unsigned 64-bit integer
	// instead of a float64, exact over the whole range.
	Integer bool
}

// DictDelta is what a poll adds to the dictionary of its target. Indices in it
// count from the start of the dictionary, so entries may refer to each other.
type DictDelta struct {
	Families []Family
	Series   []Series
	Slots    []SampleID
}

// Empty reports whether nothing is new.
func (g *DictDelta) Empty() bool {
	return len(g.Families)+len(g.Series)+len(g.Slots) == 0
}

// Schema is all that a target has shown so far, in order of first appearance. It only grows; an index once
// given stays valid for the run. The zero value is empty and ready to use. A Schema has one owner: it is not
// safe for concurrent use while it grows.
type Schema struct {
	Families []Family
	Series   []Series
	Slots    []SampleID

	slotsOf [][]int32 // by series
}

// Check returns an error when an index of g points outside a schema that has so
// many families, series and slots before g, as only a damaged recording's does.
func (g *DictDelta) Check(families, series, slots int) error {
	for i, s := range g.Series {
		if n := families + len(g.Families); s.Family < 0 || s.Family >= n {
			return fmt.Errorf("grow dictionary: series %d has family %d of %d", series+i, s.Family, n)
		}
	}
	for i := range g.Slots {
		if s, n := g.Slots[i].Series, series+len(g.Series); s < 0 || s >= n {
			return fmt.Errorf("grow dictionary: slot %d has series %d of %d", slots+i, s, n)
		}
	}
	return nil
}

// Grow adds g; one that does not fit is refused and changes nothing.
func (d *Schema) Grow(g *DictDelta) error {
	if err := g.Check(len(d.Families), len(d.Series), len(d.Slots)); err != nil {
		return err
	}
	d.Families = append(d.Families, g.Families...)
	d.Series = append(d.Series, g.Series...)
	d.slotsOf = append(d.slotsOf, make([][]int32, len(g.Series))...)
	for i, s := range g.Slots {
		d.slotsOf[s.Series] = append(d.slotsOf[s.Series], int32(len(d.Slots)+i))
	}
	d.Slots = append(d.Slots, g.Slots...)
	return nil
}

// SlotsOf returns the slots of a series in order of first appearance. The
// slice belongs to the dictionary and is valid until it grows.
func (d *Schema) SlotsOf(series int) []int32 { return d.slotsOf[series] }

// FamilyOf returns the family of a series.
func (d *Schema) FamilyOf(series int) *Family { return &d.Families[d.Series[series].Family] }
