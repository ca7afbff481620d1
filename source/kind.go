// Package source is what a kind of targets states of itself: how its addresses begin, its flags, and how a target is
// opened. Each package below is one kind, or reads recordings of others.
package source

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Kind is a kind of targets that are no expositions.
type Kind struct {
	Name     string   // in outputs: "triton"
	Prefixes []string // of its addresses, in lower case
	Usage    string   // lines of --help: how its addresses are written, and what they are
	Stdin    string   // the address that reads stdin; "" is none
	Local    bool     // it reads files: nobody answers, or does not
	// Interval is the longest time between two polls; 0 is any.
	Interval time.Duration
	// Check refuses addresses; nil takes all until they are opened.
	Check func(address string) error
	// Show is an address as outputs have it; nil redacts it as a URL.
	Show func(address string) string
	// New returns what opens the targets of one command line.
	New func() Opener
}

// Has reports whether an address is of this kind.
func (k Kind) Has(address string) bool {
	return slices.ContainsFunc(k.Prefixes, func(p string) bool {
		return len(address) >= len(p) && strings.EqualFold(address[:len(p)], p)
	})
}

// Opener opens the targets of one kind by the values of its flags.
type Opener interface {
	Flags() []Flag
	// Check reads the values of the flags. It is called before Open.
	Check() error
	Open(address string, o Options) (Source, error)
}

// Flag is a flag of a command line.
type Flag struct {
	Name, Usage string
	Value       any  // *bool, *string or *[]string, repeatable; holds the default
	Recording   bool // it means nothing to a command that does not record
	File        bool // its value is a file of settings
}

// Options is what all kinds are given. A kind uses what has a meaning for it.
type Options struct {
	Header       http.Header
	RoundTripper http.RoundTripper
	Redact       func(string) string
	In           io.Reader              // stdin
	Keep         func(name string) bool // which families are recorded
	Version      string                 // of the program
	// Requests takes records of requests, of a source that begins with its first record; nil drops them.
	Requests func(metric.ServerSource) Feed
	// Limits on the answer to a poll: bytes, samples, and bytes of a label value; and
	// on the series of a target.
	Body                         int64
	Samples, Series, ValueLength int
}

// Feed takes the records of requests of one source, and how many of them were no good.
type Feed interface {
	Record(q *metric.ServerRequest)
	Counted(c metric.ServerCounts)
}

// Feed begins a source of records. Without Requests they are dropped.
func (o *Options) Feed(s metric.ServerSource) Feed {
	if o.Requests == nil {
		return noFeed{}
	}
	return o.Requests(s)
}

// noFeed drops records.
type noFeed struct{}

// Record implements Feed.
func (noFeed) Record(*metric.ServerRequest) {}

// Counted implements Feed.
func (noFeed) Counted(metric.ServerCounts) {}

// Source polls one target; see scrape.Source.
type Source interface {
	Poll(ctx context.Context, now func() int64, s *metric.Snapshot)
	Close() error
}
