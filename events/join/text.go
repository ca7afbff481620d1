package join

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Text writes the result for a person.
func (r *Result) Text(w io.Writer) error {
	var b strings.Builder
	clock := func(ns int64) string { return time.Unix(0, ns).UTC().Format("15:04:05.000") }
	fmt.Fprintf(&b, "Clients against %s, %s to %s UTC\n", r.Engine, clock(r.FromNS), clock(r.ToNS))
	fmt.Fprintf(&b, "clock anchors: %s; families: %s\n", strings.Join(r.Clocks, ", "), strings.Join(r.Families, ", "))
	for i, name := range []string{"start", "end"} {
		e := r.InFlight[i]
		fmt.Fprintf(&b, "under way at the %s: clients %d, server %s\n", name, e.Client, number(e.Server))
	}
	fmt.Fprintf(&b, "failed requests of the clients: %d\n\n", r.Failed)
	fmt.Fprintf(&b, "%-12s %9s %9s %7s %14s %14s %14s\n", "", "clients", "server", "agree", "client mean", "server mean",
		"overhead")
	for _, q := range []struct {
		name string
		*Quantity
	}{{"TTFT", &r.TTFT}, {"end to end", &r.E2E}} {
		q.row(&b, q.name)
	}
	fmt.Fprintf(&b, "\n%-12s %14s %14s %14s %14s %20s\n", "TTFT", "client", "server", "queue", "prefill",
		"network + frontend")
	fmt.Fprintf(&b, "%-12s %14s %14s %14s %14s %20s\n", "mean", ms(r.TTFT.Client.Mean), ms(r.TTFT.Server.Mean),
		ms(r.Queue.Mean), ms(r.Prefill.Mean), ms(r.TTFT.Overhead))
	fmt.Fprintf(&b, "\nPercentiles: the server's are estimated from buckets; differences are not additive.\n")
	fmt.Fprintf(&b, "%-12s %14s %14s %14s\n", "", "client", "server", "difference")
	for _, q := range []struct {
		name string
		*Quantity
	}{{"TTFT", &r.TTFT}, {"end to end", &r.E2E}} {
		for _, p := range q.Percentiles {
			fmt.Fprintf(&b, "%-12s %14s %14s %14s\n", fmt.Sprintf("%s p%g", short(q.name), p.Q*100), ms(p.Client), ms(p.Server),
				ms(p.Difference))
		}
	}
	r.slicesText(&b, clock)
	for _, m := range r.Matched {
		fmt.Fprintf(&b, "\nby request, %s: %d of %d logged, server mean %s %s, client mean %s, overhead %s", m.Family,
			m.Requests, m.Logged, number(m.Server), m.Unit, ms(m.Client), ms(m.Overhead))
	}
	if len(r.Matched) > 0 {
		b.WriteString("\n")
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s", x.Text)
	}
	if len(r.Warnings) > 0 {
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) slicesText(b *strings.Builder, clock func(int64) string) {
	if len(r.Slices) == 0 {
		return
	}
	b.WriteString("\nPer timeslice (requests near an edge may count on either side):\n")
	for i := range r.Slices {
		r.Slices[i].TTFT.row(b, clock(r.Slices[i].StartNS))
		r.Slices[i].E2E.row(b, "  end to end")
	}
}

func (q *Quantity) row(b *strings.Builder, name string) {
	agree := map[bool]string{true: "yes", false: "NO"}[q.Agree]
	fmt.Fprintf(b, "%-12s %9d %9.0f %7s %14s %14s %14s\n", name, q.Client.Count, q.Server.Count, agree, ms(q.Client.Mean),
		ms(q.Server.Mean), ms(q.Overhead))
}

func short(name string) string {
	if name == "TTFT" {
		return name
	}
	return "E2E"
}

func ms(s *float64) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", *s*1e3)
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.6g", *v)
}
