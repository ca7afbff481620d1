package torchserve_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/source/torchserve"
)

// FuzzReadSpecs reads what a metrics.yaml may hold: an error, or metrics that
// have a name and a unit.
func FuzzReadSpecs(f *testing.F) {
	for _, s := range []string{
		"dimensions: [&m ModelName]\nts_metrics:\n  counter: [{name: A, unit: Count, dimensions: [*m]}]\nmodel_metrics:\n  " +
			"gauge: [{name: B, unit: ms, dimensions: []}]\n",
		"ts_metrics: {histogram: [{name: '', unit: ms}]}", "ts_metrics: [1]", "model_metrics: {counter: [null]}",
		"a: &a [*a]", "\xff", "? [", strings.Repeat("{a: ", 1000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzbound.Check(t)()
		specs, err := torchserve.ReadSpecs(strings.NewReader(text))
		if (err == nil) != (len(specs) > 0) {
			t.Errorf("%d metrics and error %v", len(specs), err)
		}
		for _, s := range specs {
			if s.Name == "" || s.Unit == "" {
				t.Errorf("metric %+v", s)
			}
		}
	})
}
