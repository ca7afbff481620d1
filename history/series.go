package history

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/history/changepoint"
	"github.com/scrapestat/scrapestat/internal/sqlitefile"
	"github.com/scrapestat/scrapestat/metric"
)

// Query selects series.
type Query struct {
	Fingerprint string
	Quantities  []string // nil are those of the headline
	Branch      string   // "" is the most frequent one
	// Commits is the order of runs, oldest first; nil is by time. Runs of other commits are in no series.
	Commits []string
	Tags    map[string]string // that runs must have
}

// Key names a series.
type Key struct{ Fingerprint, Phase, Engine, Target, Quantity string }

// Point is a run in a series.
type Point struct {
	*Run
	Value, ErrLog, DF float64
	// Beside is why the point is in no segment: "" for one that is, "load", "window", "branch", "dropped", "order", or
	// why there is no value.
	Beside string
}

// Series is a quantity over the runs of a configuration.
type Series struct {
	Key
	Unit, Better, Kind string
	Share              bool
	Margin, Floor      float64
	Points             []Point            // in order
	Line               []int              // of Points, those that Found counts
	Found              changepoint.Result // whose Minor follows Margin and Floor
}

// defaultMargin is that of a quantity that is none of the headline.
const defaultMargin = 0.02

// maxRuns bounds how many runs of a file are read.
const maxRuns = 1_000_000

// Runs returns the runs in order, and the branch that was read; Number and beside follow the query.
func (f *File) Runs(ctx context.Context, q Query) (runs []*Run, branch string, err error) {
	err = sqlitefile.Each(ctx, f.db, func(rows *sql.Rows) error {
		var r Run
		var tags string
		if err := rows.Scan(&r.row, &r.ID, &r.Path, &r.AtNS, &r.Commit, &r.Branch, &r.Version, &r.Fingerprint, &r.Window,
			&tags, &r.State, &r.Note, &r.Analysis); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(tags), &r.Tags); err != nil {
			return fmt.Errorf("tags of run %s: %w", r.ID, err)
		}
		runs = append(runs, &r)
		return nil
	}, `SELECT id, run_id, path, at_ns, "commit", branch, version, fingerprint, window_s, tags, ok, note, analysis
		FROM run LIMIT ?`, maxRuns)
	if err != nil {
		return nil, "", err
	}
	return runs, q.arrange(runs), nil
}

// arrange sorts and numbers runs, and sets why some are in no series.
func (q *Query) arrange(runs []*Run) (branch string) {
	if branch = q.Branch; branch == "" {
		branch = frequent(runs)
	}
	place := map[string]int{}
	for i, c := range q.Commits {
		place[c] = i
	}
	slices.SortFunc(runs, func(a, b *Run) int {
		return cmp.Or(place[a.Commit]-place[b.Commit], cmp.Compare(a.AtNS, b.AtNS), cmp.Compare(a.ID, b.ID))
	})
	windows, numbers := map[string][]float64{}, map[string]int{}
	for _, r := range runs {
		_, known := place[r.Commit]
		switch {
		case r.Branch != branch:
			r.beside = "branch"
		case r.State == Dropped:
			r.beside = "dropped"
		case q.Commits != nil && !known, !r.Tagged(q.Tags):
			r.beside = "order"
		default:
			windows[r.Fingerprint] = append(windows[r.Fingerprint], r.Window)
			numbers[r.Fingerprint]++
			r.Number = numbers[r.Fingerprint]
		}
	}
	for fp, list := range windows {
		windows[fp] = []float64{changepoint.Median(list)}
	}
	for _, r := range runs {
		if r.beside == "" && math.Abs(r.Window-windows[r.Fingerprint][0]) > 0.2*windows[r.Fingerprint][0] {
			r.beside = "window"
		}
	}
	return branch
}

// Tagged reports whether the run has these tags.
func (r *Run) Tagged(tags map[string]string) bool {
	for k, v := range tags {
		if r.Tags[k] != v {
			return false
		}
	}
	return true
}

// frequent is the branch of most runs; of equals the first by name.
func frequent(runs []*Run) (branch string) {
	n := map[string]int{}
	for _, r := range runs {
		n[r.Branch]++
	}
	for _, b := range slices.Sorted(maps.Keys(n)) {
		if n[b] > n[branch] {
			branch = b
		}
	}
	return branch
}

