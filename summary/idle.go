package summary

import (
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/window"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// warnIdle warns of a run in which nothing of what would tell of a request moved, and none was there. Where the traffic
// was looked for, package window knows it better; where marks tell the window, nobody looks at the polls for that.
func (r *Run) warnIdle() {
	if r.Warned("no_traffic") != "" || r.Warned("empty_window") != "" {
		return
	}
	known := false
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if r.family(m) == nil {
			continue
		}
		for j := range m.Series {
			s := &m.Series[j]
			tier, level := traffic.Evidence(r.Options.Catalog, &metric.Family{Name: m.Name, Type: m.Type}, s.Labels)
			if tier != traffic.Known {
				continue
			}
			if known = true; s.moved(level) {
				return
			}
		}
	}
	if known {
		r.Warnings = append(r.Warnings, window.Idle())
	}
}

// moved reports whether a series was above 0, if it is a level, else whether it gained something, as far as that is
// known.
func (s *Series) moved(level bool) bool {
	if level {
		return s.Gauge == nil || s.Gauge.Max > 0
	}
	gained, ok := s.Gained()
	return !ok || gained > 0 || s.Samples < 2 && !s.HasRef
}
