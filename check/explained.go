package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/suggest"
)

// verdict is what explain says first, a word; all else that is asked of it is a share or seconds.
const verdict = "verdict"

// conditions are findings that no time belongs to: they hold also where the time of requests is not known.
var conditions = []string{"restart", "errors", "aborts", "rejections"}

// explained are the names that expressions of explain may have.
func explained() []string { return append(explain.DefaultRules().Names(), explain.Rows()...) }

// validateExplained finds what no run could make right in an expression of explain.
func (d *Assertion) validateExplained() error {
	names := explained()
	if d.Grouped {
		return fmt.Errorf("by: explain tells each engine, model and stage by itself; select one by its labels")
	}
	if d.Metric == verdict {
		if d.Stat.Name != "" || d.Op != Same && d.Op != Differs {
			return fmt.Errorf("want explain:verdict == FINDING, or !=")
		}
		if !slices.Contains(names, explain.Kind(d.Want.Word)) {
			return fmt.Errorf("unknown finding %q%s", d.Want.Word, suggest.Clause(d.Want.Word, names))
		}
		return nil
	}
	if !slices.Contains(names, explain.Kind(d.Metric)) {
		return fmt.Errorf("explain has no finding or row %q%s", d.Metric, suggest.Clause(d.Metric, append(names, verdict)))
	}
	unit := map[string]string{"share": "ratio", "seconds": "seconds"}[d.Stat.Name]
	if unit == "" {
		return fmt.Errorf("which of %s? known: share, seconds", d.Metric)
	}
	if d.Want.Baseline {
		return nil
	}
	_, err := convert(d.Want.Value, d.Want.Unit, unit)
	return err
}

// explanations reads what explain tells of each engine, model and stage.
func (e *Evidence) explanations(d *Assertion) (out []Measurement) {
	if len(e.Explained) == 0 {
		return []Measurement{missing("the run was not explained: a recording is needed, not an export")}
	}
	for _, r := range e.Explained {
		m := Measurement{}
		if d.Metric == verdict {
			m = ofVerdict(r, d.Want.Word)
		} else {
			m = ofFinding(r, d)
		}
		m.Target, m.Labels = r.Engine, r.Of
		matched := !slices.ContainsFunc(d.Match, func(m Matcher) bool {
			v, _ := r.Of.Get(m.Label)
			if m.Label == "engine" {
				v = r.Engine
			}
			return !m.Matches(v)
		})
		if matched {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return []Measurement{missing("no engine of the run has these labels")}
	}
	return out
}

// untold is why nothing can be told of an engine.
func untold(r *explain.Result) Measurement {
	return missing("cannot tell: %s", strings.Join(r.Missing, ", "))
}

func ofVerdict(r *explain.Result, want string) Measurement {
	if r.Verdict == "cannot_tell" && want != r.Verdict {
		return untold(r)
	}
	return Measurement{Word: r.Verdict}
}

// ofFinding reads a finding, or a row of the waterfall. What waited for what nobody shows may be any of the queues.
func ofFinding(r *explain.Result, d *Assertion) Measurement {
	seconds, share := r.Row(d.Metric), math.NaN()
	if r.Mean > 0 {
		share = seconds / r.Mean
	}
	condition := slices.Contains(conditions, d.Metric)
	if condition {
		seconds, share = math.NaN(), 0
	}
	found := slices.IndexFunc(r.Findings, func(f explain.Finding) bool { return f.ID == d.Metric })
	if found >= 0 {
		seconds, share = r.Findings[found].Seconds, r.Findings[found].Share
	} else if condition && d.Metric != "restart" && r.Requests == 0 || !condition && (math.IsNaN(share) ||
		slices.ContainsFunc(r.Findings, func(f explain.Finding) bool { return f.ID == "cannot_tell" })) {
		return untold(r)
	}
	m := exact(share, "ratio")
	if d.Stat.Name == "seconds" {
		m = exact(seconds, "seconds")
	}
	if unknown := r.Row("queue_unknown"); unknown > 0 && strings.HasPrefix(d.Metric, "queue_") &&
		d.Metric != "queue_unknown" && d.Metric != "queue_admission" {
		if d.Stat.Name == "share" {
			unknown /= r.Mean
		}
		m.Unsure, m.High, m.Note = true, m.Value+unknown, "some waited for what is not shown"
	}
	return m
}

// word holds a word against the one that is wanted.
func (d *Assertion) word(r Measurement) Outcome {
	o := Outcome{Measurement: r, Verdict: Fail}
	if (r.Word == d.Want.Word || explain.Kind(r.Word) == d.Want.Word) == (d.Op == Same) {
		o.Verdict = Pass
	}
	return o
}
