package summary

import (
	"fmt"
	"math"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
)

// ShownIncrease is the text for a number that an increase gives, with how sure it is: "9,600" as it is, ">= 9,600" of
// a lower bound, "9,600 (9,000 .. 9,900)" of an ambiguous one, "refused" of one that is not known, "9,600 born" or
// "9,600 restarted x2" of one that counts from zero. format writes a bound; nil leaves bounds out.
func ShownIncrease(text string, i *continuity.Increase, format func(float64) string) string {
	switch i.Status {
	case continuity.Born:
		return text + " born"
	case continuity.Corrected:
		return fmt.Sprintf("%s restarted x%d", text, i.Restarts)
	case continuity.Refused:
		return "refused"
	case continuity.LowerBound:
		return ">= " + text
	case continuity.Ambiguous:
		if format == nil || math.IsInf(i.High, 0) || math.IsInf(i.Low, 0) {
			return "~ " + text
		}
		return text + " (" + format(i.Low) + " .. " + format(i.High) + ")"
	}
	return text
}

// StatusWord is the word of an increase's status in rows: of derived quantities, stats and the CSV.
func StatusWord(i *continuity.Increase) string {
	switch i.Status {
	case continuity.Corrected:
		return catalog.ResetCorrected.String()
	case continuity.Born:
		return catalog.BornInWindow.String()
	}
	return i.Status.String()
}

// BoundsOfStatus are the bounds of a value that is not certain, NaN of any other.
func BoundsOfStatus(s catalog.Status, low, high float64) (float64, float64) {
	if s.Certain() || !s.Defined() {
		return math.NaN(), math.NaN()
	}
	return low, high
}

// Uncertain says what of the run is not certain, "" when all is: the reason for which --strict ends with 4.
func (r *Run) Uncertain() string {
	count, first := 0, ""
	for i := range r.Metrics {
		m := &r.Metrics[i]
		for j := range m.Series {
			if s := &m.Series[j]; !s.Increase.Status.Certain() {
				if count++; first == "" {
					first = fmt.Sprintf("%s of %s is %s", m.Name, r.Endpoints[s.Endpoint].Shown(), s.Increase.Status)
				}
			}
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d series are not certain (%s)", count, first)
}

// continuityWarning tells once per target what its numbers suffer from; nil when they do not.
func continuityWarning(c *continuity.Summary) *metric.Warning {
	var w metric.Warning
	switch c.Status {
	case continuity.Refused:
		w = metric.Warning{Code: "several_processes", Text: "polls were answered by several processes, which nothing tells " +
			"apart: its counters are refused; name each replica as a target, or give the workers of one server a common " +
			"store (PROMETHEUS_MULTIPROC_DIR)"}
	case continuity.LowerBound:
		w = metric.Warnf("lower_bounds", "a part of what its counters gained was not seen (%d processes answered): they are "+
			"lower bounds", c.Processes)
	case continuity.Ambiguous:
		w = metric.Warning{Code: "ambiguous", Text: "what its counters did can be read in two ways that differ: they are " +
			"given with both ends"}
	default:
		return nil
	}
	return &w
}
