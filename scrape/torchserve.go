package scrape

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// stableLabels takes the label uuid off the three counters of TorchServe's legacy mode. It is another one after each
// start of the server: without it a restart is a reset of one series, and not the end of one and the birth of another.
func stableLabels(name string, pairs []metric.Label) []metric.Label {
	if !strings.HasPrefix(name, "ts_") || !slices.ContainsFunc(pairs,
		func(p metric.Label) bool { return p.Name == "model_version" }) {
		return pairs
	}
	return slices.DeleteFunc(pairs, func(p metric.Label) bool { return p.Name == "uuid" })
}
