package history

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// Analysis is the version of what is stored of a run; it grows when numbers become others.
const Analysis = 1

// State is what a person said of a run.
type State int

// The states. A Dropped run is in no series; at an Accepted one the level begins that new runs are held against.
const (
	Dropped State = iota
	Normal
	Accepted
)

// Run is a run of the file.
type Run struct {
	ID, Path             string
	AtNS                 int64 // start of the window, since 1970
	Commit, Branch       string
	Version, Fingerprint string  // of the engine; of the configuration
	Window               float64 // seconds
	Tags                 map[string]string
	State                State
	Note                 string
	Analysis             int
	Number               int    // among the runs of its configuration on the branch that is read, from 1; 0 for others
	beside               string // why it is in no series
	row                  int64
	place                int // in order
}

// The kinds of values: what is judged, what may explain it, and any family.
const (
	Headline = "headline"
	Cause    = "cause"
	Family   = "family"
)

// Value is a quantity of a run.
type Value struct {
	Phase, Engine, Target string // "" for the whole run; Target is the model where an engine has several
	Quantity, Unit        string
	Better                string // lower, higher, neutral
	Kind                  string
	Value                 float64 // NaN with a Note
	ErrLog, DF            float64 // of ln(Value) within the run, 0 where not known
	Low, High             float64 // provable bounds of a percentile
	Beyond                float64 // observations above a percentile
	Note                  string  // why it is no point
}

// Entry is a run to be added.
type Entry struct {
	Run
	Values   []Value
	Settings map[string]string
	Config   string // canonical JSON of what the fingerprint is made of

	facts map[string]string // the same
}

// Source is a run with what its summary does not have.
type Source struct {
	Path    string
	Phase   string // "" for the whole run
	Run     *summary.Run
	Seconds float64           // of the window
	Options map[string]string // of the recording
}

// Reading is how runs become entries.
type Reading struct {
	Catalog  *catalog.Catalog
	Keys     []string // tags that are part of the configuration
	Families bool
}

// Entry makes an entry of a run and its phases.
func (o *Reading) Entry(s Source, phases ...Source) (*Entry, error) {
	r := s.Run
	e := &Entry{Run: Run{ID: r.ID, Path: s.Path, AtNS: r.Window.StartNS, Commit: r.Tags["git.commit"],
		Branch: r.Tags["git.branch"], Window: s.Seconds, Tags: r.Tags, State: Normal, Analysis: Analysis},
		Settings: map[string]string{}}
	if s.Phase != "" {
		e.ID += "@" + s.Phase
	}
	config := map[string]string{}
	for _, x := range append([]Source{s}, phases...) {
		o.read(e, x, config)
	}
	o.infos(e, r, config)
	for name, value := range r.Tags {
		e.Settings["tag "+name] = value
		if slices.Contains(o.Keys, name) {
			config["tag "+name] = value
		}
	}
	for name, value := range s.Options {
		e.Settings["option "+name] = value
	}
	if i := slices.Index(r.Command, "--"); i >= 0 {
		e.Settings["command"] = strings.Join(r.Command[i+1:], " ")
		config["command"] = LoadCommand(r.Command[i+1:])
	}
	e.Version = cmp.Or(r.Tags["version"], e.Version)
	if e.ID == "" {
		return nil, fmt.Errorf("%s has no id of a run", s.Path)
	}
	return e, e.setConfig(config)
}

// Judged reports whether the run has a quantity of the headline.
func (e *Entry) Judged() bool {
	return slices.ContainsFunc(e.Values, func(v Value) bool { return v.Kind == Headline })
}

// setConfig sets the fingerprint: the first 12 hex digits of the SHA-256 of the sorted name=value.
func (e *Entry) setConfig(config map[string]string) error {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(h, "%s=%s\n", name, config[name])
	}
	e.facts = config
	e.Fingerprint = hex.EncodeToString(h.Sum(nil))[:12]
	text, err := json.Marshal(config)
	e.Config = string(text)
	return err
}

