package lake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// Recording is what a run was built of.
type Recording interface {
	column.Recording
	Targets() []metric.Target
}

// Options are those of [Add].
type Options struct {
	Name    string
	Replace bool   // a run of this name with another content
	Closed  bool   // the recordings are complete
	Shards  string // which shards of how many these are, "" for none
	RunIDs  []string
	// Budget is how many bytes of recording are turned round at a time; 0 is 64 MiB. The files do not depend on it.
	Budget int
	Wrote  func(path string) // each file that is complete, in order; may be nil
}

// ErrOther is wrapped by the error of Add when the lake has a run of the name with another content.
var ErrOther = errors.New("the lake has a run of this name with another content (--replace, or another --name)")

const (
	groupRows     = 1 << 16 // rows of a row group: what a reader of one family reads at least
	groupValues   = 4 << 20 // and numbers in its lists
	maxFile       = 1 << 30 // bytes after which a file ends
	changeBytes   = 10      // that a changed number takes while it is turned round, at most
	defaultBudget = 64 << 20
)

// Add writes a run, of which recs are the recordings r was built of, in the same order. there is true when it was there
// already. It can be killed at any point, and be repeated by several at once: files of a content are the same whoever
// writes them, each appears whole, and the row of table runs comes last.
func Add(ctx context.Context, dir string, r *summary.Run, recs []Recording, o Options) (run *Run, there bool,
	err error) {
	if err := errors.Join(CheckName(o.Name), create(dir)); err != nil {
		return nil, false, err
	}
	a := &adder{dir: dir, o: o, run: r, days: map[int64]*part{}}
	a.row = a.describe()
	if have, err := present(dir, &a.row, o.Replace); have != nil || err != nil {
		return have, have != nil, err
	}
	for _, rec := range recs {
		for within := range rec.Targets() {
			t := &target{rec: rec, within: within, endpoint: len(a.targets)}
			if err := t.survey(ctx, r); err != nil {
				return nil, false, err
			}
			a.targets = append(a.targets, t)
		}
	}
	if len(a.targets) != len(r.Endpoints) {
		return nil, false, fmt.Errorf("the recordings have %d targets, the run has %d", len(a.targets), len(r.Endpoints))
	}
	leftOut := 0
	if a.entries, leftOut = entries(a.targets); leftOut > 0 {
		a.row.Warnings = append(a.row.Warnings, Warning{"left_out",
			fmt.Sprintf("%d gauge histograms are not in the lake", leftOut)})
	}
	defer a.abort()
	if err := a.tables(ctx); err != nil {
		return nil, false, err
	}
	return a.publish()
}

func (a *adder) tables(ctx context.Context) error {
	if err := a.samples(ctx); err != nil {
		return err
	}
	return a.series() // knows the statuses then
}

// present returns the row of a run that is there with this content.
func present(dir string, want *Run, replace bool) (*Run, error) {
	have, err := ReadRun(dir, want.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil && !replace:
		return nil, err
	case err == nil && have.Content == want.Content:
		return have, nil
	case !replace:
		return nil, fmt.Errorf("add run %s: %w", want.Name, ErrOther)
	}
	return nil, nil
}

// adder writes one run.
type adder struct {
	dir     string
	o       Options
	run     *summary.Run
	row     Run
	targets []*target
	entries []*entry
	days    map[int64]*part // by day since 1970: the file that is being written
	parts   map[int64]int
}

// describe makes the row of table runs, but for its files, and gives it the name of its content.
func (a *adder) describe() Run {
	r := a.run
	row := Run{Name: a.o.Name, Format: Format, RunIDs: a.o.RunIDs, Version: r.Version, Command: r.Command, Host: r.Host,
		Shards: a.o.Shards, Closed: a.o.Closed, OriginNS: r.OriginNS, FromNS: r.Window.StartNS, ToNS: r.Window.EndNS}
	for k, v := range r.Tags {
		row.Tags = append(row.Tags, Tag{k, v})
	}
	slices.SortFunc(row.Tags, func(x, y Tag) int { return cmp.Compare(x.Key, y.Key) })
	if w := r.Window.Resolved; w != nil {
		row.Rule = string(w.Rule)
		if len(w.Parts) > 1 {
			row.Warnings = append(row.Warnings, Warning{"window_in_parts",
				"the window has pauses, which statements over the lake count too"})
		}
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		row.Phases = append(row.Phases, Phase{p.Name, int32(p.Instance), p.StartNS, p.EndNS})
	}
	for _, w := range r.Warnings {
		row.Warnings = append(row.Warnings, Warning{w.Code, w.Text})
	}
	for i := range r.Endpoints {
		row.Targets = append(row.Targets, describeTarget(i, &r.Endpoints[i]))
		for _, l := range r.Endpoints[i].Late {
			if l.Moved > 0 {
				row.Warnings = append(row.Warnings, Warning{"late", fmt.Sprintf("%s of %s: %d observations of before the window "+
					"were published in it, which statements over the lake count", l.Family, r.Endpoints[i].Shown(), l.Moved)})
			}
		}
	}
	row.Content = contentOf(&row)
	return row
}

