package rundb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// insertRows is how many rows a statement inserts at a time: a target may have hundreds of thousands of series,
// and most of the cost of a row is that of its statement.
const insertRows = 32

// inserter inserts rows into one table.
type inserter struct {
	one, many *sql.Stmt
	args      []any
}

// prepare makes the statements for a table and its columns, written as "table (a, b)".
func (x *inserter) prepare(ctx context.Context, c *sql.Conn, columns string) (err error) {
	row := "(?" + strings.Repeat(", ?", strings.Count(columns, ",")) + ")"
	if x.one, err = c.PrepareContext(ctx, "INSERT INTO "+columns+" VALUES "+row); err != nil {
		return err
	}
	x.many, err = c.PrepareContext(ctx, "INSERT INTO "+columns+" VALUES "+row+strings.Repeat(", "+row, insertRows-1))
	return err
}

// insert inserts n rows; row appends the values of row i.
func (x *inserter) insert(n int, row func(i int, args []any) ([]any, error)) (err error) {
	for i := 0; i < n; {
		stmt, end := x.one, i+1
		if n-i >= insertRows {
			stmt, end = x.many, i+insertRows
		}
		x.args = x.args[:0]
		for ; i < end; i++ {
			if x.args, err = row(i, x.args); err != nil {
				return err
			}
		}
		if _, err = stmt.Exec(x.args...); err != nil {
			return err
		}
	}
	return nil
}

// close closes the statements; it may be called again.
func (x *inserter) close() (err error) {
	for _, s := range []**sql.Stmt{&x.one, &x.many} {
		if *s != nil {
			err = errors.Join(err, (*s).Close())
			*s = nil
		}
	}
	return err
}
