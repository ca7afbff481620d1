package discover_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/scrape"
)

// hashmod is what Prometheus' own relabelling makes of an address.
func hashmod(address string, n uint64) string {
	b := labels.NewBuilder(labels.FromStrings(model.AddressLabel, address))
	relabel.ProcessBuilder(b, &relabel.Config{SourceLabels: model.LabelNames{model.AddressLabel}, Separator: ";",
		Regex: relabel.MustNewRegexp("(.*)"), TargetLabel: "shard", Modulus: n, Replacement: "$1",
		Action: relabel.HashMod, NameValidationScheme: model.UTF8Validation})
	return b.Get("shard")
}

// TestShard checks three addresses, that every target is in one shard, and that those are the ones of Prometheus.
func TestShard(t *testing.T) {
	var targets []scrape.Target
	want := map[string]int{"10.0.0.1:8000": 3, "10.0.0.2:8000": 1, "10.0.0.3:8000": 7}
	var listed []string
	for i := range 200 {
		address := fmt.Sprintf("10.0.%d.%d:8000", i/100, i%100+1)
		var target scrape.Target
		target.URL = "http://" + address + "/metrics"
		targets, listed = append(targets, target), append(listed, "'"+address+"'")
	}
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	text := "scrape_configs:\n- job_name: a\n  static_configs:\n  - targets: [" + strings.Join(listed, ", ") + "]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i := range 8 {
		shard := discover.Shard{I: i, N: 8}
		d, err := discover.Load(config, discover.Options{Shard: shard})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, f := range d.Refresh(context.Background()).Targets {
			found[f.Target.URL] = true
		}
		d.Close()
		given := shard.Of(targets)
		if len(given) == 0 || len(given) != len(found) {
			t.Errorf("shard %d: %d targets by name, %d by the configuration", i, len(given), len(found))
		}
		for _, target := range given {
			address := strings.TrimSuffix(strings.TrimPrefix(target.URL, "http://"), "/metrics")
			if seen[address]++; !found[target.URL] || hashmod(address, 8) != fmt.Sprint(i) {
				t.Errorf("%s is in shard %d; in the configuration's %v, in Prometheus' %s", address, i, found[target.URL],
					hashmod(address, 8))
			}
			if w, ok := want[address]; ok && w != i {
				t.Errorf("%s is in shard %d, want %d", address, i, w)
			}
		}
	}
	if len(seen) != len(targets) {
		t.Errorf("the shards have %d of %d targets", len(seen), len(targets))
	}
	for address, n := range seen {
		if n != 1 {
			t.Errorf("%s is in %d shards", address, n)
		}
	}
	if all := (discover.Shard{}).Of(targets); len(all) != len(targets) {
		t.Errorf("without shards: %d targets", len(all))
	}
	if by := (discover.Shard{N: 1, By: []string{"job"}}).Of(targets); len(by) != len(targets) {
		t.Errorf("one shard by job: %d targets", len(by))
	}
	for _, bad := range []string{"", "1", "8/8", "-1/8", "0/0", "a/b", "0/8/9", "0/1000001"} {
		if s, err := discover.ParseShard(bad); err == nil {
			t.Errorf("%q is shard %v", bad, s)
		}
	}
}