// rank orders quantities as screens do.
func rank(quantity string) int {
	rows := headline.Rows()
	i := slices.IndexFunc(rows, func(r headline.Row) bool { return r.Name() == base(quantity) })
	return (i + len(rows) + 1) % (len(rows) + 1)
}

// base is a quantity without its estimator.
func base(quantity string) string {
	name, _, _ := strings.Cut(quantity, ":")
	return name
}

// loads are quantities by which runs of another load are told.
var loads = []string{"isl_mean", "osl_mean"}

// Series returns the series of runs, with what is found in them: by configuration, those with the latest run first,
// then phase, engine, target and the order of screens. It takes time linear in the values that are asked for.
func (f *File) Series(ctx context.Context, q Query, runs []*Run) iter.Seq2[*Series, error] {
	return func(yield func(*Series, error) bool) {
		list, err := f.load(ctx, &q, runs)
		if err != nil {
			yield(nil, err)
			return
		}
		last := map[string]int{}
		for i, r := range runs {
			last[r.Fingerprint] = i
		}
		slices.SortFunc(list, func(a, b *Series) int {
			return cmp.Or(last[b.Fingerprint]-last[a.Fingerprint], cmp.Compare(a.Phase, b.Phase),
				cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Target, b.Target), rank(a.Quantity)-rank(b.Quantity),
				cmp.Compare(a.Quantity, b.Quantity), cmp.Compare(a.Unit, b.Unit))
		})
		other := otherLoads(list)
		for _, s := range list {
			if !q.wants(s) {
				continue
			}
			s.detect(other[s.load()])
			if !yield(s, nil) {
				return
			}
		}
	}
}

// wants reports whether the series is one that was asked for.
func (q *Query) wants(s *Series) bool {
	if q.Quantities == nil {
		return s.Kind == Headline
	}
	return slices.Contains(q.Quantities, s.Quantity)
}

// load reads the points of all series that are needed.
func (f *File) load(ctx context.Context, q *Query, runs []*Run) (out []*Series, err error) {
	byRow, room := map[int64]*Run{}, map[string]int{}
	for i, r := range runs {
		if r.place = i; q.Fingerprint == "" || q.Fingerprint == r.Fingerprint {
			byRow[r.row] = r
			room[r.Fingerprint]++
		}
	}
	names, err := json.Marshal(append(slices.Clone(loads), q.Quantities...))
	if err != nil {
		return nil, err
	}
	var ids []int64
	var stored []Series
	err = sqlitefile.Each(ctx, f.db, func(rows *sql.Rows) error {
		var s Series
		var id int64
		err := rows.Scan(&id, &s.Kind, &s.Phase, &s.Engine, &s.Target, &s.Quantity, &s.Unit, &s.Better)
		ids, stored = append(ids, id), append(stored, s)
		return err
	}, `SELECT id, kind, phase, engine, target, quantity, unit, better FROM series
		WHERE quantity IN (SELECT value FROM json_each(?)) OR ? AND kind = 'headline'`, string(names), q.Quantities == nil)
	for i := 0; i < len(ids) && err == nil; i++ {
		var list []*Series
		list, err = f.points(ctx, ids[i], stored[i], byRow, room)
		out = append(out, list...)
	}
	return out, err
}

// points reads the points of a stored series: one series for each configuration, whose runs room counts.
func (f *File) points(ctx context.Context, id int64, stored Series, byRow map[int64]*Run, room map[string]int) (
	out []*Series, err error) {
	at := map[string]*Series{}
	err = sqlitefile.Each(ctx, f.db, func(rows *sql.Rows) error {
		var p Point
		var run int64
		var value sql.NullFloat64
		if err := rows.Scan(&run, &value, &p.ErrLog, &p.DF, &p.Beside); err != nil {
			return err
		}
		if p.Run = byRow[run]; p.Run == nil {
			return nil
		}
		if p.Value = math.NaN(); value.Valid {
			p.Value = value.Float64
		}
		p.Beside = cmp.Or(p.Beside, p.beside)
		s := at[p.Fingerprint]
		if s == nil {
			s = new(stored)
			s.Fingerprint, s.Points = p.Fingerprint, make([]Point, 0, room[p.Fingerprint])
			s.describe()
			at[s.Fingerprint], out = s, append(out, s)
		}
		s.Points = append(s.Points, p)
		return nil
	}, `SELECT run, value, coalesce(se_log, 0), coalesce(df, 0), coalesce(note, '') FROM value
		WHERE series = ?`, id)
	for _, s := range out {
		slices.SortFunc(s.Points, func(a, b Point) int { return a.place - b.place })
	}
	return out, err
}