// read adds the values of a run or a phase.
func (o *Reading) read(e *Entry, s Source, config map[string]string) {
	groups := headline.Of(s.Run, o.Catalog)
	engines := map[string]int{}
	for i := range groups {
		engines[groups[i].Engine]++
	}
	for i := range groups {
		g := &groups[i]
		config["engine "+g.Engine] = "1"
		v := Value{Phase: s.Phase, Engine: g.Engine}
		if g.Model != "" {
			config["model "+g.Engine+" "+g.Model] = "1"
		}
		if engines[g.Engine] > 1 {
			v.Target = g.Model
		}
		had := map[string]bool{}
		for kind, list := range map[string][]headline.Value{Headline: g.Values, Cause: slices.Concat(g.Load, g.Context)} {
			for k := range list {
				if x := valueOf(v, kind, &list[k], s.Run.Options.Estimator); kind == Headline || x.Quantity != "request_rate" {
					e.Values, had[list[k].Name()] = append(e.Values, x), true
				}
			}
		}
		e.Values = append(e.Values, causes(v, s.Run, had)...)
	}
	if o.Families {
		e.Values = append(e.Values, families(s)...)
	}
}

// valueOf is a quantity of a headline as it is stored. Values of estimators do not mix: those of another one than the
// default are another quantity.
func valueOf(v Value, kind string, x *headline.Value, estimator string) Value {
	v.Kind, v.Quantity, v.Unit, v.Better = kind, x.Name(), x.Unit, x.Better.String()
	v.Value, v.Low, v.High, v.Note = x.Value, x.Low, x.High, cmp.Or(x.Missing, x.Unsure)
	noise := judge.Estimate{}
	if q, ok := x.Quantile(); ok {
		if estimator != "" && estimator != histest.Refined {
			v.Quantity += ":" + estimator
		}
		v.Beyond = x.Count * (1 - q)
		cum := make([]judge.Histogram, len(x.Cum))
		for i := range x.Cum {
			cum[i] = judge.Histogram{Bounds: x.Bounds, Cum: x.Cum[i]}
		}
		if v.Note == "" {
			noise = judge.Quantile(x.Value, q, cum)
		}
	} else if v.Note == "" {
		noise = judge.Ratio(x.Num, x.Den)
	}
	if metric.Finite(noise.Err) && metric.Finite(noise.DF) {
		v.ErrLog, v.DF = noise.Err, noise.DF
	}
	return v.checked()
}

// checked leaves out what is no number from 0 up.
func (v Value) checked() Value {
	if v.Note == "" && !(v.Value >= 0 && metric.Finite(v.Value)) {
		v.Note = "not a number from 0 up"
	}
	if v.Note != "" {
		v.Value = math.NaN()
	}
	return v
}

// causes are quantities of an engine that may explain a change: means of stages, and what is derived across engines.
func causes(v Value, r *summary.Run, had map[string]bool) (out []Value) {
	add := func(name, unit, better string, value float64) {
		if x := v; !had[name] {
			had[name] = true
			x.Kind, x.Quantity, x.Unit, x.Better, x.Value, x.Low, x.High = Cause, name, unit, better, value, math.NaN(),
				math.NaN()
			out = append(out, x.checked())
		}
	}
	own := func(l metric.Labels) bool { // of the engine, or where it has several of the model
		for _, value := range l.All() {
			if v.Target != "" && value != v.Target {
				return false
			}
		}
		return l.Without(r.Options.Catalog.KeptLabels()...).Len() == 0
	}
	for i := range r.Latencies {
		l := &r.Latencies[i]
		if h := l.Histogram; l.Engine == v.Engine && own(l.Labels) && h != nil && h.Count > 0 && !h.NoSum {
			add(strings.TrimSuffix(l.ID, "_s")+"_mean", "seconds", "lower", l.Histogram.Avg)
		}
	}
	if len(r.Combined) > 0 {
		for i := range r.Combined[0].Derived {
			d := &r.Combined[0].Derived[i]
			if d.Canonical != "" && d.Pack == v.Engine && own(d.Labels) && d.Status.Certain() && d.Status.Defined() {
				name := d.Canonical
				if strings.HasSuffix(name, "_mean_s") {
					name = strings.TrimSuffix(name, "_s")
				}
				add(name, d.Unit, d.Better.String(), d.Value)
			}
		}
	}
	return out
}

