package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/units"
)

// busyRows is how many families of servers that no pack explains are told.
const busyRows = 10

// busiest lists the families of a server of no known engine that saw most: rates of what is counted and means.
func (t *pageBuilder) busiest() {
	var left []int
	for i := range t.run.Endpoints {
		if e := &t.run.Endpoints[i]; !t.explained[i] && e.SameAs == 0 && e.Ledger.StoredPolls() > 0 {
			left = append(left, i)
		}
	}
	n := 0
	for k, i := range left {
		list, moved := t.busy(i)
		if moved == 0 {
			continue
		}
		n++
		most := max(3, busyRows*2/max(2, len(left)))
		tab := t.screenTable(face("FAMILY"), number("", "RATE"), number("", "MEAN"), spare(number("", "SERIES"), spareCount),
			spare(face("TYPE"), spareHelp))
		tab.heading = fmt.Sprintf("%s  no known engine: the busiest of %s that moved",
			t.run.Endpoints[i].Shown(), texttab.Count(moved, "family"))
		if tab.heading = strings.Replace(tab.heading, "familys", "families", 1); n > 4 {
			t.legend = append(t.legend, fmt.Sprintf("%d more targets of no known engine (--families lists all)", len(left)-k))
			return
		}
		for _, f := range list[:min(most, len(list))] {
			tab.row(only(f.name), only(f.rate), only(f.mean), tally(f.series), only(f.typ))
		}
		t.add(tab)
	}
}

// busyFamily is a family with what it did over all series of a target.
type busyFamily struct {
	name, rate, mean, typ string
	series                int
	score                 float64
}

// busy returns the families of an endpoint that moved, the busiest first, and how many they are. What client libraries
// tell of their own process comes last.
func (t *pageBuilder) busy(endpoint int) (out []busyFamily, moved int) {
	for i := range t.run.Metrics {
		m := &t.run.Metrics[i]
		f := busyFamily{name: m.Name, typ: m.Type.String(), score: -1}
		counted, sum, n, level := 0.0, 0.0, 0.0, 0.0
		for j := range m.Series {
			s := &m.Series[j]
			if s.Endpoint != endpoint {
				continue
			}
			f.series++
			switch {
			case s.Counter != nil && s.Counter.Total != 0:
				counted, f.score = counted+s.Counter.Rate, max(f.score, 0)
			case s.Histogram != nil && s.Histogram.Count > 0:
				counted, f.score = counted+s.Histogram.CountRate, max(f.score, 0)
				sum, n = sum+s.Histogram.Sum, n+float64(s.Histogram.Count)
			case s.Summary != nil && s.Summary.Count > 0:
				counted, f.score = counted+s.Summary.CountRate, max(f.score, 0)
				sum, n = sum+s.Summary.Sum, n+float64(s.Summary.Count)
			case s.Gauge != nil && s.Gauge.Min != s.Gauge.Max:
				level += s.Gauge.TimeAvg
				f.score = max(f.score, 0)
			}
		}
		if f.score < 0 {
			continue
		}
		moved++
		unit := m.ShownUnit()
		switch {
		case n > 0:
			f.mean = units.Format(sum/n, unit)
			f.rate, f.score = digits(counted)+"/s", counted
		case counted > 0:
			f.rate, f.score = busyRate(counted, unit)
		default:
			f.mean, f.score = units.Format(level/float64(f.series), unit), -0.5
		}
		known, ok := t.run.Options.Catalog.Family(m.Name)
		library := ok && known.Engine == "generic" && !strings.HasPrefix(m.Name, "http")
		if library || !ok && t.run.Options.Catalog.Known(m.Name) {
			f.score -= 1e12 // of a client library
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b busyFamily) int { return cmp.Compare(b.score, a.score) })
	return out, moved
}

// busyRate is the rate of a counter as text, and what it counts for among others: a byte less than an event.
func busyRate(rate float64, unit string) (string, float64) {
	switch unit {
	case "bytes":
		return units.Format(rate, "bytes/s"), rate / 1e6
	case "seconds":
		return units.Format(rate, "seconds") + "/s", rate
	}
	return digits(rate) + "/s", rate
}
