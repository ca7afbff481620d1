package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/internal/suggest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// Ready is a check that needs no expression, with its argument.
type Ready struct {
	kind *readyKind
	arg  float64
	unit string
}

// String is the check as it is written.
func (r Ready) String() string {
	if r.kind.form == "" {
		return r.kind.name
	}
	return r.kind.name + "=" + number(r.arg) + r.unit
}

type readyKind struct {
	name, form, help string
	standard         float64 // of the argument; 0 for one that must be given
	judge            func(r Ready, e *Evidence) []Outcome
}

func readyKinds() []*readyKind {
	return []*readyKind{
		{name: "resets", help: "no counter or histogram was reset: no server restarted in the window", judge: noResets},
		{name: "one-process", help: "every target was answered by one process", judge: oneProcess},
		{name: "complete", help: "every poll of the window was answered and every line stored", judge: complete},
		{name: "preemptions", help: "no request was preempted (or retracted)", judge: noPreemptions},
		{name: "kv-ceiling", form: "SHARE", standard: 0.95, help: "the KV cache was never fuller than this",
			judge: kvCeiling},
		{name: "concurrency", form: "N", help: "as many requests ran at a time, over all servers", judge: concurrency},
		{name: "counts", help: "client and server agree on the number of requests", judge: counts},
		{name: "log-stats", help: "a vLLM-Omni server was started with --log-stats", judge: logStats},
	}
}

// ReadyHelp lists the ready checks, a line each.
func ReadyHelp() (out []string) {
	for _, k := range readyKinds() {
		name := k.name
		switch {
		case k.standard != 0:
			name += "[=" + k.form + "]"
		case k.form != "":
			name += "=" + k.form
		}
		out = append(out, fmt.Sprintf("%-20s %s", name, k.help))
	}
	return out
}

// ParseReady reads NAME or NAME=VALUE.
func ParseReady(text string) (Ready, error) {
	name, value, given := strings.Cut(strings.TrimSpace(text), "=")
	var names []string
	for _, k := range readyKinds() {
		names = append(names, k.name)
		if k.name != name {
			continue
		}
		r := Ready{kind: k, arg: k.standard}
		if given && k.form == "" {
			return r, fmt.Errorf("ready check %s takes no value", name)
		}
		if !given && k.form != "" && k.standard == 0 {
			return r, fmt.Errorf("ready check %s needs a value: %s=%s", name, name, k.form)
		}
		if given {
			var err error
			if r.arg, r.unit, err = parseAmount(value); err != nil {
				return r, fmt.Errorf("ready check %s: %w", name, err)
			}
		}
		return r, nil
	}
	return Ready{}, fmt.Errorf("unknown ready check %q%s (known: %s)", shorten(name), suggest.Clause(name, names),
		strings.Join(names, ", "))
}

func (r Ready) answer(e *Evidence) (Check, error) {
	a := Check{Assertion: Assertion{Name: "ready: " + r.String(), Text: r.kind.help}, Verdict: NoData,
		Outcomes: r.kind.judge(r, e)}
	for i, o := range a.Outcomes {
		if i == 0 {
			a.Verdict = Pass
		}
		a.Verdict = worse(a.Verdict, o.Verdict)
	}
	slices.SortStableFunc(a.Outcomes, byVerdict)
	return a, nil
}

func noData(format string, args ...any) []Outcome {
	return []Outcome{{Measurement: missing(format, args...), Verdict: NoData}}
}

// noResets counts restarts over all series of the window.
func noResets(_ Ready, e *Evidence) []Outcome {
	series := 0
	var out []Outcome
	for i := range e.Run.Metrics {
		m := &e.Run.Metrics[i]
		for j := range m.Series {
			s := &m.Series[j]
			refused := s.Increase.Status == continuity.Refused
			if s.Counter == nil && s.Histogram == nil && s.Summary == nil && !refused {
				continue
			}
			series++
			if (s.Resets > 0 || refused) && len(out) < 5 {
				o := Outcome{Measurement: exact(float64(s.Resets), ""), Verdict: Fail}
				o.Target, o.Labels, o.Note = e.Run.Endpoints[s.Endpoint].Shown(), s.Labels, m.Name
				if refused {
					o.Note += ": refused"
				}
				out = append(out, o)
			}
		}
	}
	if series == 0 {
		return noData("the window has no counter and no histogram")
	}
	if len(out) == 0 {
		out = []Outcome{{Measurement: exact(0, ""), Verdict: Pass}}
	}
	return out
}

// oneProcess counts the processes that answered each target.
func oneProcess(_ Ready, e *Evidence) (out []Outcome) {
	for i := range e.Run.Endpoints {
		c := &e.Run.Endpoints[i].Continuity
		o := Outcome{Measurement: exact(float64(c.Processes), ""), Verdict: Pass}
		if c.Processes != 1 {
			o.Verdict = Fail
		}
		if c.Processes == 0 {
			o.Measurement = missing("several, which nothing tells apart")
		}
		if e.Run.Endpoints[i].Ledger.StoredPolls() == 0 {
			o = noData("it was not polled")[0]
		}
		o.Target = e.Run.Endpoints[i].Shown()
		out = append(out, o)
	}
	return out
}

