// Command house measures the size and the form of the repository against the
// limits of docs/decisions/0070-house.md, and fails when one is passed.
//
//	make house                                # what is quick
//	go run ./internal/house -cover -twins     # with coverage, and each twin
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	ok, err := run(context.Background(), os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

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

func run(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	f := flag.NewFlagSet("house", flag.ContinueOnError)
	cover := f.Bool("cover", false, "measure the coverage of the packages that compute: minutes")
	list := f.Bool("twins", false, "list the twins")
	if err := f.Parse(args); err != nil {
		return false, err
	}
	tree, err := readTree(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range twins(tree) {
		if *list {
			fmt.Fprintln(out, t)
		}
	}
	rows := append(form(tree), tests(tree)...)
	measures := []func(context.Context) (row, error){docLines, binarySize}
	for _, b := range baseline() {
		if *cover {
			measures = append(measures, b.coverage)
		}
	}
	for _, t := range trials() {
		rows = append(rows, t.row(tree))
	}
	for _, measure := range measures {
		r, err := measure(ctx)
		if err != nil {
			return false, err
		}
		rows = append(rows, r)
	}
	return show(out, rows)
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
		fmt.Fprintln(w, strings.Join([]string{r.name, number(r.value), limit, verdict}, "\t"))
	}
	return ok, w.Flush()
}
