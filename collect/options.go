package collect

import (
	"cmp"
	"errors"
	"maps"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/promstore"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// Options is what is recorded. Targets or Discoverers suffice.
type Options struct {
	Targets []scrape.Target // Open takes over what they hold
	// Discoverers find further targets, which may come and go. They are asked every
	// Refresh, 0 being 1 s. Open takes them over.
	Discoverers []*discover.Discoverer
	Refresh     time.Duration
	Scrape      scrape.Options // Origin, OnAddress, Dynamic and Version are set by Open

	Duration time.Duration // of profiling, warm-up not counted; 0 has no end
	// WaitTraffic is how long to wait for a first request before Duration begins.
	WaitTraffic time.Duration
	// Warmup is recorded and excluded from statistics: it counts from the first request, or from the start where
	// nothing tells of requests. Cooldown is the same at the end.
	Warmup, Cooldown time.Duration
	Settle           time.Duration    // to go on after the load, for late observations
	Window           window.Ref       // that the recording is analysed with by default
	Catalog          *catalog.Catalog // that tells which families are of requests; nil is that of this program

	Command *Command // the load; nil for none
	// ClientInterval is the time between polls of what Command and its host take, a target beside the others; 0 for none.
	ClientInterval time.Duration
	Client         ClientOptions           // what the clients saw
	RemoteWriter   *promstore.RemoteWriter // is sent each sample too; nil for none
	// SubtractSelf takes our scrapes off TorchServe's counter of requests, which
	// counts them.
	SubtractSelf bool

	// Replace lists files of an earlier run that this one replaces, besides those of
	// the recording; nil refuses a directory that is not empty.
	Replace  []string
	MaxBytes int64 // of the recording, beyond which it keeps no bodies; 0 is rundb's
	// MaxPending is how many bytes wait in memory while the recording cannot be written,
	// before the oldest polls are dropped; 0 is 256 MiB.
	MaxPending int
	Slice      time.Duration
	// Shard and Group are those of the recording: nil and "" of a run of all targets.
	Shard    *rundb.Shard
	Group    string
	Tags     map[string]string
	Version  string           // of the program
	Settings map[string]any   // for the manifest, by flag name
	Warnings []metric.Warning // recorded at the start
	// CommandLine is what the recording shows of how it was made; nil shows nothing.
	CommandLine func([]metric.Target) []string

	// Analysis asks for results while the run is recorded, see Session.Result. OnPoll
	// is called with each poll that was analysed, from one goroutine.
	Analysis *summary.Options
	OnPoll   func(*metric.Snapshot) error
	// Observers are told of each recorded poll, from the goroutine of its target.
	Observers []Observer
	OnCommit  func(took time.Duration, err error) // of the recording

	Events        Events        // nil tells nobody
	ProgressEvery time.Duration // 0 is 10 s
}

// Observer is told of polls; concurrently for different targets.
type Observer interface {
	Record(*metric.Snapshot)
}

// Events is told how a run goes. The methods are called one at a time, from Open
// and Run, except those about targets, which discovery calls.
type Events interface {
	// TargetAdded is called before the first poll of target n.
	TargetAdded(n int, t metric.Target)
	// TargetGone is called when discovery misses a target, and when it is back.
	TargetGone(n int, gone bool)
	PhaseBegun(m metric.Mark)
	Warning(w metric.Warning)
	// Message is called with a sentence about what happened.
	Message(text string)
	Progress(phase string, t Totals)
	// Ended is called after the last poll, before what waits is sent and stored.
	Ended()
}

// silence is Events for nobody.
type silence struct{}

func (silence) TargetAdded(int, metric.Target) {}
func (silence) TargetGone(int, bool)           {}
func (silence) PhaseBegun(metric.Mark)         {}
func (silence) Warning(metric.Warning)         {}
func (silence) Message(string)                 {}
func (silence) Progress(string, Totals)        {}
func (silence) Ended()                         {}

// OptionError refuses options: nothing was recorded.
type OptionError struct{ Err error }

// Error is the text of the cause.
func (e *OptionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// ErrAborted ends a run whose context was cancelled.
var ErrAborted = errors.New("the run was aborted")

func (o Options) withDefaults() Options {
	o.Refresh = cmp.Or(o.Refresh, time.Second)
	o.MaxPending = cmp.Or(o.MaxPending, 256<<20)
	o.ProgressEvery = cmp.Or(o.ProgressEvery, 10*time.Second)
	o.Scrape = o.Scrape.WithDefaults()
	o.Scrape.Version = o.Version
	o.Scrape.Dynamic = len(o.Discoverers) > 0 || len(o.Targets) == 0 && o.Shard != nil // an empty one records nothing
	if o.Events == nil {
		o.Events = silence{}
	}
	return o
}

// meta is what the recording says about itself.
func (o *Options) meta(origin time.Time, targets []metric.Target) rundb.Meta {
	m := rundb.Meta{ID: rundb.NewID(), Version: o.Version, Tags: o.Tags, OriginNS: origin.UnixNano(),
		Interval: o.Scrape.Interval,
		Timeout:  o.Scrape.Timeout, Warmup: o.Warmup, Cooldown: o.Cooldown, Settle: o.Settle, Slice: o.Slice,
		Window: o.Window.String(),
		Shard:  o.Shard, Group: o.Group, Host: rundb.ThisHost().Hostname, Limits: o.Scrape.Limits.ByFlag()}
	if c, err := rundb.ReadHostClock(); err == nil {
		m.BootID, m.BootNS = c.BootID, c.MonoNS-int64(time.Since(origin))
	}
	m.Limits["max-pending"] = int64(o.MaxPending)
	if o.MaxBytes > 0 {
		m.Limits["max-recording"] = o.MaxBytes
	}
	if o.CommandLine != nil {
		m.Command = o.CommandLine(targets)
	}
	return m
}

// manifest is what manifest.json says before the first scrape; see Run.WriteManifest.
func (o *Options) manifest(m rundb.Meta, targets []metric.Target) rundb.Manifest {
	out := rundb.Manifest{Version: m.Version, RunID: m.ID, Command: m.Command, Tags: m.Tags,
		Started: time.Unix(0, m.OriginNS),
		Host:    rundb.ThisHost(), Limits: m.Limits, Options: maps.Clone(o.Settings)}
	if out.Options == nil {
		out.Options = map[string]any{}
	}
	for _, t := range targets {
		out.Targets = append(out.Targets, rundb.NewManifestTarget(t))
	}
	return out
}
