// Package house measures the size and the form of the repository against the
// limits of docs/decisions/0070-house.md.
package house_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
)

var (
	measureAll = flag.Bool("house", false, "measure what make house shows")
	cover      = flag.Bool("cover-too", false, "measure the coverage of the packages that compute: minutes")
	listTwins  = flag.Bool("twins", false, "list the twins")
)

// row is one measurement and its limit: the most it may be, or the least. A
// limit below 0 is none.
type row struct {
	name         string
	value, limit float64
	least        bool
}

func most(name string, value, limit int) row { return row{name, float64(value), float64(limit), false} }

func (r row) over() bool {
	return r.limit >= 0 && (r.least && r.value < r.limit || !r.least && r.value > r.limit)
}

// TestHouse prints the rows and fails when one is over its limit, where -house asks
// for it: what is quick is held in every run by TestTrials and internal/lint.
func TestHouse(t *testing.T) {
	if !*measureAll {
		return
	}
	t.Chdir("../..")
	tree, err := readTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, twin := range twins(tree) {
		if *listTwins {
			fmt.Fprintln(&out, twin)
		}
	}
	perRoom, _ := roomLines(tree)
	rows := slices.Concat(form(tree), perRoom, tests(tree))
	measures := []func(context.Context) (row, error){docLines, binarySize}
	for _, b := range baseline() {
		if *cover {
			measures = append(measures, b.coverage)
		}
	}
	for _, c := range trials() {
		rows = append(rows, c.row(tree))
	}
	for _, measure := range measures {
		r, err := measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	ok, err := show(&out, rows)
	fmt.Print(out.String())
	if !ok || err != nil {
		t.Errorf("a row is over its limit, %v", err)
	}
}

// formerly has what rows were at commit 550823a, before knowledge that stood in two places got one home.
func formerly() map[string]float64 {
	return map[string]float64{
		"lines of Go without tests, all modules":                91_131,
		"twins of 6 lines and more, without tests":              5,
		`comments with "says ` + `that" or "says ` + `whether"`: 237,
		"lines over 120 columns, without tests":                 1519,
		"lines over 120 columns, tests":                         1566,
		"tests that skip for want of ../shared":                 12,
		"tests that may skip, whatever they need":               27,
		"files to touch for a format of exports":                5,
		"files to touch for a kind of target":                   5,
		"files to touch for a derived quantity":                 1,
		"files to touch for an engine":                          12,
		"bytes of the binary of make build":                     57_326_485,
	}
}

// show prints the table and reports whether nothing is over its limit.
func show(out io.Writer, rows []row) (ok bool, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	ok = true
	for _, r := range rows {
		limit, verdict := "", ""
		if r.limit >= 0 {
			limit, verdict = map[bool]string{false: "<= ", true: ">= "}[r.least]+number(r.limit), "ok"
		}
		if r.over() {
			ok, verdict = false, "over"
		}
		was, known := formerly()[r.name]
		if r.least && !known {
			was, known = r.limit, true // which may not fall
		}
		before := ""
		if known {
			before = number(was)
		}
		fmt.Fprintln(w, strings.Join([]string{r.name, before, number(r.value), limit, verdict}, "\t"))
	}
	return ok, w.Flush()
}
