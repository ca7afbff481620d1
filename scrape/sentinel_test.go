package scrape_test

import (
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// blanks are those of a catalog of two kinds of families.
func blanks(family string) func(float64) bool {
	switch {
	case strings.HasPrefix(family, "DCGM_"):
		return func(v float64) bool { return v == 0x1p63 || v == 2147483632 || v == 140737488355328 }
	case strings.HasSuffix(family, "_hit_rate"):
		return func(v float64) bool { return v == -1 }
	}
	return nil
}

func TestSentinels(t *testing.T) {
	s := check(t, classic, "# TYPE DCGM_FI_DEV_FB_USED gauge\nDCGM_FI_DEV_FB_USED{gpu=\"0\"} "+
		"9223372036854775794\nDCGM_FI_DEV_FB_USED{gpu=\"1\"} 2147483632\n"+
		"DCGM_FI_DEV_FB_USED{gpu=\"2\"} 140737488355328.0\nDCGM_FI_DEV_FB_USED{gpu=\"3\"} 5\n# TYPE "+
		"vllm:gpu_prefix_cache_hit_rate gauge\n"+
		"vllm:gpu_prefix_cache_hit_rate -1.0\n# TYPE other gauge\nother{a=\"1\"} 2147483632\nother{a=\"2\"} -1\n", metric.OK,
		"gauge DCGM_FI_DEV_FB_USED{gpu=\"0\"} = NaN\ngauge DCGM_FI_DEV_FB_USED{gpu=\"1\"} = NaN\ngauge "+
			"DCGM_FI_DEV_FB_USED{gpu=\"2\"} = NaN\n"+
			"gauge DCGM_FI_DEV_FB_USED{gpu=\"3\"} = 5\ngauge vllm:gpu_prefix_cache_hit_rate = NaN\ngauge other{a=\"1\"} = "+
			"2.147483632e+09\ngauge other{a=\"2\"} = -1")
	// a blank is no rounded integer
	if w := s.Warnings; len(w) != 1 || w[0].Code != "sentinel" || !strings.HasPrefix(w[0].Text, "4 values") {
		t.Errorf("got warnings %+v", w)
	}
}

// A value that becomes a sentinel between two scrapes takes the fast way.
func TestSentinelReplayed(t *testing.T) {
	d := newDecoder(t, scrape.Options{Sentinel: blanks})
	for _, c := range []struct {
		text string
		want float64
	}{{"5", 5}, {"2147483632", math.NaN()}, {"6", 6}} {
		var s metric.Snapshot
		d.Decode(&s, scrape.Body{Bytes: []byte("# TYPE DCGM_X gauge\nDCGM_X " + c.text + "\n"), ContentType: classic})
		// Nothing was learnt again for it, and it is told all the same.
		if told := len(s.Warnings) == 1 && s.Warnings[0].Code == "sentinel"; told != math.IsNaN(c.want) {
			t.Errorf("%s: warnings %v", c.text, s.Warnings)
		}
		if got := s.Delta.Float(0); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s is stored as %v, want %v", c.text, got, c.want)
		}
	}
}

func TestIntegerPrecision(t *testing.T) {
	warned := func(text string, want bool) {
		t.Helper()
		_, s := decodeOne(t, scrape.Options{}, classic, "# TYPE a counter\na "+text+"\n")
		if got := len(s.Warnings) == 1 && s.Warnings[0].Code == "integer_precision"; got != want || s.Outcome != metric.OK {
			t.Errorf("%s: %v, warned: %v, want %v", text, s.Outcome, got, want)
		}
	}
	warned("9007199254740992", false)
	warned("9007199254740993", true)
	warned("9007199254740994", false)
	warned("18446744073709551615", true)
	warned("9.007199254740993e15", false)

	d := newDecoder(t, scrape.Options{})
	for _, c := range []struct {
		text string
		want int
	}{{"9007199254740992", 0}, {"9007199254740993", 1}, {"9007199254740995", 0}} { // told once
		var s metric.Snapshot
		d.Decode(&s, scrape.Body{Bytes: []byte("# TYPE a counter\na " + c.text + "\n"), ContentType: classic})
		if len(s.Warnings) != c.want {
			t.Errorf("replayed %s: warnings %v, want %d", c.text, s.Warnings, c.want)
		}
	}
}
