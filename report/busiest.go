package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// busyRows is how many families of servers that no pack explains are told.
const busyRows = 10

// busiest lists the families of a server of no known server that saw most: rates of what is counted and means. Where no
// target of the run is a server, so does one that describes a machine.
func (t *pageBuilder) busiest(serverless bool) {
	var left []int
	for i := range t.run.Endpoints {
		if e := &t.run.Endpoints[i]; (serverless || !t.explained[i]) && e.SameAs == 0 && e.Ledger.StoredPolls() > 0 {
			left = append(left, i)
		}
	}
	tables := busyTables(t.run, left)
	for n, b := range tables {
		if n == 4 {
			t.legend = append(t.legend, fmt.Sprintf("%d more targets of no known server (--families lists all)", len(tables)-n))
			return
		}
		tab := t.screenTable(face("FAMILY"), number("", "RATE"), number("", "MEAN"), spare(number("", "SERIES"), spareCount),
			spare(face("TYPE"), spareHelp))
		tab.heading = b.Title
		for _, f := range b.Rows {
			tab.row(only(f.Name), only(f.Rate), only(f.Mean), tally(f.Series), only(f.Type))
		}
		t.add(tab)
	}
}

// BusyTable is the busiest families of a target of no known server. Texts are not escaped.
type BusyTable struct {
	Title string
	Rows  []BusyFamily
}

// BusyFamily is a family with what it did over all series of a target, "" for what it has not.
type BusyFamily struct {
	Name, Rate, Mean, Type string
	Series                 int

	score float64
}

// Busiest returns the busiest families of each target of a run of which no engine is known.
func Busiest(r *summary.Run) []BusyTable {
	var all []int
	for i := range r.Endpoints {
		if e := &r.Endpoints[i]; e.SameAs == 0 && e.Ledger.StoredPolls() > 0 {
			all = append(all, i)
		}
	}
	return busyTables(r, all)
}

func busyTables(r *summary.Run, of []int) (out []BusyTable) {
	for _, i := range of {
		list, moved := busy(r, i)
		if moved == 0 {
			continue
		}
		most := max(3, busyRows*2/max(2, len(of)))
		title := fmt.Sprintf("%s  no known server: the busiest of %s that moved", r.Endpoints[i].Shown(),
			texttab.Count(moved, "family"))
		out = append(out, BusyTable{strings.Replace(title, "familys", "families", 1), list[:min(most, len(list))]})
	}
	return out
}

// busy returns the families of an endpoint that moved, the busiest first, and how many they are. What client libraries
// tell of their own process comes last.
func busy(r *summary.Run, endpoint int) (out []BusyFamily, moved int) {
	for i := range r.Metrics {
		m := &r.Metrics[i]
		f := BusyFamily{Name: m.Name, Type: m.Type.String(), score: -1}
		counted, sum, n, level := 0.0, 0.0, 0.0, 0.0
		for j := range m.Series {
			s := &m.Series[j]
			if s.Endpoint != endpoint {
				continue
			}
			f.Series++
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
			f.Mean = units.Format(sum/n, unit)
			f.Rate, f.score = digits(counted)+"/s", counted
		case counted > 0:
			f.Rate, f.score = busyRate(counted, unit)
		default:
			f.Mean, f.score = units.Format(level/float64(f.Series), unit), -0.5
		}
		known, ok := r.Options.Catalog.Family(m.Name)
		library := ok && known.Engine == "generic" && !strings.HasPrefix(m.Name, "http")
		if library || !ok && r.Options.Catalog.Known(m.Name) {
			f.score -= 1e12 // of a client library
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b BusyFamily) int { return cmp.Compare(b.score, a.score) })
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
