package promstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

// The ways to get samples.
const (
	ViaAuto       = "auto" // remote read where it is offered, else the query API
	ViaQuery      = "query"
	ViaRemoteRead = "remote-read"
)

// ImportOptions says what to read from where. URL, StartNS and EndNS are needed.
type ImportOptions struct {
	URL       string            // of the store, without /api/v1
	Header    http.Header       // sent with each request
	Transport http.RoundTripper // for authentication and TLS; nil is the default one
	// Redact takes secrets out of texts of the store that are shown; nil takes none.
	Redact func(string) string
	Via    string // "" is ViaAuto
	// Match holds series selectors; nil takes every series.
	Match []string
	// StartNS and EndNS are inclusive, rounded to milliseconds.
	StartNS, EndNS int64
	// TargetLabels identify a target; nil is job and instance.
	TargetLabels []string
	// Step is the least time between two polls of a target; 0 keeps all.
	Step time.Duration
	// Keep and Drop choose families, as scrape.Options has it.
	Keep, Drop *regexp.Regexp
	// TypeOf is what a name is known to be where the store does not tell; nil knows none.
	TypeOf func(name string) (metric.Type, bool)
	Limits timeline.Limits
	// SliceSamples is about how many samples a request asks for; 0 is 500,000.
	SliceSamples int
	// Timeout is for one request; 0 is two minutes.
	Timeout time.Duration
	// Progress is told how far the import is; nil is not.
	Progress func(doneNS int64, samples int64)
}

// ImportStats is what became of an import.
type ImportStats struct {
	timeline.Stats
	Via      string // the way that was used
	Requests int    // for samples
	Split    int    // slices that were halved because the server found them too large
	Native   int64  // samples of native histograms, which are not read
	Warnings []metric.Warning
}

// allSeries is the selector that takes every series.
const allSeries = `{__name__!=""}`

// Import reads raw samples and gives their polls to sink, slice after slice.
// After an error what came before is recorded.
func Import(ctx context.Context, o ImportOptions, sink timeline.Sink) (ImportStats, error) {
	i, err := newImporter(o, sink)
	if err != nil {
		return ImportStats{}, err
	}
	if err := i.metadata(ctx); err != nil {
		if ctx.Err() != nil {
			return i.result(), err
		}
		i.warn("metadata_missing", "the store gives no types: "+err.Error())
	}
	err = i.run(ctx)
	return i.result(), err
}

func (i *importer) metadata(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, i.o.Timeout)
	defer cancel()
	return i.c.metadata(ctx, i.t)
}

type importer struct {
	o        ImportOptions
	c        *client
	t        *timeline.Timeline
	matchers [][]*prompb.LabelMatcher
	stats    ImportStats
	current  *timeline.Series
	count    int // samples of the present slice
}

func newImporter(o ImportOptions, sink timeline.Sink) (*importer, error) {
	if o.Match == nil {
		o.Match = []string{allSeries}
	}
	o.SliceSamples = cmp.Or(max(o.SliceSamples, 0), 500_000)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 2*time.Minute)
	o.Via = cmp.Or(o.Via, ViaAuto)
	if o.Via != ViaAuto && o.Via != ViaQuery && o.Via != ViaRemoteRead {
		return nil, fmt.Errorf("unknown way %q (known: auto, query, remote-read)", o.Via)
	}
	if o.StartNS <= 0 || o.EndNS <= o.StartNS {
		return nil, errors.New("the end of the range is not after its start")
	}
	c, err := newClient(o.URL, o.Transport, o.Header, o.Redact)
	if err != nil {
		return nil, err
	}
	i := &importer{o: o, c: c}
	i.stats.Via = o.Via
	for _, s := range o.Match {
		m, err := parseSelector(s)
		if err != nil {
			return nil, err
		}
		i.matchers = append(i.matchers, m)
	}
	i.t = timeline.New(timeline.Options{Source: "prometheus-store", TargetLabels: o.TargetLabels, Address: c.name(),
		Step: o.Step,
		Keep: o.Keep, Drop: o.Drop, TypeOf: o.TypeOf, Limits: o.Limits}, sink)
	return i, nil
}

