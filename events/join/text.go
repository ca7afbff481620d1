package join

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/summary"
)

// Text writes the result for a person.
func (r *Result) Text(w io.Writer) error {
	var b strings.Builder
	clock := func(ns int64) string { return time.Unix(0, ns).UTC().Format("15:04:05.000") }
	fmt.Fprintf(&b, "Clients against %s, %s to %s UTC\n", cmp.Or(r.Engine, "the server"), clock(r.FromNS), clock(r.ToNS))
	r.requestsText(&b)
	if r.Engine != "" {
		r.windowText(&b, clock)
	}
	for _, m := range r.Matched {
		fmt.Fprintf(&b, "\nby request, %s: %d of %d logged, server mean %s %s, client mean %s, outside %s", m.Family,
			m.Requests, m.Logged, number(m.Server), m.Unit, ms(m.Client), ms(m.Overhead))
	}
	if len(r.Matched) > 0 {
		b.WriteString("\n")
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s", texttab.Escape(x.Text))
	}
	if len(r.Warnings) > 0 {
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// requestsText is what was joined request by request.
func (r *Result) requestsText(b *strings.Builder) {
	q := r.Requests
	if q == nil {
		return
	}
	fmt.Fprintf(b, "joined   %s\n", q.Coverage.String())
	for _, c := range q.Clocks {
		fmt.Fprintf(b, "clocks   %s\n", texttab.Escape(c.String()))
	}
	b.WriteString("\n")
	if t := &q.TTFT; t.Requests > 0 {
		fmt.Fprintf(b, "TTFT, %d requests that both sides have%s\n", t.Requests,
			some(t.NotStreamed, " (%d without a first token)"))
		fmt.Fprintf(b, "%-6s %11s %11s %11s %11s %11s\n", "", "client", "outside", "front end", "queue", "prefill")
		fmt.Fprintf(b, "%-6s %11s %11s %11s %11s %11s\n", "mean", ms1(t.Client), ms1(t.Outside), ms1(t.Front), ms1(t.Queue),
			ms1(t.Prefill))
	}
	if t := q.Tail; t != nil {
		fmt.Fprintf(b, "%s\n", texttab.Escape(t.String()))
	}
	if e := &q.E2E; e.Requests > 0 {
		fmt.Fprintf(b, "\nend to end, %d requests: client %s = outside %s + server %s", e.Requests, ms1(e.Client),
			ms1(e.Outside), ms1(e.Server))
		if e.Decode != nil {
			fmt.Fprintf(b, " (decode %s)", ms1(e.Decode))
		}
		b.WriteString("\n")
	}
	r.exactText(b)
}

// exactText is the percentiles of the records beside the estimates.
func (r *Result) exactText(b *strings.Builder) {
	if len(r.Exact) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-16s %20s %20s %20s\n", "server", "p50", "p90", "p99")
	for i := range r.Exact {
		e := &r.Exact[i]
		name := strings.TrimSuffix(e.ID, "_s")
		if len(e.Percentiles) == 0 {
			fmt.Fprintf(b, "%-16s %s\n", name, e.Reason)
			continue
		}
		fmt.Fprintf(b, "%-16s", name)
		for _, p := range e.Percentiles {
			fmt.Fprintf(b, " %20s", boundsText(&p))
		}
		fmt.Fprintf(b, "  %s\n", recordsOf(e))
		if e.Percentiles[0].Estimate != nil {
			fmt.Fprintf(b, "%-16s", "  histogram")
			for _, p := range e.Percentiles {
				fmt.Fprintf(b, " %20s", ms1(p.Estimate))
			}
			b.WriteString("\n")
		}
	}
}

// recordsOf is what the percentiles are of.
func recordsOf(e *summary.Recorded) string {
	switch e.Status {
	case summary.Proven:
		return fmt.Sprintf("exact, all %d requests", e.Records)
	case summary.Unproven:
		return fmt.Sprintf("of %d records, not proven to be all", e.Records)
	}
	return e.Reason
}

// boundsText is the value or its bounds.
func boundsText(p *summary.RecordedPercentile) string {
	if *p.Low == *p.High {
		return ms1(p.Low)
	}
	return strings.TrimSuffix(ms1(p.Low), " ms") + " .. " + ms1(p.High)
}

// String is the difference of the clocks, or why it is not known.
func (c *Clock) String() string {
	switch {
	case c.Refused != nil && c.How == "":
		return "refused: " + c.Refused.Text
	case c.How == "":
		return fmt.Sprintf("not known (%s clock): server times are not placed", c.Kind)
	case c.How != "facts":
		return "the same: " + c.How
	}
	text := fmt.Sprintf("client = server %+.3f ms ± %.3f ms (facts of %d requests)", *c.Middle*1e3, (*c.HiS-*c.LoS)/2*1e3,
		c.Requests)
	if c.Drift != nil {
		text += fmt.Sprintf(", drift %+.0f .. %+.0f ppm", c.Drift[0]*1e6, c.Drift[1]*1e6)
	}
	return text
}

// String is the difference of the slow requests and the rest.
func (t *Tail) String() string {
	type part struct {
		name  string
		share float64
	}
	shares := []part{{"outside", t.Outside}, {"front end", t.Front}, {"queue", t.Queue}, {"prefill", t.Prefill}}
	slices.SortStableFunc(shares, func(a, b part) int { return cmp.Compare(b.share, a.share) })
	var parts []string
	for _, p := range shares {
		if p.share >= 0.03 {
			parts = append(parts, fmt.Sprintf("%.0f %% %s", p.share*100, p.name))
		}
	}
	common := "nothing else in common"
	if len(t.Common) > 0 {
		var list []string
		for _, c := range t.Common[:min(len(t.Common), 3)] {
			list = append(list, fmt.Sprintf("%s %s (%d of %d, of the rest %d)", c.Attribute, c.Value, c.Slow, t.K, c.Rest))
		}
		common = "in common: " + strings.Join(list, ", ")
	}
	return fmt.Sprintf("slowest %d: %+.0f ms, of it %s; %s", t.K, t.Excess*1e3, strings.Join(parts, ", "), common)
}

// SlowestText writes the slowest requests, one on each line.
func (r *Requests) SlowestText(w io.Writer, n int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-24s %9s %9s %9s %9s %9s %9s %7s %s\n", "slowest (ms)", "client", "outside", "front", "queue",
		"prefill", "decode", "tokens", "worker")
	cell := func(v float64) string {
		if math.IsNaN(v) {
			return "-"
		}
		return fmt.Sprintf("%.3f", v*1e3)
	}
	for _, x := range r.Slowest(n) {
		client := x.ClientTTFT
		if math.IsNaN(client) {
			client = x.ClientE2E
		}
		fmt.Fprintf(&b, "%-24s %9s %9s %9s %9s %9s %9s %7d %s\n", texttab.Escape(x.Client.ID), cell(client), cell(x.Outside),
			cell(x.Front), cell(x.Queue), cell(x.Prefill), cell(x.Decode), x.Output,
			texttab.Escape(cmp.Or(x.Place.Worker, x.Place.Replica)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func some(n int, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

func ms1(s *float64) string {
	if s == nil {
		return "-"
	}
	if v := math.Abs(*s * 1e3); v > 0 && v < 1 {
		return fmt.Sprintf("%.4f ms", *s*1e3)
	}
	return fmt.Sprintf("%.1f ms", *s*1e3)
}

// windowText is what the families of the window say.
func (r *Result) windowText(b *strings.Builder, clock func(int64) string) {
	fmt.Fprintf(b, "clock anchors: %s; families: %s\n", strings.Join(r.Clocks, ", "), strings.Join(r.Families, ", "))
	for i, name := range []string{"start", "end"} {
		e := r.InFlight[i]
		fmt.Fprintf(b, "under way at the %s: clients %d, server %s\n", name, e.Client, number(e.Server))
	}
	fmt.Fprintf(b, "failed requests of the clients: %d\n\n", r.Failed)
	fmt.Fprintf(b, "%-12s %9s %9s %7s %14s %14s %14s\n", "", "clients", "server", "agree", "client mean", "server mean",
		"overhead")
	for _, q := range []struct {
		name string
		*Quantity
	}{{"TTFT", &r.TTFT}, {"end to end", &r.E2E}} {
		q.row(b, q.name)
	}
	if r.Requests == nil { // by the means of the window: not of the same requests
		fmt.Fprintf(b, "\n%-12s %14s %14s %14s %14s %14s\n", "TTFT", "client", "outside", "front end", "queue", "prefill")
		outside := r.TTFT.Overhead
		if !r.TTFT.Agree {
			outside = nil // the means are of other requests
		}
		fmt.Fprintf(b, "%-12s %14s %14s %14s %14s %14s\n", "mean", ms(r.TTFT.Client.Mean), ms(outside),
			ms(minus(minus(r.TTFT.Server.Mean, r.Queue.Mean), r.Prefill.Mean)), ms(r.Queue.Mean), ms(r.Prefill.Mean))
	}
	if len(r.Exact) > 0 {
		r.slicesText(b, clock)
		return
	}
	fmt.Fprintf(b, "\nPercentiles: the server's are estimated from buckets; differences are not additive.\n")
	fmt.Fprintf(b, "%-12s %14s %14s %14s\n", "", "client", "server", "difference")
	for _, q := range []struct {
		name string
		*Quantity
	}{{"TTFT", &r.TTFT}, {"end to end", &r.E2E}} {
		for _, p := range q.Percentiles {
			fmt.Fprintf(b, "%-12s %14s %14s %14s\n", fmt.Sprintf("%s p%g", short(q.name), p.Q*100), ms(p.Client), ms(p.Server),
				ms(p.Difference))
		}
	}
	r.slicesText(b, clock)
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
