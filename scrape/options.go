package scrape

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Sink receives every poll.
type Sink interface {
	// Record takes one snapshot, which is valid during the call only. It is called from the goroutine of the target: one
	// snapshot of a target after the other, concurrently for different targets. An error ends the run.
	Record(*metric.Snapshot) error
}

// Options configures a [Collector]. The zero value polls every 333 ms.
type Options struct {
	Interval time.Duration // between polls of one target; 0 is 333 ms
	Timeout  time.Duration // for a whole poll; 0 is the larger of 5 s and the interval, never above 60 s
	// FinalTimeout is how long a run may go on after stop closes; 0 is 5 s.
	FinalTimeout time.Duration
	// Origin is the origin of all timestamps: its wall clock plus the monotonic time since. It needs a
	// monotonic reading, as time.Now gives. The zero value is the time of New.
	Origin time.Time
	// Now tells the time; nil is time.Now. Of what it tells after New only the
	// monotonic reading counts, so that a clock that is set costs nothing.
	Now    func() time.Time
	Limits Limits
	// Compress asks targets for gzip. That saves bytes and costs the measured server CPU time.
	Compress bool
	// MaxScrapeShare is the part of its time a target may spend on answering, in
	// percent, before it is polled less often; 0 is 2, a negative value is no limit.
	MaxScrapeShare float64
	// Keep and Drop choose families by name, the declared or ours: those that
	// match Keep (nil: all) and do not match Drop (nil: none).
	Keep, Drop *regexp.Regexp
	// Sentinel tells the values of a family that mean there is none, which are stored as NaN. It returns nil for a family
	// without such; nil knows none. Targets call it at the same time.
	Sentinel func(family string) func(v float64) bool
	// Protocols are the formats asked for, the preferred one first; see [AcceptHeader].
	Protocols []string
	Version   string // for the User-Agent; "" is "dev"
	// OnAddress is told once of each target whose name has several addresses, and
	// which of them is polled; nil is told nothing. It is called from goroutines of
	// targets, one call for each target, and must return quickly.
	OnAddress func(target int, text string)
	// Dynamic is set when targets come and go while Run runs: it goes on until stop then, also without a target.
	Dynamic bool
}

// Limits bounds what is accepted from a target. In each field 0 is the default.
type Limits struct {
	Body        int64 // bytes of a decompressed body; 64 MiB, at most 1 GiB
	Compressed  int64 // bytes of a gzip body as sent; 16 MiB
	Samples     int   // sample lines of a body; 500,000
	Families    int   // in a run, those without samples too; 20,000
	Series      int   // series lines in a run (a bucket counts as one); 1,000,000
	Labels      int   // of one series; 128
	NameLength  int   // bytes of a metric or label name; 1024
	ValueLength int   // bytes of a label value; 16 KiB
	Buckets     int   // of one histogram; 5000
	// NativeBuckets bounds the populated buckets of one native histogram; 10,000.
	NativeBuckets int
	// Memory bounds the series of all targets of a collector together; 1 GiB. That of a Target is not looked at.
	Memory    int64
	ErrorBody int // bytes of the body of an error that its message repeats; 512
	Redirects int // within an origin; 3, a negative value is none
	// Header and Connect are of the transport, which targets share: those of a Target are not looked at.
	Header  int64         // bytes of the head of an answer; 64 KiB
	Connect time.Duration // to make a connection; 2 s
}

const (
	defaultInterval     = 333 * time.Millisecond
	defaultTimeout      = 5 * time.Second
	maxTimeout          = 60 * time.Second
	defaultFinalTimeout = 5 * time.Second
	defaultScrapeShare  = 2.0
	maxBody             = 1 << 30
	maxErrorBody        = 64 << 10
	maxHeader           = 16 << 20
	maxRedirects        = 20
)

// withDefaults fills the zero fields.
func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 64<<20)
	l.Compressed = cmp.Or(l.Compressed, 16<<20)
	l.Samples = cmp.Or(l.Samples, 500_000)
	l.Families = cmp.Or(l.Families, 20_000)
	l.Series = cmp.Or(l.Series, 1_000_000)
	l.Labels = cmp.Or(l.Labels, 128)
	l.NameLength = cmp.Or(l.NameLength, 1024)
	l.ValueLength = cmp.Or(l.ValueLength, 16<<10)
	l.Buckets = cmp.Or(l.Buckets, 5000)
	l.NativeBuckets = cmp.Or(l.NativeBuckets, 10_000)
	l.Memory = cmp.Or(l.Memory, 1<<30)
	l.ErrorBody = cmp.Or(l.ErrorBody, 512)
	l.Redirects = cmp.Or(l.Redirects, 3)
	l.Header = cmp.Or(l.Header, 64<<10)
	l.Connect = cmp.Or(l.Connect, 2*time.Second)
	return l
}

