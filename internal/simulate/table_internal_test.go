package simulate

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
)

// TestFamilyTable reads every section of the table from inside, as no server
// has all of its families: each line has a type, words that mean something
// and, if it says how its help text is made, where the name goes; each list of bounds
// ascends.
func TestFamilyTable(t *testing.T) {
	words := []string{"bounds", "quantiles", "now", "late", "rank", "if", "plain", "since", "old", "at"}
	dynamic := []string{"tokens", "tgiSeconds", "batch", "input", "output"}
	sections := regexp.MustCompile(`(?m)^\[(\S+) `).FindAllStringSubmatch(familyTable, -1)
	if len(sections) < 12 {
		t.Fatalf("%d sections", len(sections))
	}
	for _, s := range sections {
		_, lines := readSection(s[1])
		for _, d := range lines {
			if d.typ == metric.Unknown || d.help != "" && strings.Count(d.help, "*") != 1 ||
				strings.Contains(d.help, "bounds=") {
				t.Errorf("[%s] %s: type %v, help %q", s[1], d.name, d.typ, d.help)
			}
			for w := range d.words {
				if !slices.Contains(words, w) {
					t.Errorf("[%s] %s: nobody reads the word %s", s[1], d.name, w)
				}
			}
			bounds := readNumbers(d.words["bounds"])
			ascending := slices.IsSorted(bounds) && len(slices.Compact(slices.Clone(bounds))) == len(bounds)
			if has := len(bounds) > 0 || slices.Contains(dynamic, d.words["bounds"]); has != (d.typ == metric.Histogram) ||
				!ascending {
				t.Errorf("[%s] %s: bounds %v", s[1], d.name, bounds)
			}
		}
	}
}

// TestPanelRefuses: a series that the table does not have is an error of the
// profile, not a number that is dropped.
func TestPanelRefuses(t *testing.T) {
	o := Options{}.withDefaults()
	p := newWorld(&o, o.Now(), 0, 0).table("triton", variant{labels: map[string][]string{"": {"model",
		"version"}}}).panel("", "m", "1")
	for _, name := range []string{"inference_counts", "cache_num_hits_per_model"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken for a family of the panel", name)
				}
			}()
			p.record(name, 1)
		}()
	}
	if p.of("inference_request_duration_us") == nil || (*panel)(nil).of("inference_counts") != nil {
		t.Error("a series that is there is nil, or one of a nil panel is not")
	}
}
