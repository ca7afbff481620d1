package interop_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/normalize"
)

// TestHardening has a finding by the number that package faults lists: labels whose names are those of columns, or of
// each other but for case, which each reader sees and tells series apart by.
func TestHardening(t *testing.T) {
	t.Run("K23", func(t *testing.T) {
		interpreter, dir := python(t), t.TempDir()
		body := func(at time.Duration) string {
			text := "# TYPE g gauge\n"
			for i, differs := range []string{"", "value", "count", "sum", "timestamp_ns", "endpoint_url", "Model", "model"} {
				text += "g{"
				for _, name := range []string{"value", "count", "sum", "timestamp_ns", "endpoint_url", "Model", "model"} {
					of := "of " + name
					if name == differs {
						of = "another"
					}
					text += fmt.Sprintf("%s=%q,", name, of)
				}
				text += fmt.Sprintf("} %d\n", i)
			}
			return text
		}
		sc := scene{name: "labels", length: 5 * time.Second,
			hosts: []host{{url: "http://labels:1/metrics", every: time.Second, body: body}}}
		sc.record(t, dir)
		sc.export(t, dir, "adjust", normalize.ResetAdjust)
		run(t, interpreter, []check{{"labels", "label_columns", filepath.Join(dir, "adjust"), ""}})
	})
}
