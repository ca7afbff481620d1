package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// differ adds a difference when the sides do not agree in what value says of each run. A side whose runs disagree has
// all their values.
func (c *comparer) differ(kind, name string, value func(run int) string) {
	values := make([]string, len(c.sides))
	sets := make([][]string, len(c.sides))
	for i, s := range c.stocks {
		if v := value(i); v != "" && !slices.Contains(sets[s.side], v) {
			sets[s.side] = append(sets[s.side], v)
		}
	}
	differ := false
	for side, set := range sets {
		slices.Sort(set)
		values[side] = strings.Join(set, ", ")
		differ = differ || values[side] != values[0] || len(set) > 1
	}
	if differ {
		c.result.Differences = append(c.result.Differences, Difference{kind, name, values})
	}
}

// differences lists what differs besides what was measured: first what the servers say of themselves, then how it was
// measured.
func (c *comparer) differences() {
	c.infoDifferences()
	c.settings()
	c.keyed("tag", func(i int) map[string]string { return c.stocks[i].in.Run.Tags })
	c.differ("window", "phase", func(i int) string { return c.stocks[i].in.Run.Window.Phase })
	c.differ("window", "rule", func(i int) string { return ruleOf(c.stocks[i].in.Run) })
	c.warnWindows()
	run := func(i int) *summary.Run { return c.stocks[i].in.Run }
	info := func(i int) RunInfo { return c.describe(c.stocks[i].in) }
	c.differ("format", "input", func(i int) string { return info(i).Format })
	c.differ("version", "recorded by", func(i int) string { return run(i).Version })
	c.unlike("window", "length", 0.1, "s", func(i int) float64 { return info(i).Seconds })
	c.unlike("window", "warm-up", 0.1, "s", func(i int) float64 {
		if w := run(i).WarmupWindow; w != nil {
			return float64(w.EndNS-w.StartNS) / 1e9
		}
		return 0
	})
	c.unlike("interval", "between polls", 0.1, "s", func(i int) float64 { return info(i).Interval })
	c.differ("targets", "number", func(i int) string { return strconv.Itoa(run(i).Servers()) })
	c.differ("targets", "restarts in the window", func(i int) string {
		n := 0
		for k := range run(i).Endpoints {
			n += run(i).Endpoints[k].Continuity.Restarts
		}
		return strconv.Itoa(n)
	})
	c.differ("analysis", "estimator", func(i int) string { return run(i).Options.Estimator })
	c.differ("analysis", "counter resets", func(i int) string {
		if run(i).Options.Resets == normalize.ResetClamp {
			return "clamp"
		}
		return "adjust"
	})
	c.differ("analysis", "percentiles", func(i int) string {
		var list []string
		for _, q := range c.o.Quantiles { // of those that rows are made of
			if slices.Contains(run(i).Options.Quantiles, q) {
				list = append(list, histest.PercentileName(q))
			}
		}
		return cmp.Or(strings.Join(list, " "), "none")
	})
}

// unlike adds a difference of a number that is not about the same in all runs: by more than the share tolerance.
func (c *comparer) unlike(kind, name string, tolerance float64, unit string, value func(run int) float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range c.stocks {
		v := value(i)
		low, high = math.Min(low, v), math.Max(high, v)
	}
	if !(high-low > tolerance*high) {
		return
	}
	c.differ(kind, name, func(i int) string {
		if v := value(i); v > 0 {
			return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
		}
		return "none"
	})
}

// keyed adds the differences of maps.
func (c *comparer) keyed(kind string, value func(run int) map[string]string) {
	keys := map[string]bool{}
	for i := range c.stocks {
		for k := range value(i) {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		c.differ(kind, k, func(i int) string { return value(i)[k] })
	}
}

// settings adds the differences of Input.Settings, kind by kind in the order in which they first occur.
func (c *comparer) settings() {
	var kinds []string
	for _, s := range c.stocks {
		for _, set := range s.in.Settings {
			if !slices.Contains(kinds, set.Kind) {
				kinds = append(kinds, set.Kind)
			}
		}
	}
	for _, kind := range kinds {
		if !c.allHave(kind) {
			continue // an export has no manifest, which is no difference of the runs
		}
		c.keyed(kind, func(i int) map[string]string {
			out := map[string]string{}
			for _, set := range c.stocks[i].in.Settings {
				if set.Kind == kind {
					out[set.Name] = set.Value
				}
			}
			return out
		})
	}
}

// allHave reports whether every run has settings of a kind.
func (c *comparer) allHave(kind string) bool {
	return !slices.ContainsFunc(c.stocks, func(s *stock) bool {
		return !slices.ContainsFunc(s.in.Settings, func(set Setting) bool { return set.Kind == kind })
	})
}

// infoDifferences compares the labels of *_info families: each label is a setting of the server.
func (c *comparer) infoDifferences() {
	all := make([]map[string]string, len(c.stocks))
	for i, s := range c.stocks {
		all[i] = s.infoSettings(c)
	}
	c.keyed("info", func(i int) map[string]string { return all[i] })
}

// infoSettings are the labels of the *_info families of a run by family and label, with all values that they have.
func (s *stock) infoSettings(c *comparer) map[string]string {
	sets := map[string][]string{}
	for _, m := range s.infos {
		name := m.Name
		if f, ok := c.o.Catalog.Family(name); ok {
			name = f.Name
		}
		for i := range m.Series {
			for label, value := range m.Series[i].Labels.Without(c.o.Catalog.VolatileLabels()...).All() {
				key := fmt.Sprintf("%s{%s}", strings.TrimSuffix(name, "_info"), label)
				if !slices.Contains(sets[key], value) {
					sets[key] = append(sets[key], value)
				}
			}
		}
	}
	out := map[string]string{}
	for key, set := range sets {
		slices.Sort(set)
		out[key] = strings.Join(set, ", ")
	}
	return out
}

// ruleOf is why the window of a run is what it is; "" of an export, which does not tell.
func ruleOf(r *summary.Run) string {
	if r.Window.Resolved == nil {
		return ""
	}
	return string(r.Window.Resolved.Rule)
}

// warnWindows warns of windows that are not of one kind, or of quite other lengths.
func (c *comparer) warnWindows() {
	rules, low, high := map[string]bool{}, math.Inf(1), 0.0
	for i := range c.stocks {
		if rule := ruleOf(c.stocks[i].in.Run); rule != "" {
			rules[rule] = true
		}
		seconds := c.describe(c.stocks[i].in).Seconds
		low, high = min(low, seconds), max(high, seconds)
	}
	if len(rules) > 1 || high > 3*low {
		what := cmp.Or(strings.Join(slices.Sorted(maps.Keys(rules)), " and "), "of exports")
		c.result.Warnings = append(c.result.Warnings, metric.Warnf("different_windows",
			"the windows differ: %s, %.4g to %.4g s", what, low, high))
	}
}
