package history

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/history/changepoint"
	"github.com/scrapestat/scrapestat/internal/sqlitefile"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

// Change is a change of a series with the runs around it.
type Change struct {
	changepoint.Change
	Quantity, Unit string
	Log            bool    // Change is relative, else a difference
	Word           string  // worse, better, changed
	Accepted       bool    // a person set a new level there
	Edge           bool    // of a drift: it compares means and overstates
	Size           float64 // in standard deviations
	// Before is the last run that is certainly before, At the first after, Last the last one at which it may have been.
	Before, At, Last *Run
}

// Crept is how far the last level is from the best one, where no single change tells it.
type Crept struct {
	Change float64
	Since  *Run // the first after the best level
}

// Event is what changed at one place: a step of one or several quantities, the clearest first; a drift; or what crept.
type Event struct {
	Key             // of the first; the others have its engine
	Kind     string // step, drift, crept
	Changes  []Change
	Settings []Setting // that changed there
}

// The kinds of events.
const (
	Step  = "step"
	Drift = "drift"
	Creep = "crept"
)

// Setting is a setting that is another one after a change.
type Setting struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Config is a configuration of the file.
type Config struct {
	Fingerprint string
	Runs        int // on the branch
	Facts       map[string]string
}

// View is a history as it is read at one time.
type View struct {
	Runs    []*Run // in order
	Branch  string
	Configs []Config // latest first
	Series  []*Series
	Events  []Event // latest first
}

