package collect

import (
	"fmt"
	"strings"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// ClientStats is what the client's side of a run brought.
type ClientStats struct {
	FromLines       bool
	Lines           events.LineStats
	FirstNS, LastNS int64        // the range of times in lines
	Proxy           *proxy.Stats // nil without a proxy
	Events          rundb.EventStats
	Pending         int                   // events that could not be written in time
	Failed          bool                  // the rest counts what is there all the same
	Server          []metric.ServerSource // who told of requests on the side of servers
	Session         *events.Session       // nil when the table of requests could not be made
}

// Lost is how much of what was told is not in the run as it was.
func (s *ClientStats) Lost() int64 {
	n := int64(s.Lines.Bad) + s.Events.Lost() + int64(s.Pending) + s.serverLost()
	if s.Proxy != nil {
		n += s.Proxy.Lost()
	}
	return n
}

// LossText is what was lost, in parts.
func (s *ClientStats) LossText() string {
	var parts []string
	if s.FromLines || s.Proxy == nil {
		parts = append(parts, fmt.Sprintf("%d lines bad", s.Lines.Bad))
	}
	parts = append(parts, fmt.Sprintf("%d events lost", s.Events.Lost()+int64(s.Pending)))
	if s.Proxy != nil {
		parts = append(parts, fmt.Sprintf("%d requests or answers lost by the proxy", s.Proxy.Lost()))
	}
	if len(s.Server) > 0 {
		parts = append(parts, fmt.Sprintf("%d records of servers lost", s.serverLost()))
	}
	return strings.Join(parts, ", ")
}

// String is one line for a person.
func (s *ClientStats) String() string {
	requests, failed, flying := 0, 0, 0
	if s.Session != nil {
		for i := range s.Session.Requests {
			switch s.Session.Requests[i].Status {
			case events.Failed:
				failed++
			case events.InFlight:
				flying++
			}
		}
		requests = len(s.Session.Requests)
	}
	from := "the proxy"
	switch {
	case s.FromLines && s.Proxy != nil:
		from = fmt.Sprintf("%d lines and the proxy", s.Lines.Lines)
	case s.FromLines:
		from = fmt.Sprintf("%d lines", s.Lines.Lines)
	case s.Proxy == nil:
		from = "the caller"
	}
	if s.Server != nil && s.Events.Recorded == 0 {
		return s.serverText()
	}
	text := ""
	if s.Server != nil {
		text = "\n" + s.serverText()
	}
	return fmt.Sprintf("requests: %d (%d failed, %d in flight), %d events of %s, %s",
		requests, failed, flying, s.Events.Recorded, from, s.LossText()) + text
}

// Warnings are what is doubtful.
func (s *ClientStats) Warnings() []metric.Warning {
	var out []metric.Warning
	add := func(code, format string, args ...any) {
		out = append(out, metric.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if s.Lines.Bad > 0 {
		add("request_lines_bad", "%d of %d lines about requests could not be read, the first: %s",
			s.Lines.Bad, s.Lines.Lines, s.Lines.FirstBad)
	}
	if e := s.Events; e.Lost()+int64(s.Pending) > 0 {
		add("request_events_lost", "request events: %d dropped for want of memory (--max-pending), %d late, "+
			"%d not encodable, %d not written in time",
			e.Dropped, e.Late, e.EncodeErrors, s.Pending)
	}
	if s.Lines.Unanchored > 0 {
		add("request_times_unanchored", "%d times of requests do not count from 1970, "+
			"so the client's side cannot be joined with the servers'", s.Lines.Unanchored)
	}
	if len(s.Lines.Unknown) > 0 {
		add("request_keys_unknown", "keys of the lines about requests that are not known and were left out: %q",
			strings.Join(s.Lines.Unknown, ", "))
	}
	if p := s.Proxy; p != nil && p.Lost() > 0 {
		add("proxy_incomplete", "the proxy refused %d requests beyond its limit (--max-streams); of answers %d could "+
			"not be scanned, "+
			"%d were larger than a limit, %d unreadable: their tokens are unknown", p.Refused, p.Unscanned, p.Oversized,
			p.Unreadable)
	}
	out = append(out, s.serverWarnings()...)
	if s.Session != nil && s.Events.Recorded > 0 {
		out = append(out, s.Session.Warnings...)
	}
	return out
}

// ProxyReport is what the proxy did and cost, in sentences, if there was one.
func (s *ClientStats) ProxyReport() []string {
	p := s.Proxy
	if p == nil {
		return nil
	}
	out := []string{
		fmt.Sprintf("proxy: %d requests (%d failed), %d passed unrecorded", p.Requests, p.Failed, p.Passed),
		fmt.Sprintf("proxy: added per request p50 %v, p99 %v, most %v (a slow client counts too)", p.Added.P50, p.Added.P99,
			p.Added.Max)}
	if n := p.Null; n != nil {
		out = append(out, fmt.Sprintf("proxy: in front of a server that does nothing, p50 rose by %v and p99 by %v in "+
			"%d requests",
			n.AddedP50, n.AddedP99, n.N))
	}
	return out
}

// Counts is what the manifest has of the client's side.
func (s *ClientStats) Counts() map[string]int64 {
	out := map[string]int64{"lines": int64(s.Lines.Lines), "lines_bad": int64(s.Lines.Bad), "events": s.Events.Recorded,
		"dropped": s.Events.Dropped, "late": s.Events.Late, "encode_errors": s.Events.EncodeErrors,
		"pending": int64(s.Pending)}
	if p := s.Proxy; p != nil {
		out["proxied"], out["proxy_failed"], out["proxy_passed"], out["proxy_refused"] = p.Requests, p.Failed, p.Passed,
			p.Refused
		out["proxy_unscanned"], out["proxy_oversized"], out["proxy_unreadable"] = p.Unscanned, p.Oversized, p.Unreadable
	}
	for _, x := range s.Server {
		out["server_records"] += x.Records
		out["server_bad"] += x.Bad
		out["server_dropped"] += x.Dropped
	}
	if s.Session != nil {
		out["requests"] = int64(len(s.Session.Requests))
	}
	return out
}