// ByFlag lists the limits on amounts under the names of the flags that set them.
func (l Limits) ByFlag() map[string]int64 {
	return map[string]int64{
		"max-body":            l.Body,
		"max-compressed-body": l.Compressed,
		"max-headers":         l.Header,
		"max-error-body":      int64(l.ErrorBody),
		"max-redirects":       int64(max(0, l.Redirects)),
		"max-samples":         int64(l.Samples),
		"max-families":        int64(l.Families),
		"max-series":          int64(l.Series),
		"max-labels":          int64(l.Labels),
		"max-name-length":     int64(l.NameLength),
		"max-value-length":    int64(l.ValueLength),
		"max-buckets":         int64(l.Buckets),
		"max-native-buckets":  int64(l.NativeBuckets),
		"max-memory":          l.Memory,
	}
}

// within returns the limits of a target: its own where they are lower.
func (l Limits) within(all Limits) Limits {
	lower(&all.Body, l.Body)
	lower(&all.Compressed, l.Compressed)
	lower(&all.Samples, l.Samples)
	lower(&all.Families, l.Families)
	lower(&all.Series, l.Series)
	lower(&all.Labels, l.Labels)
	lower(&all.NameLength, l.NameLength)
	lower(&all.ValueLength, l.ValueLength)
	lower(&all.Buckets, l.Buckets)
	lower(&all.NativeBuckets, l.NativeBuckets)
	lower(&all.ErrorBody, l.ErrorBody)
	return all
}

func lower[T int | int64](limit *T, v T) {
	if v > 0 {
		*limit = min(*limit, v)
	}
}

func (l Limits) validate() error {
	for _, v := range []struct {
		flag        string
		value, most int64
	}{
		{"--max-body", l.Body, maxBody}, {"--max-compressed-body", l.Compressed, math.MaxInt32},
		{"--max-samples", int64(l.Samples), math.MaxInt32}, {"--max-series", int64(l.Series), math.MaxInt32},
		{"--max-families", int64(l.Families), math.MaxInt32}, {"--max-labels", int64(l.Labels), math.MaxInt32},
		{"--max-name-length", int64(l.NameLength), math.MaxInt32},
		{"--max-value-length", int64(l.ValueLength), maxSeriesText}, {"--max-buckets", int64(l.Buckets), math.MaxInt32},
		{"--max-native-buckets", int64(l.NativeBuckets), math.MaxInt32},
		{"--max-memory", l.Memory, math.MaxInt64},
		{"--max-error-body", int64(l.ErrorBody), maxErrorBody}, {"--max-headers", l.Header, maxHeader},
	} {
		if v.value < 0 || v.value > v.most {
			return fmt.Errorf("check limits: %s is %d, want 1 to %d", v.flag, v.value, v.most)
		}
	}
	if l.Redirects > maxRedirects {
		return fmt.Errorf("check limits: --max-redirects is %d, want 0 to %d", l.Redirects, maxRedirects)
	}
	if l.Connect < 0 || l.Connect > maxTimeout {
		return fmt.Errorf("check limits: --connect-timeout is %v, want more than 0 and at most %v", l.Connect, maxTimeout)
	}
	return nil
}

// WithDefaults returns the options with their zero fields filled in, but for the
// timeout, which depends on the interval of a target.
func (o Options) WithDefaults() Options {
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.FinalTimeout = cmp.Or(o.FinalTimeout, defaultFinalTimeout)
	o.MaxScrapeShare = cmp.Or(o.MaxScrapeShare, defaultScrapeShare)
	o.Limits = o.Limits.withDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Origin.IsZero() {
		o.Origin = o.Now()
	}
	o.Version = cmp.Or(o.Version, "dev")
	return o
}

func (o Options) validate() error {
	switch {
	case o.Interval < time.Millisecond:
		return fmt.Errorf("check options: --interval is %v, want at least 1ms", o.Interval)
	case o.Timeout < 0 || o.Timeout > maxTimeout:
		return fmt.Errorf("check options: --timeout is %v, want more than 0 and at most %v", o.Timeout, maxTimeout)
	case o.FinalTimeout < 0:
		return fmt.Errorf("check options: final timeout is %v, want more than 0", o.FinalTimeout)
	case math.IsNaN(o.MaxScrapeShare) || o.MaxScrapeShare > 100:
		return errors.New("check options: --scrape-budget is above 100 percent")
	}
	if _, err := AcceptHeader(o.Protocols); err != nil {
		return fmt.Errorf("check options: --protocols: %w", err)
	}
	return o.Limits.validate()
}

// timeoutFor is the deadline of a whole poll at an interval.
func timeoutFor(timeout, interval time.Duration) time.Duration {
	timeout = cmp.Or(timeout, max(defaultTimeout, interval))
	return min(timeout, maxTimeout)
}
