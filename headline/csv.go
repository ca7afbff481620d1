package headline

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Values are the rows of a run that was measured elsewhere.
type Values struct {
	Run string // its name, "" without one
	Group
}

// The limits of a CSV of values.
const (
	maxCSVBytes = 16 << 20
	maxCSVRuns  = 10_000
)

// ReadCSV reads a line of values for each run: columns are called as rows are (ttft_mean, in the unit of the row), or
// run, engine, model and estimator. An empty cell is a value that is missing. What other columns there are, twice the
// same run, and what is no number are refused. Values come without slices: single runs have nothing to be judged by.
func ReadCSV(r io.Reader) ([]Values, error) {
	var columns []column
	var out []Values
	limited := &io.LimitedReader{R: r, N: maxCSVBytes + 1}
	err := Lines(limited, func(head []string) (at int, err error) {
		columns, at, err = columnsOf(head)
		return at, err
	}, func(line []string) (int, error) {
		v, at, err := valuesOf(columns, line)
		switch {
		case err != nil:
			return at, err
		case len(out) == maxCSVRuns:
			return 0, fmt.Errorf("more than %d runs", maxCSVRuns)
		case v.Run != "" && slices.ContainsFunc(out, func(o Values) bool { return o.Run == v.Run }):
			return slices.IndexFunc(columns, func(c column) bool { return c.text == "run" }),
				fmt.Errorf("run %q is there twice", v.Run)
		}
		out = append(out, v)
		return 0, nil
	})
	if limited.N == 0 { // the last line may be cut within a number
		return nil, fmt.Errorf("more than %d MiB", maxCSVBytes>>20)
	}
	switch {
	case err != nil:
		return nil, err
	case len(out) == 0:
		return nil, errors.New("1:1: no line of values")
	}
	return out, nil
}

// maxCSVLine bounds the bytes of a line.
const maxCSVLine = 1 << 20

// lineReader reads up to left bytes for a line.
type lineReader struct {
	from io.Reader
	left int
}

func (l *lineReader) Read(b []byte) (n int, err error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a line of more than %d MiB", maxCSVLine>>20)
	}
	n, err = l.from.Read(b)
	l.left -= n
	return n, err
}

// Lines reads a CSV: head takes the names of the columns, of which none is empty or there twice, line the fields of
// each further line; they are valid until it returns. Both return which field is wrong, -1 for an error of its own;
// all others begin with line:column.
func Lines(r io.Reader, head, line func(fields []string) (at int, err error)) error {
	bounded := &lineReader{from: r}
	in := csv.NewReader(bounded)
	in.ReuseRecord, in.TrimLeadingSpace = true, true
	do := func(fields []string) (int, error) {
		fields[0] = strings.TrimPrefix(fields[0], "\ufeff")
		for i, name := range fields {
			if fields[i] = strings.TrimSpace(name); fields[i] == "" || slices.Contains(fields[:i], fields[i]) {
				return i, fmt.Errorf("column %q is empty or there twice", fields[i])
			}
		}
		return head(slices.Clone(fields))
	}
	for ; ; do = line {
		bounded.left = maxCSVLine
		fields, err := in.Read()
		var p *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &p):
			return fmt.Errorf("%d:%d: %w", p.Line, p.Column, p.Err)
		case err != nil:
			return err
		}
		if at, err := do(fields); err != nil && at < 0 {
			return err
		} else if err != nil {
			line, column := in.FieldPos(at)
			return fmt.Errorf("%d:%d: %w", line, column, err)
		}
	}
}

// csvTexts are the columns that have no value: estimator is that of the percentiles, unknown without it.
var csvTexts = []string{"run", "engine", "model", "estimator"}

// column is what a column of a CSV is: a row of the headline, or one of the texts.
type column struct {
	text string
	row  Row
}

func columnsOf(head []string) (out []column, at int, err error) {
	rows := Rows()
	var known []string
	for i := range rows {
		known = append(known, rows[i].Name())
	}
	for i, name := range head {
		switch at := slices.Index(known, name); {
		case slices.Contains(csvTexts, name):
			out = append(out, column{text: name})
		case at < 0:
			return nil, i, fmt.Errorf("column %q is no row (known: %s)", name,
				strings.Join(slices.Concat(csvTexts, known), ", "))
		default:
			out = append(out, column{row: rows[at]})
		}
	}
	return out, 0, nil
}

// valuesOf are those of a line, which has as many cells as there are columns.
func valuesOf(list []column, line []string) (out Values, at int, err error) {
	estimator := ""
	texts := map[string]*string{"run": &out.Run, "engine": &out.Engine, "model": &out.Model, "estimator": &estimator}
	for i, c := range list {
		if c.text != "" {
			*texts[c.text] = strings.Clone(line[i])
		}
	}
	for i, c := range list {
		if c.text != "" {
			continue
		}
		v := Value{Row: c.row, Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Quantity: c.row.quantity(out.Engine)}
		if _, ok := c.row.Quantile(); ok {
			v.Estimator = estimator
		}
		if cell := strings.TrimSpace(line[i]); cell == "" {
			v.Missing = "no value in the file"
		} else if x, err := strconv.ParseFloat(cell, 64); err != nil {
			return out, i, fmt.Errorf("%s is %q, want a number", c.row.Name(), cell)
		} else if v.Value = x; !(x >= 0) || math.IsInf(x, 0) {
			v.Missing = "not a number from 0 up"
		}
		out.Group.Values = append(out.Group.Values, v)
	}
	return out, 0, nil
}
