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
// run, engine and model. An empty cell is a value that is missing. What other columns there are, twice the same run,
// and what is no number are refused. Values come without slices: single runs have nothing to be judged by.
func ReadCSV(r io.Reader) ([]Values, error) {
	in := csv.NewReader(io.LimitReader(r, maxCSVBytes))
	in.ReuseRecord, in.TrimLeadingSpace = true, true
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("read the columns: %w", err)
	}
	columns, err := columnsOf(head)
	if err != nil {
		return nil, err
	}
	var out []Values
	for {
		line, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read values: %w", err)
		}
		v, err := columns.values(line)
		if err != nil {
			return nil, fmt.Errorf("run %d: %w", len(out)+1, err)
		}
		if len(out) == maxCSVRuns {
			return nil, fmt.Errorf("more than %d runs", maxCSVRuns)
		}
		if v.Run != "" && slices.ContainsFunc(out, func(o Values) bool { return o.Run == v.Run }) {
			return nil, fmt.Errorf("run %d: %q is there twice", len(out)+1, v.Run)
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return nil, errors.New("no line of values")
	}
	return out, nil
}

// column is what a column of a CSV is: a row of the headline, or one of the texts.
type column struct {
	text string
	row  Row
}

type columnList []column

func columnsOf(head []string) (columnList, error) {
	rows := Rows()
	var known []string
	for i := range rows {
		known = append(known, rows[i].Name())
	}
	var out columnList
	for i, name := range head {
		name = strings.TrimPrefix(strings.TrimSpace(name), "\ufeff")
		at := slices.Index(known, name)
		switch {
		case slices.Contains(head[:i], name):
			return nil, fmt.Errorf("column %s is there twice", name)
		case slices.Contains([]string{"run", "engine", "model"}, name):
			out = append(out, column{text: name})
		case at < 0:
			return nil, fmt.Errorf("column %q is no row (known: run, engine, model, %s)", name, strings.Join(known, ", "))
		default:
			out = append(out, column{row: rows[at]})
		}
	}
	return out, nil
}

// values are those of a line, which has as many cells as there are columns.
func (list columnList) values(line []string) (Values, error) {
	var out Values
	texts := map[string]*string{"run": &out.Run, "engine": &out.Engine, "model": &out.Model}
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
		if cell := strings.TrimSpace(line[i]); cell == "" {
			v.Missing = "no value in the file"
		} else if x, err := strconv.ParseFloat(cell, 64); err != nil {
			return out, fmt.Errorf("%s is %q, want a number", c.row.Name(), cell)
		} else if v.Value = x; !(x >= 0) || math.IsInf(x, 0) {
			v.Missing = "not a number from 0 up"
		}
		out.Group.Values = append(out.Group.Values, v)
	}
	return out, nil
}
