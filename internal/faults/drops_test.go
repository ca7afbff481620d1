package faults_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestDropsExplained records drops that rule 2 is to refuse, behind good ones: without
// a reason, without their first line, of no line.
func TestDropsExplained(t *testing.T) {
	check := func(want string, drops ...metric.Drop) {
		t.Helper()
		dir := t.TempDir()
		w, err := rundb.Create(dir, metaAt(time.Unix(1_800_000_000, 0)), rundb.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.AddTarget(metric.Target{URL: "http://a/metrics", Source: "prometheus"}); err != nil {
			t.Fatal(err)
		}
		s := metric.Snapshot{SentNS: 1_800_000_000e9, Outcome: metric.Partial, Drops: drops, Delta: metric.Delta{Full: true}}
		s.Lines = s.Dropped()
		if err := w.Record(&s); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = faults.Accounts(t.Context(), dir)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || err != nil &&
			!(strings.Contains(got, "rule 2: ") && strings.Contains(got, want)) {
			t.Errorf("%+v: got %s, want %q", drops, got, want)
		}
	}
	good, filtered := metric.Drop{Reason: "parse", Lines: 2,
		First: "line 3: x"}, metric.Drop{Reason: metric.DropFiltered, Lines: 4}
	check("", good, filtered)
	check(`reason "", the first "line 9"`, good, metric.Drop{Lines: 1, First: "line 9"})
	check(`reason "parse_2", the first ""`, filtered, good, metric.Drop{Reason: "parse_2", Lines: 1})
	check("0 lines dropped", good, metric.Drop{Reason: "name_limit", First: "line 1"})
}
