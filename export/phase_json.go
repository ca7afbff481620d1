package export

import (
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// phaseSchema is the version of AIPerf's files of single phases, and of its list of them.
const phaseSchema = 1

// Phase is a stretch of a run as AIPerf counts phases: they follow each other, numbered in the order of time.
type Phase struct {
	Index          int
	Profiling      int    // index among those that were measured; -1 of a warm-up
	Name, Kind     string // Kind is metric.PhaseWarmup or metric.PhaseProfiling
	StartNS, EndNS int64
	// File is where its statistics are, with slashes and relative to the list of phases; "" where there are none.
	File string
	// Of is the phase of the run that it is of, and Whole whether all of it.
	Of    summary.Phase
	Whole bool
}

// Phases are those of a run: of several at a time the one that began last, cool-downs are none.
func Phases(r *summary.Run) []Phase {
	var all []summary.Phase
	var edges []int64
	for _, p := range r.Phases {
		if p.Name != metric.PhaseCooldown || p.Kind != "" {
			all, edges = append(all, p), append(edges, p.StartNS, p.EndNS)
		}
	}
	slices.Sort(edges)
	var out []Phase
	var of []int
	for i := 1; i < len(edges); i++ {
		from, to, at := edges[i-1], edges[i], -1
		for k, p := range all {
			if p.StartNS <= from && from < p.EndNS {
				at = k
			}
		}
		if n := len(out); at < 0 || from == to {
			continue
		} else if n > 0 && of[n-1] == at && out[n-1].EndNS == from {
			out[n-1].EndNS = to
		} else {
			out, of = append(out, Phase{Name: all[at].Name, Kind: kindOf(&all[at]), StartNS: from, EndNS: to, Of: all[at]}),
				append(of, at)
		}
	}
	return numbered(out)
}

// kindOf is a warm-up by its kind, or one that we made.
func kindOf(p *summary.Phase) string {
	if p.Kind == metric.PhaseWarmup || p.Kind != metric.PhaseProfiling && p.Name == metric.PhaseWarmup {
		return metric.PhaseWarmup
	}
	return metric.PhaseProfiling
}

// numbered gives phases their indices and files.
func numbered(phases []Phase) []Phase {
	measured, seen := 0, map[string]int{}
	for i := range phases {
		p := &phases[i]
		p.Index, p.Profiling, p.Whole = i, -1, p.StartNS == p.Of.StartNS && p.EndNS == p.Of.EndNS
		if p.Kind == metric.PhaseProfiling {
			p.Profiling = measured
			measured++
		}
		folder := folderOf(p.Name)
		if seen[folder]++; seen[folder] > 1 {
			folder += "~" + strconv.Itoa(seen[folder])
		}
		p.File = path.Join("phases", folder, "server_metrics.json")
	}
	return phases
}

// folderOf is a name of a phase as one of a folder.
func folderOf(name string) string {
	out := []byte(name)
	for i, c := range out {
		if c == '/' || c == '\\' || c == ':' || c == '~' || c < ' ' || c == '*' || c == '?' || c == '"' || c == '<' ||
			c == '>' || c == '|' {
			out[i] = '_'
		}
	}
	if out[0] == '.' || out[0] == ' ' {
		out[0] = '_'
	}
	return string(out)
}

// jsonPhaseInfo is a phase in AIPerf's files, the keys in their order.
type jsonPhaseInfo struct {
	EndNS     int64  `json:"end_ns"`
	Index     scalar `json:"phase_index"`
	Kind      string `json:"phase_kind"`
	Name      string `json:"phase_name"`
	Profiling scalar `json:"profiling_index"`
	File      string `json:"server_metrics_json,omitzero"` // in the list alone
	StartNS   int64  `json:"start_ns"`
	Cancelled bool   `json:"was_cancelled"`
}

// jsonPhaseFile is AIPerf's file of one phase.
type jsonPhaseFile struct {
	Data     *jsonPhaseData `json:"data"`
	Phase    *jsonPhaseInfo `json:"phase"`
	Schema   int            `json:"schema_version"`
	Warnings []string       `json:"warnings"`
}

type jsonPhaseData struct {
	ID         string                    `json:"benchmark_id,omitzero"`
	EndNS      int64                     `json:"end_ns"`
	Endpoints  object[jsonPhaseEndpoint] `json:"endpoint_summaries"`
	Configured []string                  `json:"endpoints_configured"`
	Successful []string                  `json:"endpoints_successful"`
	Phase      string                    `json:"phase"`
	Index      scalar                    `json:"phase_index"`
	Kind       string                    `json:"phase_kind"`
	Name       string                    `json:"phase_name"`
	Profiling  scalar                    `json:"profiling_index"`
	StartNS    int64                     `json:"start_ns"`
}

type jsonPhaseEndpoint struct {
	URL     string             `json:"endpoint_url"`
	Info    jsonFetches        `json:"info"`
	Metrics object[jsonMetric] `json:"metrics"`
}

func (p *Phase) info(file string) *jsonPhaseInfo {
	return &jsonPhaseInfo{EndNS: p.EndNS, Index: integer(p.Index), Kind: p.Kind, Name: p.Name,
		Profiling: integer(p.Profiling).when(p.Profiling >= 0), File: file, StartNS: p.StartNS}
}

// PhaseJSON writes the statistics of a phase as AIPerf does; r is a result of that phase.
func PhaseJSON(w io.Writer, r *summary.Run, p *Phase, o Options) error {
	d := &document{run: r, o: o, nine: pickNine(r.Options.Quantiles)}
	data := &jsonPhaseData{ID: r.ID, StartNS: r.Window.StartNS, EndNS: r.Window.EndNS, Phase: p.Kind, Kind: p.Kind,
		Name: p.Name, Index: integer(p.Index), Profiling: integer(p.Profiling).when(p.Profiling >= 0)}
	var at []int
	for i := range r.Endpoints {
		if e := &r.Endpoints[i]; e.InWindow != nil && !e.Client() && !slices.Contains(data.Configured, e.URL) {
			data.Configured, at = append(data.Configured, e.URL), append(at, i)
		}
	}
	data.Successful = data.Configured
	data.Endpoints = func(yield func(string, jsonPhaseEndpoint) bool) {
		seen := map[string]bool{}
		for _, i := range at {
			e := &r.Endpoints[i]
			name := displayName(e.URL)
			if seen[name] {
				name = e.URL
			}
			seen[name] = true
			if !yield(name, jsonPhaseEndpoint{URL: e.URL, Info: *fetchesOf(e.InWindow), Metrics: d.metricsAt(i)}) {
				return
			}
		}
	}
	return writeJSON(w, &jsonPhaseFile{Data: data, Phase: p.info(""), Schema: phaseSchema, Warnings: []string{}})
}

// metricsAt are the metrics of one endpoint, whose address is told elsewhere.
func (d *document) metricsAt(endpoint int) object[jsonMetric] {
	return func(yield func(string, jsonMetric) bool) {
		for i := range d.run.Metrics {
			m := d.run.Metrics[i]
			m.Series = slices.DeleteFunc(slices.Clone(m.Series), func(s summary.Series) bool { return s.Endpoint != endpoint })
			if !exported(d.run, m) {
				continue
			}
			x := d.metric(&m)
			series := x.Series
			x.Series = func(yield func(jsonSeries) bool) {
				for s := range series {
					if s.URL = ""; !yield(s) {
						return
					}
				}
			}
			if !yield(m.Name, x) {
				return
			}
		}
	}
}

// PhaseManifest writes AIPerf's list of phases.
func PhaseManifest(w io.Writer, phases []Phase) error {
	return writeJSON(w, &jsonManifest{Phases: listOf(phases, func(p *Phase) jsonPhaseInfo { return *p.info(p.File) }),
		Schema: phaseSchema})
}

type jsonManifest struct {
	Phases list[jsonPhaseInfo] `json:"phases"`
	Schema int                 `json:"schema_version"`
}

func writeJSON(w io.Writer, v any) error {
	e := &encoder{w: w, fields: map[reflect.Type][]jsonField{}}
	e.value(reflect.ValueOf(v).Elem())
	if err := e.flush(); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// maxManifest bounds a list of phases that is read, and maxPhases how many it has.
const (
	maxManifest = 64 << 20
	maxPhases   = 10_000
)

// ReadPhaseManifest reads AIPerf's phase_manifest.json. Paths are as the file has them: they may lead anywhere.
func ReadPhaseManifest(r io.Reader) ([]Phase, error) {
	limited := &io.LimitedReader{R: r, N: maxManifest}
	var doc struct {
		jsonManifest
		Schema jsontext.Value `json:"schema_version"`
	}
	d := jsontext.NewDecoder(limited, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.UnmarshalDecode(d, &doc); err != nil {
		if limited.N <= 0 {
			err = fmt.Errorf("larger than %d bytes", maxManifest)
		}
		return nil, fmt.Errorf("read list of phases: %w", err)
	}
	if err := checkPhaseSchema(doc.Schema); err != nil {
		return nil, fmt.Errorf("read list of phases: %w", err)
	}
	var out []Phase
	for p := range doc.Phases.all() {
		if (metric.Mark{Name: p.Name}).Validate() != nil || len(out) == maxPhases {
			return nil, errors.New("read list of phases: a phase has no proper name, or there are too many")
		}
		out = append(out, p.phase())
	}
	if len(out) == 0 {
		return nil, errors.New("read list of phases: it has none")
	}
	return out, nil
}

func (p *jsonPhaseInfo) phase() Phase {
	out := Phase{Name: p.Name, Kind: p.Kind, StartNS: p.StartNS, EndNS: p.EndNS, File: p.File, Profiling: -1}
	if n, ok := p.Index.whole(); ok {
		out.Index = int(n)
	}
	if n, ok := p.Profiling.whole(); ok && p.Profiling.given() {
		out.Profiling = int(n)
	}
	return out
}

func checkPhaseSchema(v jsontext.Value) error {
	if text := string(v); text != strconv.Itoa(phaseSchema) {
		return fmt.Errorf("its schema is %.40s, this program reads %d", text, phaseSchema)
	}
	return nil
}

// anyJSON is either of AIPerf's documents of statistics: its phase files have an integer for a schema.
type anyJSON struct {
	jsonExport
	Schema jsontext.Value `json:"schema_version"`
	Phase  jsontext.Value `json:"phase"`
	Data   *jsonPhaseData `json:"data"`
}

// document is the export that it is, or one of a phase as if it were.
func (a *anyJSON) document() (*jsonExport, error) {
	if len(a.Phase) == 0 || a.Phase.Kind() != '{' {
		if len(a.Schema) > 0 && a.Schema.Kind() != 'n' {
			if err := json.Unmarshal(a.Schema, &a.jsonExport.Schema); err != nil {
				return nil, fmt.Errorf("its schema is %.40s, this program reads 1.0 and 1.1", a.Schema)
			}
		}
		return &a.jsonExport, nil
	}
	if err := checkPhaseSchema(a.Schema); err != nil {
		return nil, err
	}
	var p jsonPhaseInfo
	if err := json.Unmarshal(a.Phase, &p); err != nil {
		return nil, err
	}
	if a.Data == nil {
		return nil, fmt.Errorf("nothing was collected in the phase %q", p.Name)
	}
	return a.Data.export(&p), nil
}

// export is the phase as a document of a run.
func (d *jsonPhaseData) export(p *jsonPhaseInfo) *jsonExport {
	x := &jsonExport{ID: d.ID, Tool: "AIPerf", Schema: "1", Phase: p.Name, Summary: &jsonSummary{Configured: d.Configured,
		Successful: d.Successful, Phases: &jsonPhases{Profiling: period(p.StartNS, p.EndNS)}}}
	metrics := map[string]*jsonMetric{}
	series := map[string][]jsonSeries{}
	var names []string
	for _, e := range d.Endpoints.all() {
		for name, m := range e.Metrics.all() {
			have := metrics[name]
			if have == nil {
				have = &m
				names, metrics[name] = append(names, name), have
			}
			for s := range m.Series.all() {
				if s.URL = e.URL; have.Type == m.Type {
					series[name] = append(series[name], s)
				}
			}
		}
	}
	x.Summary.Info = func(yield func(string, jsonFetches) bool) {
		for _, e := range d.Endpoints.all() {
			if !yield(e.URL, e.Info) {
				return
			}
		}
	}
	slices.Sort(names)
	x.Metrics = func(yield func(string, jsonMetric) bool) {
		for _, name := range names {
			m := *metrics[name]
			if m.Series = list[jsonSeries](slices.Values(series[name])); !yield(name, m) {
				return
			}
		}
	}
	return x
}