// describe sets by which rules the series is judged.
func (s *Series) describe() {
	s.Margin = defaultMargin
	for _, r := range headline.Rows() {
		if r.Name() == base(s.Quantity) && s.Kind == Headline {
			s.Margin, s.Floor, s.Share = r.Margin, r.Floor, r.Share
		}
	}
}

// load is what the series has in common with those of the load.
func (s *Series) load() Key {
	k := s.Key
	k.Quantity = ""
	return k
}

// otherLoads finds the runs whose load was another than that of their segment, by more than 2 % and four standard
// deviations.
func otherLoads(list []*Series) map[Key]map[*Run]bool {
	out := map[Key]map[*Run]bool{}
	for _, s := range list {
		if !slices.Contains(loads, s.Quantity) {
			continue
		}
		s.Margin = defaultMargin
		s.detect(nil)
		for i := range s.Found.Segments[1:] {
			line := s.Line[s.Found.Segments[i]:s.Found.Segments[i+1]]
			if len(line) == 0 {
				continue
			}
			center := changepoint.Median(s.values(line))
			for _, at := range line {
				off := math.Abs(math.Log(s.Points[at].Value / center))
				if off > max(math.Log1p(defaultMargin), 4*s.Found.Sigma) {
					if out[s.load()] == nil {
						out[s.load()] = map[*Run]bool{}
					}
					out[s.load()][s.Points[at].Run] = true
				}
			}
		}
	}
	return out
}

// values are those of points.
func (s *Series) values(at []int) []float64 {
	out := make([]float64, len(at))
	for i, p := range at {
		out[i] = s.Points[p].Value
	}
	return out
}

// detect finds what changed among the points that are to be judged.
func (s *Series) detect(otherLoad map[*Run]bool) {
	s.Line = s.Line[:0]
	for i := range s.Points {
		p := &s.Points[i]
		if otherLoad[p.Run] && !slices.Contains(loads, s.Quantity) {
			p.Beside = cmp.Or(p.Beside, "load")
		}
		if p.Beside == "" {
			s.Line = append(s.Line, i)
		}
	}
	v := s.values(s.Line)
	margin := s.Margin
	if s.Share {
		margin = 0
	}
	s.Found = changepoint.Detect(v, margin)
	for i := range s.Found.Changes {
		c := &s.Found.Changes[i]
		a, b := changepoint.Mean(v[c.Index-c.PointsBefore:c.Index]), changepoint.Mean(v[c.Index:c.Index+c.Points])
		least := s.Floor
		if s.Share {
			least = s.Margin
		}
		c.Minor = c.Minor || math.Abs(b-a) < least
	}
}

// At is the point of index i of Found.
func (s *Series) At(i int) *Point { return &s.Points[s.Line[i]] }

// Word is what a change in this direction is: worse, better or changed.
func (s *Series) Word(change float64) string {
	switch {
	case s.Better != "lower" && s.Better != "higher":
		return "changed"
	case (s.Better == "higher") == (change > 0):
		return "better"
	}
	return "worse"
}

// accepted is the index of the last run that a person made the begin of a level; -1 for none.
func (s *Series) accepted() int {
	for i := len(s.Line) - 1; i >= 0; i-- {
		if s.At(i).State == Accepted {
			return i
		}
	}
	return -1
}

// isAccepted reports whether a change is where a person set one.
func (s *Series) isAccepted(c *changepoint.Change) bool {
	for i := range s.Line {
		if s.At(i).State == Accepted && (i >= c.First && i <= c.Last || i >= c.Index-nearby && i <= c.Index+nearby) {
			return true
		}
	}
	return false
}