// View reads series and what is found in them.
func (f *File) View(ctx context.Context, q Query) (*View, error) {
	v := &View{}
	var err error
	if v.Runs, v.Branch, err = f.Runs(ctx, q); err != nil {
		return nil, err
	}
	for s, err := range f.Series(ctx, q, v.Runs) {
		if err != nil {
			return nil, err
		}
		v.Series = append(v.Series, s)
	}
	facts, err := f.Configs(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, r := range slices.Backward(v.Runs) {
		i, ok := at[r.Fingerprint]
		if !ok && (q.Fingerprint == "" || q.Fingerprint == r.Fingerprint) {
			i, ok = len(v.Configs), true
			at[r.Fingerprint] = i
			v.Configs = append(v.Configs, Config{Fingerprint: r.Fingerprint, Facts: facts[r.Fingerprint]})
		}
		if ok && r.Number > 0 {
			v.Configs[i].Runs++
		}
	}
	v.Events = v.events()
	for i := range v.Events {
		e := &v.Events[i]
		if c := &e.Changes[0]; e.Kind == Step && c.Before != nil {
			if e.Settings, err = f.changed(ctx, c.Before, c.At); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// Configs returns what fingerprints are made of.
func (f *File) Configs(ctx context.Context) (map[string]map[string]string, error) {
	out := map[string]map[string]string{}
	return out, sqlitefile.Each(ctx, f.db, func(rows *sql.Rows) error {
		var fp, text string
		facts := map[string]string{}
		err := rows.Scan(&fp, &text)
		if err == nil {
			err = json.Unmarshal([]byte(text), &facts)
		}
		out[fp] = facts
		return err
	}, "SELECT fingerprint, json FROM config LIMIT ?", maxRuns)
}

// Differ returns what differs between two sets of facts, by name.
func Differ(a, b map[string]string) (out []Setting) {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			out = append(out, Setting{name, a[name], b[name]})
		}
	}
	return out
}

// changed returns the settings in which two runs differ, the version first.
func (f *File) changed(ctx context.Context, a, b *Run) ([]Setting, error) {
	before, err := f.settings(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := f.settings(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"tag git.commit", "tag git.branch", "tag version"} { // which the run has by itself
		delete(before, name)
		delete(after, name)
	}
	out := Differ(before, after)
	if a.Version != b.Version {
		out = slices.Insert(out, 0, Setting{"version", a.Version, b.Version})
	}
	return out, nil
}

func (f *File) settings(ctx context.Context, r *Run) (map[string]string, error) {
	out, room := map[string]string{}, maxText
	return out, sqlitefile.Each(ctx, f.db, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		if room -= len(name) + len(value); err == nil && room < 0 {
			err = fmt.Errorf("run %s has more than %d MiB of settings", r.ID, maxText>>20)
		}
		out[name] = value
		return err
	}, `SELECT n.text, v.text FROM setting s JOIN text n ON n.id = s.name JOIN text v ON v.id = s.value
		WHERE s.run = ?`, r.row)
}

// Changes are the steps of the series with the runs around them.
func (s *Series) Changes() (out []Change) {
	for _, c := range s.Found.Changes {
		x := Change{Change: c, Quantity: s.Quantity, Unit: s.Unit, Log: s.Found.Log, Word: s.Word(c.Change),
			Accepted: s.isAccepted(&c), Before: s.At(c.First - 1).Run, At: s.At(c.Index).Run, Last: s.At(c.Last).Run}
		x.Size = math.Abs(s.onScale(c.Change)) / s.Found.Sigma
		for _, d := range s.Found.Drifts {
			x.Edge = x.Edge || c.Index == d.Start || c.Index == d.End
		}
		out = append(out, x)
	}
	return out
}

// onScale is a change on the scale of Sigma.
func (s *Series) onScale(change float64) float64 {
	if s.Found.Log {
		return math.Log1p(change)
	}
	return change
}

// bestOf is how old a level may be that what crept is held against, in nanoseconds.
const bestOf = 90 * 24 * 3600 * 1e9

// Crept is how much worse the last level is than the best one of the last 90 days, when that is more than the margin
// and nothing but minor changes lies between.
func (s *Series) Crept() (out Crept, ok bool) {
	levels := s.levels()
	if len(levels) < 2 || s.Word(1) == "changed" {
		return out, false
	}
	last := levels[len(levels)-1]
	now, newest := s.level(last), s.At(len(s.Line)-1).AtNS
	for i := len(levels) - 2; i >= 0; i-- {
		l := levels[i]
		if l[1] <= s.accepted() || s.At(l[1]-1).AtNS < newest-bestOf || s.breaks(l[1]) {
			break
		}
		change := now - s.level(l)
		if s.Found.Log {
			change = now/s.level(l) - 1
		}
		worse := s.Word(change) == "worse"
		if l[1]-l[0] >= noisePoints && worse && math.Abs(change) > math.Abs(out.Change) {
			out = Crept{change, s.At(l[1]).Run}
		}
	}
	enough := !s.Found.Log || math.Abs(now*(1-1/(1+out.Change))) >= s.Floor
	return out, enough && math.Abs(s.onScale(out.Change)) > s.least()
}

// least is the margin on the scale of Sigma.
func (s *Series) least() float64 {
	switch {
	case s.Share:
		return s.Margin
	case s.Found.Log:
		return math.Log1p(s.Margin)
	}
	l := s.levels()
	return s.Margin * math.Abs(s.level(l[len(l)-1]))
}

// breaks reports whether a change that is told by itself, or a drift, ends before an index.
func (s *Series) breaks(at int) bool {
	return slices.ContainsFunc(s.Found.Changes, func(c changepoint.Change) bool { return c.Index == at && !c.Minor }) ||
		slices.ContainsFunc(s.Found.Drifts, func(d changepoint.Drift) bool { return d.End >= at })
}

// level is the mean of a level, of positive values the geometric one.
func (s *Series) level(l [2]int) float64 {
	sum, points := 0.0, s.points(l, nil)
	for _, p := range points {
		if s.Found.Log {
			sum += math.Log(p.Value)
		} else {
			sum += p.Value
		}
	}
	if sum /= float64(len(points)); s.Found.Log {
		return math.Exp(sum)
	}
	return sum
}

// Level is the last level: its mean, the standard deviation of a run around it (relative where Found.Log), and how many
// runs it has.
func (s *Series) Level() (center, spread float64, n int) {
	levels := s.levels()
	if len(levels) == 0 {
		return math.NaN(), math.NaN(), 0
	}
	l := levels[len(levels)-1]
	center = s.level(l)
	points := s.points(l, nil)
	for _, p := range points {
		d := p.Value - center
		if s.Found.Log {
			d = math.Log(p.Value / center)
		}
		spread += d * d
	}
	if n = len(points); n < 2 {
		return center, math.NaN(), n
	}
	return center, math.Sqrt(spread / float64(n-1)), n
}

// events collects what is found: steps of one place are one event, which the clearest leads.
func (v *View) events() (out []Event) {
	var steps []Event
	for _, s := range v.Series {
		for _, c := range s.Changes() {
			if !c.Edge {
				steps = append(steps, Event{Key: s.Key, Kind: Step, Changes: []Change{c}})
			}
		}
		for _, d := range s.Found.Drifts {
			out = append(out, Event{Key: s.Key, Kind: Drift, Changes: []Change{{Quantity: s.Quantity, Unit: s.Unit,
				Change: changepoint.Change{Index: d.Start, Change: d.Change, Low: math.NaN(), High: math.NaN(), P: math.NaN(),
					Points: d.End - d.Start, Minor: math.Abs(s.onScale(d.Change)) < s.least()},
				Log: s.Found.Log, Word: s.Word(d.Change), Before: s.At(d.Start).Run, At: s.At(d.Start).Run,
				Last: s.At(d.End - 1).Run}}})
		}
		if c, ok := s.Crept(); ok {
			end := s.At(len(s.Line) - 1).Run
			out = append(out, Event{Key: s.Key, Kind: Creep, Changes: []Change{{Quantity: s.Quantity, Unit: s.Unit,
				Change: changepoint.Change{Change: c.Change, Low: math.NaN(), High: math.NaN(), P: math.NaN()},
				Log:    s.Found.Log, Word: "worse", Before: c.Since, At: c.Since, Last: end}}})
		}
	}
	out = append(out, together(steps)...)
	order := map[*Run]int{}
	for i, r := range v.Runs {
		order[r] = i
	}
	slices.SortStableFunc(out, func(a, b Event) int { return order[b.Changes[0].At] - order[a.Changes[0].At] })
	return out
}

// together makes one event of the steps at one place, which the clearest leads.
func together(steps []Event) (out []Event) {
	clearer := func(a, b Event) int {
		x, y := &a.Changes[0], &b.Changes[0]
		return cmp.Or(bool2int(x.Minor)-bool2int(y.Minor), cmp.Compare(y.Size, x.Size))
	}
	slices.SortStableFunc(steps, clearer)
	for len(steps) > 0 {
		lead := steps[0]
		steps = slices.DeleteFunc(steps[1:], func(e Event) bool {
			off := e.Changes[0].At.Number - lead.Changes[0].At.Number
			same := off >= -nearby && off <= nearby && e.sibling(&lead)
			if same {
				lead.Changes = append(lead.Changes, e.Changes[0])
			}
			return same
		})
		out = append(out, lead)
	}
	return out
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sibling reports whether two events are of one engine and phase.
func (e *Event) sibling(o *Event) bool {
	a, b := e.Key, o.Key
	a.Quantity, b.Quantity = "", ""
	return a == b
}

// Word is what the event is by its clearest change: worse, better, changed; and with minor, drift or crept before it.
func (e *Event) Word() string { return e.Changes[0].Word }

// Is reports whether an event of a change for the worse is what a word of --fail-on means: worse is a step beyond the
// margin, minor one below it, drift a slow change. A person's acceptance ends it.
func (e *Event) Is(word string) bool {
	return slices.ContainsFunc(e.Changes, func(c Change) bool {
		if c.Word != "worse" || c.Accepted {
			return false
		}
		switch word {
		case "worse":
			return e.Kind == Step && !c.Minor
		case "minor":
			return e.Kind == Step && c.Minor
		}
		return e.Kind != Step && !c.Minor
	})
}

// Newest is the start of the latest run; 0 without one.
func (v *View) Newest() (ns int64) {
	for _, r := range v.Runs {
		ns = max(ns, r.AtNS)
	}
	return ns
}

// When is when the event was first or, of a slow change, last there.
func (e *Event) When() int64 {
	if c := &e.Changes[0]; e.Kind != Step {
		return c.Last.AtNS
	}
	return e.Changes[0].At.AtNS
}

// Judged is how many points the longest series of the headline has.
func (v *View) Judged() (n int) {
	for _, s := range v.Series {
		if s.Kind == Headline {
			n = max(n, len(s.Line))
		}
	}
	return n
}

// CSV writes a line for each point.
func (v *View) CSV(w io.Writer) error {
	t := &texttab.Table{}
	for _, id := range strings.Fields(
		"fingerprint phase engine target quantity unit run run_id at commit branch value beside") {
		t.Columns = append(t.Columns, texttab.Column{ID: id})
	}
	for _, s := range v.Series {
		for i := range s.Points {
			p := &s.Points[i]
			var row []texttab.Cell
			for _, x := range []any{s.Fingerprint, s.Phase, s.Engine, s.Target, s.Quantity, s.Unit, int64(p.Number), p.ID,
				p.at(), p.Commit, p.Branch, p.Value, p.Beside} {
				row = append(row, texttab.Cell{Value: x})
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t.WriteCSV(w)
}
