package doctor

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/metric"
)

// judge applies the rules, the worst findings first: what keeps samples away, what of the transport is odd, what the
// engine does not show, what is odd in the body.
func (e *exam) judge() {
	earlier := e.r.Finding
	e.r.Finding = []Finding{}
	if e.body == nil {
		e.judgeRefusal()
	} else {
		e.judgePath()
		e.judgeEngines()
		e.judgeBody()
	}
	if e.r.SkewMS != nil && math.Abs(*e.r.SkewMS) > 2000 {
		e.r.add(Warning, "clock_skew", fmt.Sprintf("the clock of the server is %+.1f s against ours", *e.r.SkewMS/1e3),
			"a run measures with one clock and is not harmed; set the clocks before comparing with logs of the server")
	}
	e.r.Finding = append(e.r.Finding, earlier...)
	var sorted []Finding
	for _, level := range []Level{Error, Warning, Note} {
		for _, f := range e.r.Finding {
			if f.Level == level {
				f.Text = e.text(f.Text)
				sorted = append(sorted, f)
			}
		}
	}
	if sorted != nil {
		e.r.Finding = sorted
	}
}

// judgeRefusal tells why there are no metrics.
func (e *exam) judgeRefusal() {
	first := e.first
	switch {
	case first.Outcome == metric.ConnectError:
		e.r.add(Error, "unreachable", "nobody answers: "+first.Err, "check host and port"+e.where())
	case first.Outcome == metric.Timeout:
		e.r.add(Error, "timeout", "no answer in time: "+first.Err, "raise --timeout, or look at the load of the server")
	case first.Outcome == metric.NotPrometheus:
		if !e.isList() || !e.hint(pack.JSONList, 0, "") {
			e.r.add(Error, "not_prometheus", first.Err, "give the URL of the metrics")
		}
	case first.Outcome == metric.HTTPError:
		e.judgeStatus()
	case first.Outcome.Stored():
		if !e.hint(pack.Empty, 0, "") {
			e.r.add(Error, "empty", "the answer is 200 with an empty body", "")
		}
	default:
		e.r.add(Error, first.Outcome.String(), first.Err, "")
	}
}

// where tells at which ports servers have their metrics.
func (e *exam) where() (text string) {
	for _, p := range e.o.Catalog.Servers() {
		if p.Recognise.Where != "" {
			text += "; " + cmp.Or(p.Recognise.Name, p.Title) + " has its metrics at " + p.Recognise.Where
		}
	}
	return text
}

// judgeStatus explains a status by what the server is known to be.
func (e *exam) judgeStatus() {
	said := e.first.Err
	switch status := e.first.Status; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.r.add(Error, "auth", said, "")
	case e.hint(pack.Hidden, 0, ""), e.hint(pack.Failing, status, said):
	case status == http.StatusNotFound:
		fixes := "check the path" + e.where()
		for _, p := range e.o.Catalog.Servers() {
			for _, h := range p.Hints {
				if h.Run == pack.Hidden {
					fixes += "; " + h.Fix
				}
			}
		}
		e.r.add(Error, "not_found", said, fixes)
	case status == http.StatusServiceUnavailable:
		e.r.add(Error, "not_ready", said, "wait until the server has loaded its model")
	default:
		e.r.add(Error, "http_error", said, "")
	}
}

// judgePath notes where the metrics were found.
func (e *exam) judgePath() {
	if !e.r.Collectable {
		e.r.add(Error, "no_samples", "the body declares families and has no samples",
			"send the server a request and look again")
	}
	switch {
	case e.path != "":
		e.r.add(Warning, "other_path", "no metrics at "+e.r.URL+" ("+e.first.Err+"); they are at "+e.r.Endpoint,
			"give "+e.r.Endpoint+" as the target; a run finds it too, but asks the other path first")
		if e.isList() {
			e.hint(pack.JSONList, 0, "")
		}
	case !strings.HasPrefix(e.r.URL, "unix:") && before(e.r.Endpoint, "?") != before(e.r.URL, "?"):
		e.r.add(Note, "redirect", "redirected to "+e.r.Endpoint, "give that URL to save a request")
	}
}

