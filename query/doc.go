// Package query lists the statistics of a run as rows of one table, stats: a row is one statistic of one thing over one
// span. Its columns never depend on what was measured, so that tables of several runs unite.
//
//	for row := range query.Stats(run, query.Options{Metrics: []string{"ttft"}}) {
//		fmt.Println(row.Target, row.Span, row.Stat, row.Value)
//	}
//
// What is missing is a row whose status says why, or no row; it is never 0. Nothing is kept of arguments, no goroutine
// is started, and rows are made while they are read.
package query
