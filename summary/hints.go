package summary

import (
	"fmt"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// hintServers tells the hints of servers on runs: what one does not show, and what only looks strange.
func (r *Run) hintServers() {
	servers := r.Options.Catalog.Servers()
	shown := make([]map[string]bool, len(r.Endpoints)) // the servers that have numbers
	for i := range shown {
		shown[i] = map[string]bool{}
	}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		server := r.Options.Catalog.ServerOf(m.Name)
		for j := range m.Series {
			shown[m.Series[j].Endpoint][server] = true
		}
	}
	for i := range r.Endpoints {
		for _, p := range servers {
			for k := range p.Hints {
				r.Endpoints[i].hint(p, &p.Hints[k], r.Options.Catalog, shown[i])
			}
		}
	}
}

// hint tells a hint of a server where it applies.
func (e *Endpoint) hint(p *catalog.Server, h *catalog.Hint, c *catalog.Catalog, shown map[string]bool) {
	declared := 0
	for _, name := range e.Declared {
		if h.Run != "" && c.ServerOf(name) == p.Name {
			declared++
		}
	}
	if declared == 0 && !shown[p.Name] {
		return
	}
	of := slices.ContainsFunc(h.Of, func(server string) bool { return shown[server] })
	text := ""
	switch every, renews := e.InWindow.interval(), p.Recognise.Every; {
	case h.Run == catalog.Silent && !shown[p.Name] && !of:
		text = fmt.Sprintf("%s names %d families and gives no numbers: %s", p.Title, declared, h.Text)
	case h.Run == catalog.Fast && of && every > 0 && every < renews*9/10:
		text = fmt.Sprintf("%s renews %s every %v at most: polled every %v they stand still in between, and only seem "+
			"frozen", p.Title, h.Text, renews, every.Round(time.Millisecond))
	default:
		return
	}
	e.Warnings = append(e.Warnings, metric.Warning{Code: h.Code, Text: text})
}

// interval is the mean time between fetches, 0 when it is not known.
func (f *FetchStats) interval() time.Duration {
	if f == nil || f.Total < 2 {
		return 0
	}
	return time.Duration(f.LastNS-f.FirstNS) / time.Duration(f.Total-1)
}