// judgeBody looks for what is odd in any body.
func (e *exam) judgeBody() {
	for _, d := range e.r.Dropped {
		e.r.add(Warning, "dropped_"+d.Reason, fmt.Sprintf("lines that would not be stored: %d; %s", d.Lines, d.First), "")
	}
	families := e.sentinels()
	for _, w := range e.body.Warnings {
		if slices.ContainsFunc(e.r.Dropped, func(d Drop) bool { return d.Reason == w.Code }) ||
			w.Code == "sentinel" && len(families) > 0 {
			continue // the same in other words
		}
		e.r.add(Warning, w.Code, w.Text, "")
	}
	if len(families) > 0 {
		e.r.add(Warning, "sentinels", "numbers that stand for no value: "+some(families),
			"leave them out of a run with --drop, or ignore their statistics")
	}
	if families := e.familiesWith("pid"); len(families) > 0 {
		e.r.add(Note, "pid", "gauges have a label pid: "+some(families), "take the latest process, and do not add over pid")
	}
	if !e.showsRestarts() {
		e.r.add(Note, "restarts", "neither process_start_time_seconds nor _created samples: a restart shows as a falling "+
			"counter only", "")
	}
	for _, g := range e.engines {
		if g.Refresh > 0 && g.Refreshed != "" {
			e.r.add(Note, "refresh", fmt.Sprintf("%s renews its %s every %v: their percentiles have few values behind them",
				g.Name, g.Refreshed, g.Refresh), "")
		}
	}
	if e.r.Empty > 0 {
		e.r.add(Note, "declared_only", fmt.Sprintf("%d of %d families have no samples yet", e.r.Empty, e.r.Families), "")
	}
}

// showsRestarts reports whether the body tells when its process started.
func (e *exam) showsRestarts() bool {
	for i := range e.dict.Slots {
		if e.dict.Slots[i].Role == metric.RoleCreated {
			return true
		}
	}
	return e.family("process_start_time_seconds")
}

// sentinels returns the families with a value that stands for none, which was read as NaN.
func (e *exam) sentinels() []string {
	var out []string
	for i, slot := range e.body.Delta.Slots {
		s := &e.dict.Slots[slot]
		if s.Role != metric.RoleValue {
			continue
		}
		name := e.dict.FamilyOf(s.Series).Name
		if math.IsNaN(s.Float(e.body.Delta.Bits[i])) && e.o.Catalog.Sentinel(name) != nil &&
			!slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// family reports whether the body has a family of that name.
func (e *exam) family(name string) bool {
	for i := range e.dict.Families {
		if e.dict.Families[i].Name == name {
			return true
		}
	}
	return false
}

// prefix reports whether the body has samples of a family with that prefix.
func (e *exam) prefix(prefix string) bool {
	for i := range e.dict.Series {
		if strings.HasPrefix(e.dict.FamilyOf(i).Name, prefix) {
			return true
		}
	}
	return false
}

// values adds up the value slots of a family; ok is false when it has none.
func (e *exam) values(name string) (sum float64, ok bool) {
	for i, slot := range e.body.Delta.Slots {
		s := &e.dict.Slots[slot]
		if s.Role == metric.RoleValue && e.dict.FamilyOf(s.Series).Name == name {
			sum, ok = sum+s.Float(e.body.Delta.Bits[i]), true
		}
	}
	return sum, ok
}

// familiesWith returns the families whose series have a label.
func (e *exam) familiesWith(name string) []string {
	var out []string
	for i := range e.dict.Series {
		if _, ok := e.dict.Series[i].Labels.Get(name); ok {
			if f := e.dict.FamilyOf(i).Name; len(out) == 0 || out[len(out)-1] != f {
				out = append(out, f)
			}
		}
	}
	return out
}

// labelValues counts the values of a label over all series.
func (e *exam) labelValues(name string) int {
	seen := map[string]bool{}
	for i := range e.dict.Series {
		if v, ok := e.dict.Series[i].Labels.Get(name); ok {
			seen[v] = true
		}
	}
	return len(seen)
}

// some lists the first of many names.
func some(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
