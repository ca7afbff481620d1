package report

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
)

// What a million tokens cost is the cost of an hour by the tokens of one; of tokens that are not certain there is none.
func TestCost(t *testing.T) {
	rate := func(v float64, status catalog.Status) (d summary.Derived) {
		d.Canonical, d.Headline, d.Value, d.Status, d.Unit = "output_tok_s", true, v, status, "tokens/s"
		return d
	}
	for _, c := range []struct {
		name    string
		perHour float64
		fleet   []summary.Derived
		want    string // "" for no line
		million any
	}{
		{"one model", 3.6, []summary.Derived{rate(1000, catalog.OK)}, "cost 1 EUR per million output tokens: 3.6 EUR " +
			"an hour / (1,000 tokens/s × 3600) × 10^6", 1.0},
		{"two models", 3.6, []summary.Derived{rate(300, catalog.OK), rate(100, catalog.OK)}, "cost 2.5 EUR per", 2.5},
		{"no cost", 0, []summary.Derived{rate(1000, catalog.OK)}, "", nil},
		{"no tokens shown", 3.6, nil, "", nil},
		{"no tokens made", 3.6, []summary.Derived{rate(0, catalog.OK)}, "cost - per million output tokens", nil},
		{"at least", 3.6, []summary.Derived{rate(1000, catalog.OK), rate(5, catalog.LowerBound)},
			"cost - per million output tokens: output_tok_s is 1,005 tokens/s lower bound", nil},
	} {
		p := &pageBuilder{run: &summary.Run{}, o: Options{PerHour: c.perHour, Currency: "EUR"}}
		got := strings.Join(strings.Fields(strings.Join(p.cost(&engine{title: "vLLM", fleet: c.fleet}), " ")), " ")
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if len(p.tables) > 0 && p.tables[0].Rows[0][4].Value != c.million {
			t.Errorf("%s: %v for programs, want %v", c.name, p.tables[0].Rows[0][4].Value, c.million)
		}
	}
}