// afterDrift is how many runs of a drift say what its level is now.
const afterDrift = 10

// levels are the stretches of Line of one level: the segments, of a drift its last runs, cut where a person set a
// change.
func (s *Series) levels() (out [][2]int) {
	seg := s.Found.Segments
	for i := range seg[1:] {
		from, to := seg[i], seg[i+1]
		for _, d := range s.Found.Drifts {
			if d.End == to {
				from = max(from, to-afterDrift)
			}
		}
		out = append(out, [2]int{from, to})
	}
	if at := s.accepted(); at >= 0 {
		out = cut(out, at)
	}
	return slices.DeleteFunc(out, func(l [2]int) bool { return l[0] == l[1] })
}

// nearby is how far from a change a person may set it, in runs.
const nearby = 2

// cut makes a level begin at an index; a boundary nearby moves there.
func cut(levels [][2]int, at int) [][2]int {
	i := slices.IndexFunc(levels, func(l [2]int) bool { return l[0] <= at && at < l[1] })
	switch {
	case i < 0 || levels[i][0] == at:
	case at-levels[i][0] <= nearby && i > 0:
		levels[i-1][1], levels[i][0] = at, at
	case levels[i][1]-at <= nearby && i+1 < len(levels):
		levels[i][1], levels[i+1][0] = at, at
	default:
		levels = slices.Insert(levels, i+1, [2]int{at, levels[i][1]})
		levels[i][1] = at
	}
	return levels
}

// points are those of a level less outliers and those that skip reports.
func (s *Series) points(level [2]int, skip func(*Run) bool) (out []*Point) {
	for i := level[0]; i < level[1]; i++ {
		if p := s.At(i); !slices.Contains(s.Found.Outliers, i) && (skip == nil || !skip(p.Run)) {
			out = append(out, p)
		}
	}
	return out
}

// Base is the last level of the series: what a new run is held against. skip leaves out runs; nil none.
func (s *Series) Base(skip func(*Run) bool) []*Point {
	l := s.levels()
	if len(l) == 0 {
		return nil
	}
	return s.points(l[len(l)-1], skip)
}

// FewestRuns is how many runs of a level a new one can be held against.
const FewestRuns = 6

// The bounds of what noise is made of.
const (
	noiseRuns   = 100 // the last ones
	noisePoints = 3   // of a segment
	noiseDF     = 60  // at most
	repeatDF    = 6   // from repeats of one commit, that they alone count
)

// Noise is how runs of this configuration vary, on the scale of judge.Row. skip leaves out runs; nil none.
func (s *Series) Noise(skip func(*Run) bool) judge.Noise { return s.noise(s.levels(), skip) }

func (s *Series) noise(levels [][2]int, skip func(*Run) bool) judge.Noise {
	to := math.Log
	if s.Share {
		to = func(p float64) float64 { return math.Asin(math.Sqrt(p)) }
	}
	ss, df, repeatSS, repeats := 0.0, 0.0, 0.0, 0.0
	add := func(list []float64, sum, n *float64) {
		m := changepoint.Mean(list)
		for _, x := range list {
			*sum += (x - m) * (x - m)
		}
		*n += float64(len(list) - 1)
	}
	for _, level := range levels {
		level[0] = max(level[0], len(s.Line)-noiseRuns)
		var list []float64
		commits := map[string][]float64{}
		for _, p := range s.points(level, skip) {
			x := to(p.Value)
			if list = append(list, x); p.Commit != "" {
				commits[p.Commit] = append(commits[p.Commit], x)
			}
		}
		if len(list) < noisePoints {
			continue
		}
		add(list, &ss, &df)
		for _, c := range slices.Sorted(maps.Keys(commits)) {
			add(commits[c], &repeatSS, &repeats)
		}
	}
	if repeats >= repeatDF {
		ss, df = repeatSS, repeats
	}
	if !(df > 0) || !metric.Finite(ss) {
		return judge.Noise{}
	}
	return judge.Noise{S: math.Sqrt(ss / df), DF: min(noiseDF, df) / s.Found.Inflation}
}
