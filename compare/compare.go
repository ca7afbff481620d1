package compare

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// The formats of Input.Format.
const (
	FormatRun        = "run"             // a run directory
	FormatScrapestat = "scrapestat-json" // our JSON export
	FormatAIPerf     = "aiperf-json"     // AIPerf's
	FormatCSV        = "csv"             // a line of values for each run
)

// Input is one run of a side. Its result is only read.
type Input struct {
	Side   string // runs with the same are repeats
	Path   string // as the user named it
	Format string // "" is FormatRun
	Run    *summary.Run
	// Values are the headline of a run that was measured elsewhere; Run is then empty but for its ID. Nil is that of Run.
	Values []headline.Group
	// Interval is the time between polls in seconds, 0 when not known; then that of the updates of the endpoints stands
	// for it.
	Interval float64
	// Settings are further facts to be told apart, such as those of a manifest.
	Settings []Setting
	// Phases are those of the run, each analysed by itself. Where all runs have one of a name, its headline is compared
	// in place of that of the whole.
	Phases []Phase
}

// Setting is a fact about a run that is no measurement. An empty value is the same as none.
type Setting struct{ Kind, Name, Value string }

// Options says how runs are compared. The zero value is usable.
type Options struct {
	// Catalog says what families mean; nil is that of this program.
	Catalog *catalog.Catalog
	// Alpha is the share of false findings that is accepted; 0 means 0.05.
	Alpha float64
	// MinEffect is the least relative change worth a verdict; 0 means 0.02, less than 0 means none.
	MinEffect float64
	// Margins are the least changes worth a verdict in the headline, by the name of the row ("ttft_p99"), or of all rows
	// by ""; nil means those of package headline.
	Margins map[string]float64
	// Causes looks for them also where the headline shows no change.
	Causes bool
	// By takes series together that differ in other labels only, as that of package summary does; nil does not.
	By []string
	// Noise is how runs of this configuration varied earlier, by phase, engine, model and row of the headline; engine and
	// model are "" where there is one; nil knows nothing.
	Noise func(phase, engine, model, row string) judge.Noise
	// Metric leaves out families and derived quantities under no name that matches.
	Metric *regexp.Regexp
	// Profile leaves out what is not of this engine of the catalog, or of no use at first sight; "" leaves out nothing.
	// See Profiles.
	Profile string
	// Quantiles are the percentiles of histograms, 0 to 1; nil means 0.5 and 0.99.
	Quantiles []float64
}

// The defaults of Options.
const (
	DefaultAlpha     = 0.05
	DefaultMinEffect = 0.02
)

// check fills in the defaults and refuses what cannot be meant.
func (o *Options) check() error {
	o.Alpha = cmp.Or(o.Alpha, DefaultAlpha)
	o.MinEffect = cmp.Or(o.MinEffect, DefaultMinEffect)
	o.MinEffect = max(0, o.MinEffect)
	if !(o.Alpha > 0 && o.Alpha < 0.5) {
		return fmt.Errorf("check options: alpha is %v, want more than 0 and less than 0.5", o.Alpha)
	}
	if !(o.MinEffect < 10) {
		return fmt.Errorf("check options: the minimum effect is %v, want a share such as 0.02", o.MinEffect)
	}
	if o.Quantiles == nil {
		o.Quantiles = []float64{0.5, 0.99}
	}
	if o.Catalog == nil {
		var err error
		if o.Catalog, err = catalog.New(); err != nil {
			return fmt.Errorf("check options: %w", err)
		}
	}
	if o.Profile != "" && !slices.Contains(Profiles(o.Catalog), o.Profile) {
		return fmt.Errorf("check options: unknown profile %q (known: %s)", o.Profile, strings.Join(Profiles(o.Catalog), ", "))
	}
	return nil
}

// ErrSides is why Compare refuses runs that are all of one side.
var ErrSides = errors.New("all runs are of one side: give at least two names")

// comparer makes one comparison.
type comparer struct {
	o       Options
	sides   []string
	stocks  []*stock
	result  *Result
	dropped []string // labels that name the whole run and differ
}

