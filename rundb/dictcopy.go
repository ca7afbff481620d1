package rundb

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// maxCopy is how many bytes of rows go into a row of table dictionary, before compression.
const maxCopy = 1 << 20

// copies is who had a turn, and when the next one has: what blocks are read with is written once more into table
// dictionary, of each target in WriterOptions.CopyEvery, and at the end of a run of those that grew since.
type copies struct {
	every         time.Duration
	targets, next int
	last          time.Time
	grown         map[int]bool
}

// grew notes that a target has more to repeat.
func (x *copies) grew(target int) {
	if x.grown == nil {
		x.grown = map[int]bool{}
	}
	x.grown[target] = true
	x.targets = max(x.targets, target+1)
}

// due returns the target whose turn it is, if it is time.
func (x *copies) due(now time.Time) (target int, ok bool) {
	if x.last.IsZero() {
		x.last = now
	}
	if x.targets == 0 || now.Sub(x.last) < x.every/time.Duration(x.targets) {
		return 0, false
	}
	x.last, x.next = now, (x.next+1)%x.targets
	return x.next, true
}

// repeatDue has the target repeated whose turn it is.
func (c *conn) repeatDue() error {
	if target, ok := c.copies.due(time.Now()); ok {
		return c.repeat(context.Background(), target)
	}
	return nil
}

// repeat writes what blocks of these targets are read with once more.
func (c *conn) repeat(ctx context.Context, targets ...int) error {
	var rows []byte
	flush := func(least int) error {
		if len(rows) <= least {
			return nil
		}
		_, err := c.dictionary.ExecContext(ctx, summed("dictionary", c.z.EncodeAll(rows, nil))...)
		rows = rows[:0]
		return err
	}
	read := func(table, rest string, args ...any) error {
		run := Run{version: SchemaVersion} // for what it knows of rows
		err := run.each(ctx, c.c, table, rest, args, func(scan func(...any) error) error {
			t, _ := tableOf(table)
			values := make([]any, 1+strings.Count(t.columns, ","))
			to := make([]any, len(values))
			for i := range values {
				to[i] = &values[i]
			}
			if err := scan(to...); err != nil {
				return err
			}
			row := appendRow(nil, table, values)
			rows = append(binary.AppendUvarint(rows, uint64(len(row))), row...)
			return flush(maxCopy)
		})
		if isDamage(err) {
			return nil // who reads it says so
		}
		return err
	}
	for _, table := range []string{"meta", "target", "target_labels", "mark", "life"} {
		if err := read(table, ""); err != nil {
			return fmt.Errorf("repeat table %s: %w", table, err)
		}
	}
	for _, target := range targets {
		for _, table := range []string{"family", "series", "slots"} {
			if err := read(table, "WHERE id BETWEEN ? AND ?", key(target, 0), key(target, maxPoll)); err != nil {
				return fmt.Errorf("repeat table %s: %w", table, err)
			}
		}
		delete(c.copies.grown, target)
	}
	return flush(0)
}
