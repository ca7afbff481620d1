package report

import (
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// A rate over a time that is not known within 10 % is shown with both ends.
func TestRateRange(t *testing.T) {
	for _, c := range []struct {
		low, high int64
		want      string
	}{{0, 0, "16.2 requests/s"}, {-1_800_000_000, 1_800_000_000, "16.2 (11.9 .. 25.3) requests/s"}} {
		w := &window.Window{Parts: []window.Stretch{{StartNS: 10e9, EndNS: 15e9}},
			Start: window.Edge{AtNS: 10e9, LowNS: 10e9 + c.low, HighNS: 10e9 + c.high},
			End:   window.Edge{AtNS: 15e9, LowNS: 15e9, HighNS: 15e9}}
		b := &pageBuilder{run: &summary.Run{Window: summary.Window{Resolved: w}}}
		d := &summary.Derived{Derived: catalog.Derived{Value: 16.2, Shown: 16.2, Denominator: 5}}
		d.Unit = "requests/s"
		if got := b.derivedCell(d).Text; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
