package serve

import (
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// page lists the runs for a person.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	var text strings.Builder
	for _, x := range s.Runs() {
		fmt.Fprintf(&text, "%s\n", html.EscapeString(x.String()))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!DOCTYPE html><title>scrapestat serve</title><pre>%s\nPrometheus API: /api/v1/query?query=up\n"+
		"Grafana: data source \"Prometheus\" with this address</pre>\n", text.String())
}

// Status is a run as it is served.
type Status struct {
	Name          string
	From, To      time.Time // of its polls, shifted
	Targets       int
	Series, Polls int
	Shift         time.Duration
	Dir           string
	Interval      time.Duration
}

// String is a line for a person.
func (x Status) String() string {
	line := fmt.Sprintf("%-8s %s  %d targets  %d series", x.Name, x.To.Sub(x.From).Round(time.Second/10), x.Targets,
		x.Series)
	if x.Shift != 0 {
		line += fmt.Sprintf("   shifted by %v", x.Shift)
	}
	return line
}

// Every is the scrape interval that a dashboard is to know, in whole seconds as its ranges have them.
func (x Status) Every() string {
	return strconv.Itoa(max(int((x.Interval+time.Second-1)/time.Second), 1)) + "s"
}

// Runs tells what is served.
func (s *Server) Runs() (out []Status) {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	for _, r := range s.store.runs {
		from, to := r.span()
		x := Status{Name: r.Name, From: time.UnixMilli(from), To: time.UnixMilli(to), Targets: len(r.targets), Dir: r.Dir,
			Shift: time.Duration(r.shiftMS) * time.Millisecond, Interval: r.rec.Meta().Interval}
		for _, t := range r.targets {
			for i := range t.dict.Slots {
				if !t.dict.Slots[i].Role.Metadata() {
					x.Series++
				}
			}
		}
		out = append(out, x)
	}
	return out
}