func describeTarget(i int, e *summary.Endpoint) Target {
	t := Target{Target: int32(i), URL: e.URL, Name: e.Name, FromNS: e.StartNS, ToNS: e.EndNS, Seconds: e.Seconds,
		Scheduled: int64(e.Ledger.Scheduled), Stored: int64(e.Ledger.StoredPolls()), Lines: e.Ledger.Lines,
		Gaps: int64(e.GapsN), Status: e.Continuity.Status.String()}
	for _, d := range e.Ledger.Dropped {
		t.Dropped += int64(d.Lines)
	}
	return t
}

// contentOf names what a recording held, by its identity and how much of it there is, and the format. Two readings of
// one recording have one content.
func contentOf(row *Run) string {
	b, err := json.Marshal(row)
	if err != nil { // a number that is not finite
		b = fmt.Appendf(nil, "%+v", *row)
	}
	sum := sha256.Sum256(b)
	return "c" + hex.EncodeToString(sum[:])[:16] // a letter first: engines take digits for numbers
}

// part is a file of table samples while it is written.
type part struct {
	*output
	stream *parquetwriter.Stream
	group  *parquetwriter.Group
}

// output is a file that is written and hashed.
type output struct {
	path string // relative to the lake
	file *atomicfile.Writer
	hash hash.Hash
	size int64
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	o.hash.Write(p[:n])
	o.size += int64(n)
	return n, err
}

func (a *adder) create(path string) (*output, error) {
	full := filepath.Join(a.dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return nil, fmt.Errorf("write lake: %w", err)
	}
	f, err := atomicfile.Create(full, atomicfile.DefaultPerm)
	if err != nil {
		return nil, err
	}
	return &output{path: path, file: f, hash: sha256.New()}, nil
}

// finish has a file appear and lists it.
func (a *adder) finish(o *output, rows int64) error {
	if err := o.file.Commit(); err != nil {
		return err
	}
	a.row.Files = append(a.row.Files, File{o.path, rows, o.size, hex.EncodeToString(o.hash.Sum(nil))})
	if a.o.Wrote != nil {
		a.o.Wrote(o.path)
	}
	return nil
}

func (a *adder) abort() {
	for _, p := range a.days {
		p.file.Abort()
	}
}

func (a *adder) folder(table string) string {
	return table + "/run=" + a.row.Name + "/content=" + a.row.Content
}

func (a *adder) createdBy() string { return "scrapestat version " + cmp.Or(a.run.Version, "unknown") }

// samples writes table samples: as many series at a time as memory allows, in row groups that do not depend on it.
func (a *adder) samples(ctx context.Context) error {
	a.parts = map[int64]int{}
	budget := cmp.Or(a.o.Budget, defaultBudget)
	for from := 0; from < len(a.entries); {
		var groups []int // ends
		to, used := from, 0
		for to < len(a.entries) && (used == 0 || used < budget) {
			end := a.groupEnd(to)
			for _, e := range a.entries[to:end] {
				used += e.seen().changes*changeBytes + 200
			}
			groups, to = append(groups, end), end
		}
		if err := a.stripe(ctx, from, groups); err != nil {
			return err
		}
		from = to
	}
	var days []int64
	for day := range a.days {
		days = append(days, day)
	}
	slices.Sort(days)
	for _, day := range days {
		if err := a.endPart(day); err != nil {
			return err
		}
	}
	return nil
}

