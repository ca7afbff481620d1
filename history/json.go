package history

import (
	"io"
	"time"

	"github.com/scrapestat/scrapestat/history/changepoint"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

// jsonSchema is the version of the document: fields are added, never renamed.
const jsonSchema = 1

// JSON writes the whole view, with two spaces of indent and a newline at the end. Numbers that do not exist are null.
// Indices count from 0 along the points of a series that are in no way beside it. The same runs give the same bytes,
// in whatever order they were added.
func (v *View) JSON(w io.Writer) error {
	configs := texttab.NewList(v.Configs, func(c *Config) texttab.Object {
		return texttab.NewObject("fingerprint", c.Fingerprint, "runs", c.Runs, "config", c.Facts)
	})
	return texttab.NewObject("schema", "scrapestat.history", "schema_version", jsonSchema).Known("branch", v.Branch).
		With("runs", len(v.Runs), "configurations", configs, "events", texttab.NewList(v.Events, (*Event).json), "series",
			texttab.NewList(v.Series, func(s **Series) texttab.Object { return (*s).json() })).WriteJSON(w)
}

func (e *Event) json() texttab.Object {
	return texttab.NewObject("kind", e.Kind, "verdict", e.Word(), "fingerprint", e.Fingerprint).
		Known("phase", e.Phase, "engine", e.Engine, "target", e.Target, "settings", e.Settings).
		With("changes", texttab.NewList(e.Changes, (*Change).json))
}

func (r *Run) json() texttab.Object {
	return texttab.Object{}.Known("run", r.Number).With("run_id", r.ID, "at", r.at()).Known("commit", r.Commit)
}

// at is when the run began.
func (r *Run) at() string { return time.Unix(0, r.AtNS).UTC().Format(time.RFC3339) }

func (c *Change) json() texttab.Object {
	return texttab.NewObject("quantity", c.Quantity, "index", c.Index, "change", c.Change.Change, "low", c.Low, "high",
		c.High, "p", c.P, "n_before", c.PointsBefore, "n_after", c.Points, "verdict", c.Word, "minor", c.Minor).
		Known("accepted", c.Accepted, "edge_of_drift", c.Edge).
		With("before", c.Before.json(), "at", c.At.json(), "at_the_latest", c.Last.json())
}

func (s *Series) json() texttab.Object {
	center, spread, n := s.Level()
	noise := s.Noise(nil)
	return texttab.NewObject("fingerprint", s.Fingerprint).
		Known("phase", s.Phase, "engine", s.Engine, "target", s.Target).With("quantity", s.Quantity).Known("unit", s.Unit).
		With("better", s.Better, "kind", s.Kind, "log", s.Found.Log, "sigma", s.Found.Sigma, "unstable", s.Found.Unstable,
			"last_segment", texttab.NewObject("runs", n, "mean", center, "spread", spread, "noise", noise.S, "noise_df",
				noise.DF),
			"segments", s.Found.Segments, "outliers", append([]int{}, s.Found.Outliers...),
			"changes", texttab.NewList(s.Changes(), (*Change).json),
			"drifts", texttab.NewList(s.Found.Drifts, func(d *changepoint.Drift) texttab.Object {
				return texttab.NewObject("start", d.Start, "end", d.End, "change", d.Change)
			}),
			"points", texttab.NewList(s.Points, func(p *Point) texttab.Object {
				return p.json().With("value", p.Value).Known("beside", p.Beside)
			}))
}
