package history

import (
	"encoding/json"
	"io"
	"time"
)

// jsonSchema is the version of the document: fields are added, never renamed.
const jsonSchema = 1

// JSON writes the whole view, with two spaces of indent and a newline at the end. Numbers that do not exist are null.
// Indices count from 0 along the points of a series that are in no way beside it. The same runs give the same bytes,
// in whatever order they were added.
func (v *View) JSON(w io.Writer) error {
	doc := jsonView{Schema: "scrapestat.history", Version: jsonSchema, Branch: v.Branch, Runs: len(v.Runs),
		Configs: []jsonConfig{}, Series: []jsonSeries{}, Events: []jsonEvent{}}
	for _, c := range v.Configs {
		doc.Configs = append(doc.Configs, jsonConfig{c.Fingerprint, c.Runs, c.Facts})
	}
	for _, s := range v.Series {
		doc.Series = append(doc.Series, s.json())
	}
	for i := range v.Events {
		e := &v.Events[i]
		x := jsonEvent{Kind: e.Kind, Verdict: e.Word(), Fingerprint: e.Fingerprint, Phase: e.Phase, Engine: e.Engine,
			Target: e.Target, Settings: e.Settings}
		for k := range e.Changes {
			x.Changes = append(x.Changes, e.Changes[k].json())
		}
		doc.Events = append(doc.Events, x)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(doc)
}

type jsonView struct {
	Schema  string       `json:"schema"`
	Version int          `json:"schema_version"`
	Branch  string       `json:"branch,omitempty"`
	Runs    int          `json:"runs"`
	Configs []jsonConfig `json:"configurations"`
	Events  []jsonEvent  `json:"events"`
	Series  []jsonSeries `json:"series"`
}

type jsonConfig struct {
	Fingerprint string            `json:"fingerprint"`
	Runs        int               `json:"runs"`
	Config      map[string]string `json:"config"`
}

type jsonEvent struct {
	Kind        string       `json:"kind"`
	Verdict     string       `json:"verdict"`
	Fingerprint string       `json:"fingerprint"`
	Phase       string       `json:"phase,omitempty"`
	Engine      string       `json:"engine,omitempty"`
	Target      string       `json:"target,omitempty"`
	Settings    []Setting    `json:"settings,omitempty"`
	Changes     []jsonChange `json:"changes"`
}

type jsonRun struct {
	Run    int    `json:"run,omitempty"`
	ID     string `json:"run_id"`
	At     string `json:"at"`
	Commit string `json:"commit,omitempty"`
}

type jsonChange struct {
	Quantity string   `json:"quantity"`
	Index    int      `json:"index"`
	Change   *float64 `json:"change"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
	P        *float64 `json:"p"`
	NBefore  int      `json:"n_before"`
	NAfter   int      `json:"n_after"`
	Verdict  string   `json:"verdict"`
	Minor    bool     `json:"minor"`
	Accepted bool     `json:"accepted,omitempty"`
	Edge     bool     `json:"edge_of_drift,omitempty"`
	Before   jsonRun  `json:"before"`
	At       jsonRun  `json:"at"`
	Last     jsonRun  `json:"at_the_latest"`
}

type jsonPoint struct {
	jsonRun
	Value  *float64 `json:"value"`
	Beside string   `json:"beside,omitempty"`
}

type jsonDrift struct {
	Start  int      `json:"start"`
	End    int      `json:"end"`
	Change *float64 `json:"change"`
}

type jsonLevel struct {
	Runs   int      `json:"runs"`
	Mean   *float64 `json:"mean"`
	Spread *float64 `json:"spread"`
	S      *float64 `json:"noise"`
	DF     float64  `json:"noise_df"`
}

type jsonSeries struct {
	Fingerprint string       `json:"fingerprint"`
	Phase       string       `json:"phase,omitempty"`
	Engine      string       `json:"engine,omitempty"`
	Target      string       `json:"target,omitempty"`
	Quantity    string       `json:"quantity"`
	Unit        string       `json:"unit,omitempty"`
	Better      string       `json:"better"`
	Kind        string       `json:"kind"`
	Log         bool         `json:"log"`
	Sigma       float64      `json:"sigma"`
	Unstable    bool         `json:"unstable"`
	Level       jsonLevel    `json:"last_segment"`
	Segments    []int        `json:"segments"`
	Outliers    []int        `json:"outliers"`
	Changes     []jsonChange `json:"changes"`
	Drifts      []jsonDrift  `json:"drifts"`
	Points      []jsonPoint  `json:"points"`
}

func number(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

func (r *Run) json() jsonRun {
	return jsonRun{r.Number, r.ID, time.Unix(0, r.AtNS).UTC().Format(time.RFC3339), r.Commit}
}

func (c *Change) json() jsonChange {
	return jsonChange{Quantity: c.Quantity, Index: c.Index, Change: number(c.Change.Change), Low: number(c.Low),
		High: number(c.High), P: number(c.P), NBefore: c.PointsBefore, NAfter: c.Points, Verdict: c.Word, Minor: c.Minor,
		Accepted: c.Accepted, Edge: c.Edge, Before: c.Before.json(), At: c.At.json(), Last: c.Last.json()}
}

func (s *Series) json() jsonSeries {
	out := jsonSeries{Fingerprint: s.Fingerprint, Phase: s.Phase, Engine: s.Engine, Target: s.Target, Quantity: s.Quantity,
		Unit: s.Unit, Better: s.Better, Kind: s.Kind, Log: s.Found.Log, Sigma: s.Found.Sigma, Unstable: s.Found.Unstable,
		Segments: s.Found.Segments, Outliers: append([]int{}, s.Found.Outliers...), Changes: []jsonChange{},
		Drifts: []jsonDrift{}}
	center, spread, n := s.Level()
	noise := s.Noise(nil)
	out.Level = jsonLevel{n, number(center), number(spread), number(noise.S), noise.DF}
	for _, c := range s.Changes() {
		out.Changes = append(out.Changes, c.json())
	}
	for _, d := range s.Found.Drifts {
		out.Drifts = append(out.Drifts, jsonDrift{d.Start, d.End, number(d.Change)})
	}
	for i := range s.Points {
		p := &s.Points[i]
		out.Points = append(out.Points, jsonPoint{p.json(), number(p.Value), p.Beside})
	}
	return out
}