// groupEnd returns where the row group that begins with an entry ends.
func (a *adder) groupEnd(from int) int {
	rows, values := 0, 0
	for i, e := range a.entries[from:] {
		rows += e.seen().rows
		values += e.seen().rows * len(e.buckets())
		if i > 0 && (rows > groupRows || values > groupValues) {
			return from + i
		}
	}
	return len(a.entries)
}

// stripe writes the entries from one on, in row groups that end at groups.
func (a *adder) stripe(ctx context.Context, from int, groups []int) error {
	wanted := map[*target]map[int]bool{}
	for _, e := range a.entries[from:groups[len(groups)-1]] {
		if wanted[e.target] == nil {
			wanted[e.target] = map[int]bool{}
		}
		wanted[e.target][e.series] = true
	}
	batches := map[*target]*column.Batch{}
	for t, series := range wanted {
		src := column.Source{Recording: t.rec, Target: t.within, URL: a.run.Endpoints[t.endpoint].URL,
			Keep: func(s int) bool { return series[s] }}
		b, err := src.Collect(ctx, math.MaxInt)
		if err != nil {
			return err
		}
		batches[t] = b
	}
	f := &filler{}
	for _, end := range groups {
		touched := map[int64]*part{}
		var failed error
		groupOf := func(ns int64) *parquetwriter.Group {
			day := floorDiv(ns, int64(24*time.Hour))
			p, err := a.partOf(day)
			if failed = cmp.Or(failed, err); failed != nil {
				return parquetwriter.NewGroup(sampleColumns()) // thrown away
			}
			touched[day] = p
			return p.group
		}
		for id := from; id < end; id++ {
			e := a.entries[id]
			if f.fill(groupOf, e, int64(id), batches[e.target]); failed != nil || ctx.Err() != nil {
				return cmp.Or(failed, context.Cause(ctx))
			}
		}
		for day, p := range touched {
			if err := p.stream.Add(p.group); err != nil {
				return err
			}
			if p.group.Reset(); p.size > maxFile {
				if err := a.endPart(day); err != nil {
					return err
				}
			}
		}
		from = end
	}
	return nil
}

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

// partOf returns the file of a day, which it begins if there is none.
func (a *adder) partOf(day int64) (*part, error) {
	if p := a.days[day]; p != nil {
		return p, nil
	}
	name := time.Unix(day*86400, 0).UTC().Format(time.DateOnly)
	out, err := a.create(fmt.Sprintf("%s/day=%s/part-%05d.parquet", a.folder("samples"), name, a.parts[day]))
	if err != nil {
		return nil, err
	}
	p := &part{output: out, group: parquetwriter.NewGroup(sampleColumns())}
	if p.stream, err = parquetwriter.NewStream(out, sampleColumns(), a.createdBy(), a.metadata("samples"), colSeries,
		colTime); err != nil {
		out.file.Abort()
		return nil, err
	}
	a.days[day] = p
	return p, nil
}

func (a *adder) metadata(table string) map[string]string {
	return map[string]string{"scrapestat.layout": "lake." + table}
}

// endPart finishes the file of a day.
func (a *adder) endPart(day int64) error {
	p := a.days[day]
	if err := p.stream.End(); err != nil {
		return err
	}
	rows := p.stream.Rows()
	a.row.Rows += rows
	delete(a.days, day)
	a.parts[day]++
	if err := a.finish(p.output, rows); err != nil {
		p.file.Abort()
		return err
	}
	return nil
}

// publish writes the row of table runs, which makes the run exist.
func (a *adder) publish() (*Run, bool, error) {
	full := runPath(a.dir, a.row.Name)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return nil, false, fmt.Errorf("write lake: %w", err)
	}
	f, err := atomicfile.Create(full, atomicfile.DefaultPerm)
	if err != nil {
		return nil, false, err
	}
	defer f.Abort()
	if err := writeRun(f, &a.row); err != nil {
		return nil, false, err
	}
	if a.o.Replace {
		err = f.Commit()
	} else if err = f.CommitNew(); errors.Is(err, fs.ErrExist) { // somebody was faster
		have, err := present(a.dir, &a.row, false)
		return have, true, err
	}
	if err == nil && a.o.Wrote != nil {
		a.o.Wrote("runs/run=" + a.row.Name + "/" + runFile)
	}
	return &a.row, false, err
}

func writeRun(w io.Writer, row *Run) error {
	return parquetwriter.Rows(w, "lake.runs", func(yield func(Run, error) bool) { yield(*row, nil) })
}