// Compare compares the sides of inputs with that of the first one, in the order in which they first occur. It starts
// no goroutines and changes nothing of its arguments.
func Compare(inputs []Input, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := checkRepeats(inputs); err != nil {
		return nil, err
	}
	c := &comparer{o: o, result: &Result{Alpha: o.Alpha, MinEffect: o.MinEffect, By: o.By, Profile: o.Profile}}
	for i := range inputs {
		in := &inputs[i]
		side := slices.Index(c.sides, in.Side)
		if side < 0 {
			side = len(c.sides)
			c.sides = append(c.sides, in.Side)
			c.result.Sides = append(c.result.Sides, Side{Name: in.Side})
		}
		c.stocks = append(c.stocks, c.newStock(in, side))
		c.result.Sides[side].Runs = append(c.result.Sides[side].Runs, c.describe(in))
	}
	if len(c.sides) < 2 {
		return nil, ErrSides
	}
	c.alignTargets()
	c.dropIdentities()
	c.alignEngines()
	for _, s := range c.stocks {
		c.gather(s)
	}
	c.differences()
	rows := c.rows()
	c.assignVerdicts(rows)
	c.finish(rows)
	c.headlines(inputs)
	c.causes(rows)
	return c.result, nil
}

// finish selects and sorts the rows.
func (c *comparer) finish(rows []*draft) {
	for _, d := range rows {
		if !c.selected(d) {
			c.result.Left++
			continue
		}
		c.result.Rows = append(c.result.Rows, d.Row)
		c.result.Caveats = append(c.result.Caveats, d.caveats...)
	}
	c.result.Caveats = catalog.SortCaveats(c.result.Caveats)
	sortRows(c.result.Rows)
}

func (c *comparer) describe(in *Input) RunInfo {
	r := in.Run
	info := RunInfo{Path: in.Path, ID: r.ID, Version: r.Version, Format: in.Format, Interval: in.Interval,
		Seconds: float64(cmp.Or(r.Window.PhaseEndNS, r.Window.EndNS)-r.Window.StartNS) / 1e9, Targets: r.Servers()}
	if w := r.Window.Resolved; w != nil {
		info.Seconds, _, _ = w.Bounds()
	}
	info.Format = cmp.Or(info.Format, FormatRun)
	for i := range r.Endpoints {
		if f := &r.Endpoints[i].Fetches; info.Interval == 0 && f.HasMedian {
			info.Interval = f.MedianUpdateIntervalMS / 1000
		}
	}
	return info
}

// identityLabels name the whole of what is measured; the model, say.
var identityLabels = []string{"model_name", "model", "model_id", "served_model_name", "job", "version", "dp_size"}

// dropIdentities takes away labels that have one value in each run but not the same in all, so that two models can be
// compared; a row of Differences says so.
func (c *comparer) dropIdentities() {
	for _, name := range identityLabels {
		values := make([]string, len(c.stocks))
		single, differ := true, false
		for i, s := range c.stocks {
			var ok bool
			values[i], ok = s.onlyValue(name)
			single = single && ok
			differ = differ || values[i] != values[0]
		}
		if !single || !differ {
			continue
		}
		c.dropped = append(c.dropped, name)
		for _, s := range c.stocks {
			s.relabel(func(_ *familyEntry, l metric.Labels) metric.Labels { return l.Without(name) })
		}
		c.differ("model", name, func(i int) string { return values[i] })
	}
}

// onlyValue returns the one value a label has in a run.
func (s *stock) onlyValue(name string) (value string, ok bool) {
	for _, h := range s.families {
		for i := range h.entry {
			v, has := h.entry[i].labels.Get(name)
			if has && ok && v != value {
				return "", false
			}
			if has {
				value, ok = v, true
			}
		}
	}
	return value, ok
}

func (s *stock) relabel(f func(*familyEntry, metric.Labels) metric.Labels) {
	for _, h := range s.families {
		for i := range h.entry {
			h.entry[i].labels = f(h, h.entry[i].labels)
		}
	}
}
