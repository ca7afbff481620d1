package doctor

import (
	"cmp"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Report is what an examination found. Its texts are made of what a target sent: they hold no control characters, and
// no secret of the target.
type Report struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url"`
	// Collectable reports whether a run would record samples of this target, at Endpoint, which differs from URL after a
	// redirect or at an alternate path.
	Collectable bool   `json:"collectable"`
	Endpoint    string `json:"endpoint,omitempty"`
	Outcome     string `json:"outcome"`          // of the first question, as in exports
	Status      int    `json:"status,omitempty"` // HTTP, of the first question
	Error       string `json:"error,omitempty"`

	Engines     []Engine `json:"engines,omitempty"` // the most specific first
	ContentType string   `json:"content_type,omitempty"`
	Format      string   `json:"format,omitempty"`

	BodyBytes int64  `json:"body_bytes"`
	Samples   int    `json:"samples"`
	Families  int    `json:"families"`
	Empty     int    `json:"families_without_samples"`
	Series    int    `json:"series"` // a histogram is one
	Dropped   []Drop `json:"dropped,omitempty"`
	// Known is how many of the families packs know, and Unknown are the others.
	Known   int      `json:"known_families,omitempty"`
	Unknown []string `json:"unknown_families,omitempty"`

	Models []Model `json:"models,omitempty"` // the most series first

	Tries   []Attempt `json:"tries"`
	Cost    Cost      `json:"cost"`
	SkewMS  *float64  `json:"clock_skew_ms,omitempty"` // the server's clock less ours; its header has whole seconds
	Finding []Finding `json:"findings"`
}

// Engine is a program behind the target.
type Engine struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	VersionFrom string `json:"version_from,omitempty"`
}

// Model is a model that the series of the target name.
type Model struct {
	Name   string `json:"name"` // with its version where the server tells one
	Series int    `json:"series"`
}

// modelsOf counts the series of each model; clean makes a text of the server plain.
func modelsOf(d *metric.Schema, clean func(string) string) (out []Model) {
	n := map[string]int{}
	for i := range d.Series {
		name, version := "", ""
		for label, value := range d.Series[i].Labels.All() {
			switch label {
			case "model", "model_name":
				name = cmp.Or(name, value)
			case "version", "model_version":
				version = " version " + value
			}
		}
		if name != "" {
			n[name+version]++
		}
	}
	for name, series := range n {
		out = append(out, Model{clean(name), series})
	}
	slices.SortFunc(out, func(a, b Model) int {
		return cmp.Or(cmp.Compare(b.Series, a.Series), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Drop is lines of the body that would not be stored.
type Drop struct {
	Reason string `json:"reason"`
	Lines  int    `json:"lines"`
	First  string `json:"first"`
}

// Attempt is one question and what came of it.
type Attempt struct {
	What        string  `json:"what"` // "text", "openmetrics", "protobuf", "gzip", "path"
	URL         string  `json:"url"`
	Outcome     string  `json:"outcome"`
	Status      int     `json:"status,omitempty"`
	ContentType string  `json:"content_type,omitempty"`
	Format      string  `json:"format,omitempty"`
	Encoding    string  `json:"encoding,omitempty"`
	WireBytes   int64   `json:"wire_bytes"`
	Samples     int     `json:"samples"`
	TookMS      float64 `json:"took_ms"`
}

// Cost is what scraping costs, from a few scrapes in a row.
type Cost struct {
	Scrapes int `json:"scrapes"`
	// AnswerMS is the median time from the request to the end of the body, less the time of a connect: what the server
	// spent, as nearly as can be seen.
	AnswerMS float64 `json:"answer_ms"`
	// Changed is how many of the samples change from one scrape to the next, on average.
	Changed float64 `json:"changed_samples"`
	// SmallestMS is the shortest interval at which the server stays below the share, RecommendedMS the one to use, and
	// Why its reason.
	SmallestMS    float64 `json:"smallest_interval_ms"`
	RecommendedMS float64 `json:"recommended_interval_ms"`
	Why           string  `json:"why,omitempty"`
	// BytesPerHour estimates the recording at the recommended interval.
	BytesPerHour int64 `json:"recording_bytes_per_hour"`
}

// Recommended returns the interval to scrape at.
func (c *Cost) Recommended() time.Duration { return time.Duration(c.RecommendedMS * 1e6) }

// Level says how bad a finding is.
type Level string

// The levels. An error keeps samples from being collected, a warning makes some numbers wrong or absent, and a note is
// good to know.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Note    Level = "note"
)

// Finding is one thing to know about a target.
type Finding struct {
	Level  Level  `json:"level"`
	Code   string `json:"code"` // a stable word
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // what to do; "" when there is nothing to do
}

func (r *Report) add(l Level, code, text, remedy string) {
	r.Finding = append(r.Finding, Finding{l, code, text, remedy})
}

func (r *Report) is(engine string) bool {
	for _, e := range r.Engines {
		if e.ID == engine {
			return true
		}
	}
	return false
}
