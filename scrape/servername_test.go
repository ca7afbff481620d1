package scrape_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestServerNames decodes bodies of real servers, and others in OpenMetrics, and finds every name of theirs in what the
// slots are called in Prometheus.
func TestServerNames(t *testing.T) {
	bodies := map[string]string{
		openMetrics: "# TYPE a counter\na_total 1\na_created 2\n# TYPE b info\nb_info{v=\"1\"} 1\n# TYPE c counter\nc 3\n" +
			"# TYPE d_total counter\nd_total 2\n# TYPE e_info info\ne_info 1\n# TYPE s gaugehistogram\n" +
			"s_bucket{le=\"1\"} 1\ns_bucket{le=\"+Inf\"} 1\ns_gcount 1\ns_gsum 1\n# EOF\n",
		classic: "# TYPE foo gauge\nfoo 1\n# TYPE foo_total counter\nfoo_total 2\n# TYPE bar counter\nbar 1\n",
	}
	files, err := filepath.Glob("../testdata/bodies/*.prom")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bodies[file] = string(body)
	}
	for name, body := range bodies {
		kind := classic
		if name == openMetrics {
			kind = openMetrics
		}
		c, _ := decodeOne(t, scrape.Options{}, kind, body)
		have, want := map[string]bool{}, map[string]bool{}
		for slot := range c.values {
			s := &c.dict.Slots[slot]
			if s.Role == metric.RoleCreated {
				continue
			}
			l := s.PromSeries(c.dict.FamilyOf(s.Series), c.dict.Series[s.Series].Labels, nil)
			prom, _ := l.Get(metric.NameLabel)
			have[prom] = true
		}
		for line := range strings.Lines(body) {
			word := line[:strings.IndexAny(line, "{ \n")]
			if word != "" && !strings.HasPrefix(word, "#") && !strings.HasSuffix(word, "_created") {
				want[word] = true
			}
		}
		if !maps.Equal(have, want) {
			t.Errorf("%s: names\n%q, want\n%q", name, slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want)))
		}
	}
}
