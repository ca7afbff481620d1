package parquetwriter

import (
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/scrapestat/scrapestat/internal/column"
)

// The bounds of a table in memory and on disk. None depends on the machine, so
// a recording gives the same bytes everywhere.
const (
	tableBudget    = 24 << 20 // bytes of turned-round recording held at a time
	tableGroupRows = 1 << 20  // rows of a row group
	tableWorkers   = 8        // at most, as each holds a page of every column
)

// Layout is how series become rows.
type Layout interface {
	// Polls returns the range of polls of a stripe that can have rows.
	Polls(st *column.Batch) (from, to int32)
	// Rows returns how many rows a sample of the series has at most.
	Rows(st *column.Batch, series int) int
	// Filler returns the state of one worker.
	Filler() Filler
}

// Filler appends the rows of the samples from <= poll < to of a series.
type Filler interface {
	Fill(out *Group, st *column.Batch, series int, from, to int32)
}

// Table writes the series of sources as one Parquet file.
type Table struct {
	Columns   []Column
	Layout    Layout
	Sources   []*column.Source
	CreatedBy string
	Metadata  map[string]string // key and value in the footer
	Sorting   []int             // columns that rows are sorted by

	Budget    int // 0: tableBudget
	GroupRows int // 0: tableGroupRows
	Workers   int // 0: GOMAXPROCS, at most tableWorkers

	nextID int64 // of the first series of the next source
}

// Write writes the file in rounds: as much of the recording as fits into memory
// is turned round, then written by several workers while the next round is read.
func (t *Table) Write(ctx context.Context, out io.Writer) error {
	t.defaults()
	file := newFile(out, t.Columns, t.CreatedBy, t.Metadata)
	file.sortedBy(t.Sorting...)
	if err := file.begin(); err != nil {
		return err
	}
	groups := make([]*Group, t.Workers)
	for i := range groups {
		groups[i] = NewGroup(t.Columns)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rounds := make(chan tableRound)
	wg.Go(func() { t.read(ctx, rounds) })
	for r := range rounds {
		if r.err != nil {
			return r.err
		}
		if err := t.writeRound(ctx, file, groups, t.cut(r.stripes)); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return file.end()
}

// tableRound is what is held of the recording at a time.
type tableRound struct {
	stripes []*column.Batch
	err     error
}

// read sends all rounds; it is at most one ahead.
func (t *Table) read(ctx context.Context, rounds chan<- tableRound) {
	defer close(rounds)
	for more := true; more; more = len(t.Sources) > 0 {
		stripes, err := t.gather(ctx)
		select {
		case rounds <- tableRound{stripes, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (t *Table) defaults() {
	t.Budget = cmp.Or(t.Budget, tableBudget)
	t.GroupRows = cmp.Or(t.GroupRows, tableGroupRows)
	t.Workers = cmp.Or(t.Workers, min(runtime.GOMAXPROCS(0), tableWorkers))
}

// gather collects stripes of the sources that are left until the budget is used.
func (t *Table) gather(ctx context.Context) ([]*column.Batch, error) {
	var stripes []*column.Batch
	for left := t.Budget; len(t.Sources) > 0 && left > t.Budget/4; {
		src := t.Sources[0]
		st, err := src.Collect(ctx, left)
		if err != nil {
			return nil, err
		}
		st.FirstID = t.nextID
		stripes = append(stripes, st)
		left -= st.Bytes
		if !src.Done {
			break
		}
		t.Sources = t.Sources[1:]
		t.nextID += int64(len(st.Schema.Series))
	}
	return stripes, nil
}

// tablePiece is some samples of some series of a stripe.
type tablePiece struct {
	st       *column.Batch
	series   int // from <= series < to
	end      int
	from, to int32 // polls
}

// cut divides stripes into row groups of about equal size, none bigger than
// groupRows. A series is cut only when it is bigger than a row group.
func (t *Table) cut(stripes []*column.Batch) [][]tablePiece {
	total := 0
	t.each(stripes, func(_ *column.Batch, _, rows int, from, to int32) { total += rows * int(to-from) })
	if total == 0 {
		return nil
	}
	n := (total + t.GroupRows - 1) / t.GroupRows
	size := (total + n - 1) / n
	var groups [][]tablePiece
	var group []tablePiece
	used := 0
	flush := func() {
		if len(group) > 0 {
			groups, group, used = append(groups, group), nil, 0
		}
	}
	t.each(stripes, func(st *column.Batch, series, rows int, from, to int32) {
		if used >= size || used+rows*int(to-from) > t.GroupRows {
			flush()
		}
		for step := int32(max(1, t.GroupRows/rows)); to-from > step && rows*int(to-from) > t.GroupRows; from += step {
			groups = append(groups, []tablePiece{{st, series, series + 1, from, from + step}})
		}
		used += rows * int(to-from)
		if i := len(group) - 1; i >= 0 && group[i].st == st && group[i].end == series && group[i].from == from {
			group[i].end = series + 1
			return
		}
		group = append(group, tablePiece{st, series, series + 1, from, to})
	})
	flush()
	return groups
}

// each calls visit for each series that can have rows.
func (t *Table) each(stripes []*column.Batch, visit func(st *column.Batch, series, rows int, from, to int32)) {
	for _, st := range stripes {
		from, to := t.Layout.Polls(st)
		if from >= to {
			continue
		}
		for series := st.From; series < st.To; series++ {
			if rows := t.Layout.Rows(st, series); rows > 0 {
				visit(st, series, rows, from, to)
			}
		}
	}
}

// writeRound writes row groups in parallel and commits them in order: a worker
// that is done with a group waits for the group before it.
func (t *Table) writeRound(ctx context.Context, file *file, groups []*Group,
	pieces [][]tablePiece) error {
	turns := make([]chan struct{}, len(pieces)+1)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	close(turns[0])
	errs := make([]error, len(pieces))
	var failed sync.Once
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var wg sync.WaitGroup
	for w, group := range groups {
		wg.Go(func() {
			filler := t.Layout.Filler()
			for i := w; i < len(pieces); i += len(groups) {
				err := fillGroup(ctx, filler, group, pieces[i])
				<-turns[i]
				if err == nil && ctx.Err() == nil {
					err = file.commit(group)
				}
				if err != nil {
					failed.Do(func() { errs[i] = err })
					cancel()
				}
				close(turns[i+1])
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, context.Cause(ctx))...)
}

func fillGroup(ctx context.Context, f Filler, group *Group, pieces []tablePiece) error {
	group.Reset()
	for _, p := range pieces {
		for series := p.series; series < p.end; series++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			f.Fill(group, p.st, series, p.from, p.to)
		}
	}
	return group.Finish()
}