// complete looks at the polls of the window, and at the lines of the whole run.
func complete(_ Ready, e *Evidence) []Outcome {
	var out []Outcome
	for i := range e.Run.Endpoints {
		l := &e.Run.Endpoints[i].Ledger
		polls, lost := 0, 0
		var how []string
		for k, n := range l.InWindow {
			polls += n
			if o := metric.Outcome(k); o != metric.OK && n > 0 {
				lost += n
				how = append(how, fmt.Sprintf("%d %s", n, o))
			}
		}
		dropped := 0
		for _, d := range l.Dropped {
			dropped += d.Lines
			how = append(how, fmt.Sprintf("%d lines dropped: %s", d.Lines, d.Reason))
		}
		o := Outcome{Measurement: exact(float64(lost+dropped), ""), Verdict: Pass}
		if lost+dropped > 0 {
			o.Verdict = Fail
		}
		if polls == 0 {
			o = noData("it was not polled in the window")[0]
		}
		o.Target, o.Note = e.Run.Endpoints[i].Shown(), strings.Join(how, ", ")
		out = append(out, o)
	}
	return out
}

// canonical returns the names of the run's metrics that mean a quantity across engines.
func canonical(run *summary.Run, id string) (names []string) {
	for i := range run.Metrics {
		if f, ok := run.Options.Catalog.Family(run.Metrics[i].Name); ok && f.Canonical == id {
			names = append(names, run.Metrics[i].Name)
		}
	}
	return slices.Compact(names)
}

// each holds a statistic of all metrics of a canonical quantity against a limit.
func each(e *Evidence, id, what string, d Assertion) []Outcome {
	names := canonical(e.Run, id)
	if len(names) == 0 {
		return noData("no server of the run says %s", what)
	}
	var out []Outcome
	for _, name := range names {
		d.From, d.Metric = FromFamily, name
		a, err := answer(&d, &Evidence{Run: e.Run, Provable: e.Provable})
		if err != nil {
			return noData("%v", err)
		}
		for _, o := range a.Outcomes {
			o.Note = cmp.Or(o.Note, name)
			out = append(out, o)
		}
	}
	return out
}

func noPreemptions(_ Ready, e *Evidence) []Outcome {
	return each(e, "preemption", "how often requests were preempted", Assertion{Stat: Stat{Name: "total"}, Op: Same})
}

func kvCeiling(r Ready, e *Evidence) []Outcome {
	unit := cmp.Or(r.unit, "ratio")
	return each(e, "kv_usage", "how full its KV cache was",
		Assertion{Stat: Stat{Name: "max"}, Op: AtMost, Want: Limit{Value: r.arg, Unit: unit}})
}

// concurrency adds up the peaks of all servers: what they reached at different times is no proof that they reached it
// together, and counts as no data.
func concurrency(r Ready, e *Evidence) []Outcome {
	names := canonical(e.Run, "running")
	peak, most, mean, n := 0.0, 0.0, 0.0, 0
	for _, name := range names {
		for _, i := range metrics(e.Run, name) {
			for j := range e.Run.Metrics[i].Series {
				s := &e.Run.Metrics[i].Series[j]
				if g := s.Gauge; g != nil && g.N > 0 && !e.Run.Repeats(s) {
					peak, most, mean, n = peak+g.Max, max(most, g.Max), mean+g.TimeAvg, n+1
				}
			}
		}
	}
	if n == 0 {
		return noData("no server of the run says how many requests run")
	}
	o := Outcome{Measurement: exact(peak, "requests"), Verdict: Fail, Limit: r.arg, Margin: peak/r.arg - 1,
		HasMargin: true}
	o.Low = max(most, mean)
	switch {
	case o.Low >= r.arg:
		o.Verdict = Pass
	case peak >= r.arg:
		o.Verdict, o.Why = NoData, fmt.Sprintf("the peaks of %d series add up to %s, the highest at one time is at least "+
			"%s: whether %s ran at once is not known", n, number(peak), number(o.Low), number(r.arg))
	}
	return []Outcome{o}
}

func counts(_ Ready, e *Evidence) []Outcome {
	if e.Joined == nil {
		why := cmp.Or(e.NoJoin, "the run has no request events")
		return noData("%s", why)
	}
	var out []Outcome
	for _, q := range []struct {
		name string
		of   *join.Quantity
	}{{"ended", &e.Joined.E2E}, {"first tokens", &e.Joined.TTFT}} {
		if q.of.Server.Family == "" {
			continue
		}
		o := Outcome{Measurement: exact(float64(q.of.Client.Count), "requests"), Limit: q.of.Server.Count, Verdict: Fail}
		o.Note = q.name
		if q.of.Agree {
			o.Verdict = Pass
		}
		out = append(out, o)
	}
	if len(out) == 0 {
		return noData("the server does not count requests")
	}
	return out
}

// logStats reads the notes of the analysis on vLLM-Omni.
func logStats(_ Ready, e *Evidence) []Outcome {
	omni := slices.ContainsFunc(e.Run.Metrics, func(m summary.Metric) bool {
		f, ok := e.Run.Options.Catalog.Family(m.Name)
		return ok && f.Engine == "vllm-omni"
	})
	var out []Outcome
	look := func(target string, ws []metric.Warning) {
		for _, w := range ws {
			if w.Code == "flag_log_stats" {
				out = append(out, Outcome{Measurement: Measurement{Target: target, Why: w.Text}, Verdict: Fail})
			}
		}
	}
	look("", e.Run.Warnings)
	for i := range e.Run.Endpoints {
		look(e.Run.Endpoints[i].Shown(), e.Run.Endpoints[i].Warnings)
	}
	if len(out) == 0 && !omni {
		return noData("no server of the run is a vLLM-Omni")
	}
	if len(out) == 0 {
		out = []Outcome{{Measurement: exact(1, ""), Verdict: Pass}}
	}
	return out
}
