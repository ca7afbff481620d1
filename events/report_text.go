package events

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// Text writes the validation as a table and a last line.
func (v Validation) Text(w io.Writer) error {
	var t texttab.Table
	t.Header("TARGET", "VERDICT", "MEASURED", "MARGIN")
	t.Right(2, 3)
	for _, o := range v.Outcomes {
		measured, margin := "none: "+o.Measured.Reason, "-"
		if o.Measured.Known {
			measured = number(o.Measured.V)
			if o.Target.IsTime() {
				measured = millis(o.Measured.V) + " ms"
			}
		}
		if o.Margin.Known {
			margin = fmt.Sprintf("%+.2f %%", 100*o.Margin.V)
		}
		t.Row(o.Target.Text, string(o.Verdict), measured, margin)
	}
	if _, err := t.WriteTo(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, v.Verdict)
	return err
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// millis shows nanoseconds as milliseconds, with as many digits as they deserve.
func millis(ns float64) string {
	if ns < 1e4 {
		return strconv.FormatFloat(ns/1e6, 'g', 4, 64)
	}
	return strconv.FormatFloat(ns/1e6, 'f', 2, 64)
}

// orReason shows a value with a unit, or why there is none.
func orReason(v Value, unit string) string {
	if !v.Known {
		return "none (" + v.Reason + ")"
	}
	return number(v.V) + unit
}

// told shows a count, or that the source does not have it.
func told(n int) string {
	if n < 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var head texttab.Table
	length := orReason(r.Duration, " s")
	if r.Duration.Known {
		length = time.Duration(r.Duration.V * 1e9).String()
	}
	if r.Summary != "" {
		head.Row("Source", "a summary of MLPerf's endpoints benchmark, without requests")
	}
	head.Row("Window", r.Window+", "+length)
	head.Row("Requests", fmt.Sprintf("%s issued, %s completed, %s ok, %s failed, %s in flight; %s outside the window",
		told(r.Issued), told(r.Completed), told(r.Succeeded), told(r.Failed), told(r.InFlight), told(r.Outside)))
	head.Row("QPS", orReason(r.QPS, " ok/s"))
	head.Row("QPS of all", orReason(r.QPSAll, " /s"))
	head.Row("TPS", orReason(r.TPS, " tokens/s"))
	if r.Goodput.Known {
		head.Row("Goodput", fmt.Sprintf("%s (%d requests could not be judged)", orReason(r.Goodput, " /s"), r.GoodMissing))
	}
	head.Row("Tokens by", countList(r.TokenSources))
	head.Row("Finish", countList(r.Finish))
	if len(r.Errors) > 0 {
		head.Row("Errors", countList(r.Errors))
	}
	if _, err := head.WriteTo(w); err != nil {
		return err
	}
	rows := requestRows(r)
	fmt.Fprintln(w)
	if err := writeGrid(w, rows); err != nil {
		return err
	}
	for _, row := range rows {
		if row.d.Reason != "" {
			fmt.Fprintf(w, "%s: %s\n", row.name, texttab.Escape(row.d.Reason))
		}
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", texttab.Escape(x.Text))
	}
	return nil
}

func countList(list []Count) string {
	var parts []string
	for i, c := range list {
		if i == 8 {
			parts = append(parts, fmt.Sprintf("and %d others", len(list)-i))
			break
		}
		name := c.Name
		name = cmp.Or(name, "(not told)")
		parts = append(parts, fmt.Sprintf("%s %d", name, c.N))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// requestRow is a distribution with the form of its values.
type requestRow struct {
	name string
	d    *Distribution
	show func(float64) string
}

func requestRows(r *Report) []requestRow {
	rows := []requestRow{{"TTFT ms", &r.TTFT, millis}, {"latency ms", &r.Latency, millis},
		{"latency of all ms", &r.LatencyAll, millis}}
	if r.Weight != WeightToken {
		rows = append(rows, requestRow{"TPOT ms (" + r.PerToken + ")", &r.TPOT, millis})
	}
	if r.Weight != WeightRequest {
		rows = append(rows, requestRow{"TPOT ms by token", &r.TPOTTokens, millis})
	}
	return append(rows, requestRow{"ISL tokens", &r.ISL, number}, requestRow{"OSL tokens", &r.OSL, number})
}

// writeGrid prints the statistics: one column for each distribution and, beside
// those that have them, the early stopping estimates.
func writeGrid(w io.Writer, rows []requestRow) error {
	var t texttab.Table
	header := []string{""}
	for i, row := range rows {
		header = append(header, row.name)
		t.Right(i + 1)
	}
	t.Header(header...)
	line := func(name string, of func(requestRow) string) {
		cells := []string{name}
		for _, row := range rows {
			cell := "-"
			if row.d.N > 0 {
				cell = of(row)
			}
			cells = append(cells, cell)
		}
		t.Row(cells...)
	}
	line("n", func(r requestRow) string { return strconv.Itoa(r.d.N) })
	line("mean", func(r requestRow) string { return r.show(r.d.Mean) })
	line("std dev", func(r requestRow) string {
		if !r.d.StdDev.Known {
			return "-"
		}
		return r.show(r.d.StdDev.V)
	})
	line("min", func(r requestRow) string { return r.show(r.d.Min) })
	for i := len(Grid) - 1; i >= 0; i-- {
		line("p"+strconv.FormatFloat(Grid[i], 'f', -1, 64), func(r requestRow) string {
			if r.d.Quantiles[i].Missing {
				return "-"
			}
			return r.show(r.d.Quantiles[i].Value)
		})
	}
	line("max", func(r requestRow) string { return r.show(r.d.Max) })
	for _, p := range []float64{50, 90, 99, 99.9} {
		line(fmt.Sprintf("p%v early stop", p), func(r requestRow) string {
			if q, ok := r.d.Quantile(p); ok && q.HasEarly {
				return r.show(q.Early)
			}
			return "-"
		})
	}
	_, err := t.WriteTo(w)
	return err
}