// families are the rate, mean, p50 and p99 of all series of a run, target by target.
func families(s Source) (out []Value) {
	r := s.Run
	for i := range r.Metrics {
		m := &r.Metrics[i]
		for k := range m.Series {
			x := &m.Series[k]
			if !summary.StatusOf(x.Increase.Status).Certain() {
				continue
			}
			add := func(stat, unit string, value float64) {
				v := Value{Phase: s.Phase, Kind: Family, Target: path.Base(r.Endpoints[x.Endpoint].Name), Unit: unit,
					Better: "neutral", Quantity: m.Name + x.Labels.String() + " " + stat, Value: value, Low: math.NaN(),
					High: math.NaN()}
				if metric.Finite(value) {
					out = append(out, v)
				}
			}
			switch unit := m.ShownUnit(); {
			case x.Counter != nil && x.Counter.Defined:
				add("rate", "1/s", x.Counter.Rate)
			case x.Gauge != nil && x.Gauge.N > 0:
				add("mean", unit, x.Gauge.Avg)
			case x.Histogram != nil && x.Histogram.Count > 0:
				add("mean", unit, x.Histogram.Avg)
				add("rate", "1/s", x.Histogram.CountRate)
				for _, q := range []float64{0.5, 0.99} {
					at := slices.Index(r.Options.Quantiles, q)
					if at >= 0 && at < len(x.Histogram.Quantiles) {
						add(histest.PercentileName(q), unit, x.Histogram.Quantiles[at].Value)
					}
				}
			}
		}
	}
	return out
}

// machineSizes are labels of settings that an engine computes at its start from what the machine has free.
var machineSizes = regexp.MustCompile(`^(num_gpu_blocks|kv_cache_size_tokens|kv_cache_max_concurrency)$`)

// changing are labels that say which version is measured: that is what changes between runs of one configuration.
var changing = regexp.MustCompile(`(?i)version|commit|revision|build|patchlevel`)

// infos adds the labels of the families of settings, and the version of the engine.
func (o *Reading) infos(e *Entry, r *summary.Run, config map[string]string) {
	volatile := o.Catalog.VolatileLabels()
	for i := range r.Metrics {
		m := &r.Metrics[i]
		name := m.Name
		f, known := o.Catalog.Family(name)
		if known {
			name = f.Name
		}
		if !catalog.Configuration(name) {
			continue
		}
		values := map[string][]string{}
		for k := range m.Series {
			for label, value := range m.Series[k].Labels.Without(volatile...).All() {
				if !slices.Contains(values[label], value) {
					values[label] = append(values[label], value)
				}
			}
		}
		for label, list := range values {
			slices.Sort(list)
			key, value := strings.TrimSuffix(name, "_info")+" "+label, strings.Join(list, ", ")
			e.Settings[key] = value
			own := known && (slices.Contains(volatile, label) || slices.Contains(f.Volatile, label))
			switch {
			case label == "version" && known && len(e.Values) > 0 && f.Engine == e.Values[0].Engine:
				e.Version = value
			case !own && !machineSizes.MatchString(label) && !changing.MatchString(label):
				config["info "+key] = value
			}
		}
	}
}

// varying are flags of load generators whose values differ from run to run without a meaning.
var varying = regexp.MustCompile(`(?i)seed|^-+([\w-]+[-_])?port$|^-+o(ut(put)?)?$|^--save|^--metadata$|` +
	`(out|output|result|log|artifact|export)[-_](dir|file|path|filename|prefix|json)`)

// address is the port of one.
var address = regexp.MustCompile(`:\d{2,5}\b`)

// LoadCommand is the command of a load less seeds, ports and output paths: what makes two loads the same.
func LoadCommand(args []string) string {
	var out []string
	for i := 0; i < len(args); i++ {
		name, _, has := strings.Cut(args[i], "=")
		if strings.HasPrefix(name, "-") && varying.MatchString(name) {
			if !has && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !strings.HasPrefix(name, "--save") {
				i++
			}
			continue
		}
		out = append(out, address.ReplaceAllString(args[i], ""))
	}
	return strings.Join(out, " ")
}
