package report_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// What takes endpoints of two kinds is of none of them alone.
func TestTogetherOnly(t *testing.T) {
	r := run(nil)
	r.Endpoints = append(r.Endpoints, r.Endpoints[0])
	r.Combined = []summary.FleetResult{{Endpoints: []int{0, 1},
		Derived: []summary.Derived{{Endpoint: -1, Derived: catalog.Derived{Pack: catalog.EnergyPack,
			Name: "j_per_output_token", Unit: "joule", Value: 8, Shown: 8, Headline: true, Category: catalog.Efficiency,
			Families: []string{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}}}}}}
	got := text(t, r, report.Options{})
	for _, want := range []string{"\nEnergy\n", "j_per_output_token"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