func (i *importer) result() ImportStats {
	i.stats.Stats = i.t.Stats()
	return i.stats
}

func (i *importer) warn(code, text string) {
	i.stats.Warnings = append(i.stats.Warnings, metric.Warning{Code: code, Text: metric.Clean(text, 400)})
}

// maxSlice is how many samples a slice may have, however few are asked for.
const maxSlice = 4_000_000

// minSlice is the shortest range of time that is asked for.
const minSlice = 1000 // ms

// run walks over the range in slices that adapt to how many samples there are.
func (i *importer) run(ctx context.Context) error {
	at, end := i.o.StartNS/1e6-1, i.o.EndNS/1e6
	width := min(end-at, 10*60*1000)
	for at < end {
		to := min(at+width, end)
		err := i.slice(ctx, at, to)
		if ctx.Err() == nil && (errors.Is(err, errTooMuch) || errors.Is(err, timeline.ErrFull)) && to-at > minSlice {
			i.t.Discard()
			i.stats.Split++
			width = max((to-at)/2, minSlice)
			continue
		}
		if err != nil {
			i.t.Discard() // half a slice would end in half a poll
			if errors.Is(err, errTooMuch) || errors.Is(err, timeline.ErrFull) {
				err = fmt.Errorf("%w (one second is too much: narrow it with --match)", err)
			}
			return err
		}
		// The slice of a run begins where the range does, whatever there is.
		if i.t.Held() > 0 {
			if err := i.t.Begin(i.o.StartNS); err != nil {
				return err
			}
		}
		if err := i.t.Flush(ctx); err != nil {
			return err
		}
		grow := 4 * (to - at)
		if i.count > 0 {
			grow = min(grow, max((to-at)*int64(i.o.SliceSamples)/int64(i.count), minSlice))
		}
		width, at = grow, to
		if i.o.Progress != nil {
			i.o.Progress(at*1e6, i.t.Stats().Stored)
		}
	}
	return nil
}

// slice reads the samples in (fromMS, toMS] of all selectors.
func (i *importer) slice(ctx context.Context, fromMS, toMS int64) error {
	i.count = 0
	for k := range i.o.Match {
		if err := i.request(ctx, k, fromMS, toMS); err != nil {
			return err
		}
	}
	return nil
}

func (i *importer) request(ctx context.Context, k int, fromMS, toMS int64) error {
	ctx, cancel := context.WithTimeout(ctx, i.o.Timeout)
	defer cancel()
	i.stats.Requests++
	if i.stats.Via == ViaQuery {
		return i.c.query(ctx, i.o.Match[k], fromMS, toMS, i)
	}
	err := i.c.remoteRead(ctx, i.matchers[k], fromMS, toMS, i)
	if i.stats.Via == ViaRemoteRead {
		return err
	}
	if err != nil && !errors.Is(err, errTooMuch) && !errors.Is(err, timeline.ErrFull) && ctx.Err() == nil {
		// The first answer decides. What was read of it counts as repeated.
		i.stats.Via = ViaQuery
		i.warn("remote_read_unavailable", "remote read does not work, so the query API is used: "+err.Error())
		i.stats.Requests++
		return i.c.query(ctx, i.o.Match[k], fromMS, toMS, i)
	}
	if err == nil {
		i.stats.Via = ViaRemoteRead
	}
	return err
}

// series implements samples.
func (i *importer) series(name string, labels []metric.Label) error {
	i.current = i.t.Series(name, labels)
	return nil
}

// sample implements samples.
func (i *importer) sample(atMS int64, v float64) error {
	if atMS <= -maxSeconds*1000 || atMS >= maxSeconds*1000 {
		i.current.Refuse("bad_timestamp")
		return nil
	}
	if i.count++; i.count > max(maxSlice, 8*i.o.SliceSamples) {
		return errTooMuch // a shorter slice needs less memory
	}
	return i.current.Add(atMS*1e6, v)
}

// native implements samples.
func (i *importer) native(int64) {
	i.stats.Native++
	i.count++
	i.current.Refuse("native_histogram")
}
