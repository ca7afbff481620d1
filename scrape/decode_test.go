package scrape_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// consumer keeps what a recorder would know after each snapshot.
type consumer struct {
	dict    metric.Schema
	values  map[uint32]uint64 // by slot
	present bool
}

func (c *consumer) apply(t testing.TB, s *metric.Snapshot) {
	t.Helper()
	if err := faults.NoPanic(s); err != nil {
		t.Fatal(err)
	}
	if err := c.dict.Grow(&s.DictDelta); err != nil {
		t.Fatal(err)
	}
	if !s.Outcome.Stored() {
		if len(s.Delta.Slots) > 0 || !s.DictDelta.Empty() {
			t.Fatalf("outcome %v delivers samples", s.Outcome)
		}
		return
	}
	if !c.present && !s.Delta.Full {
		t.Fatal("first frame is not full")
	}
	if s.Delta.Full {
		c.values = map[uint32]uint64{}
	}
	c.present = true
	if !slices.IsSorted(s.Delta.Slots) || len(s.Delta.Slots) != len(s.Delta.Bits) {
		t.Fatalf("frame has %d bits and slots %v", len(s.Delta.Bits), s.Delta.Slots)
	}
	for i, slot := range s.Delta.Slots {
		old, ok := c.values[slot]
		if !s.Delta.Full && (!ok || old == s.Delta.Bits[i]) {
			t.Fatalf("slot %d is listed as changed: present %v, %x to %x", slot, ok, old, s.Delta.Bits[i])
		}
		c.values[slot] = s.Delta.Bits[i]
	}
	n := 0
	for slot := range c.values {
		if c.dict.Slots[slot].Role != metric.RoleSampleTime { // beside the lines
			n++
		}
	}
	if n+s.Dropped() != s.Lines {
		t.Fatalf("stored %d + dropped %d != lines %d; drops %v", n, s.Dropped(), s.Lines, s.Drops)
	}
}

// samples returns what the last poll held, one text per slot, sorted.
func (c *consumer) samples() []string {
	var out []string
	for slot, bits := range c.values {
		s := c.dict.Slots[slot]
		f := c.dict.FamilyOf(s.Series)
		text := fmt.Sprintf("%s %v%v", f.Type, f.Name, c.dict.Series[s.Series].Labels)
		switch s.Role {
		case metric.RoleValue:
		case metric.RoleBucket, metric.RoleQuantile:
			text += fmt.Sprintf(" %v[%s]", s.Role, s.Text)
		default:
			text += " " + s.Role.String()
		}
		out = append(out, fmt.Sprintf("%s = %v", text, math.Float64frombits(bits)))
	}
	slices.Sort(out)
	return out
}

func newDecoder(t testing.TB, o scrape.Options) *scrape.Decoder {
	t.Helper()
	d, err := scrape.NewDecoder(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const (
	classic     = "text/plain; version=0.0.4; charset=utf-8"
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

func decodeOne(t testing.TB, o scrape.Options, contentType, body string) (*consumer, *metric.Snapshot) {
	t.Helper()
	var s metric.Snapshot
	newDecoder(t, o).Decode(&s, scrape.Body{Bytes: []byte(body), ContentType: contentType})
	c := new(consumer)
	c.apply(t, &s)
	return c, &s
}

// check decodes one body; want is the outcome, and the samples one per line.
func check(t *testing.T, contentType, body string, outcome metric.Outcome, want string) *metric.Snapshot {
	t.Helper()
	c, s := decodeOne(t, scrape.Options{Sentinel: blanks}, contentType, body)
	if s.Outcome != outcome {
		t.Errorf("body %q: outcome %v (%s), want %v", body, s.Outcome, s.Err, outcome)
	}
	wanted := strings.Split(strings.TrimSpace(want), "\n")
	if want == "" {
		wanted = nil
	}
	slices.Sort(wanted)
	if got := c.samples(); !slices.Equal(got, wanted) {
		t.Errorf("body %q:\ngot:\n%s\nwant:\n%s", body, strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
	return s
}

func TestFamilies(t *testing.T) {
	text := func(body, want string) {
		t.Helper()
		check(t, classic, body, metric.OK, want)
	}
	text("# TYPE x_total counter\nx_total{a=\"1\"} 5\n", `counter x{a="1"} = 5`)
	text("# TYPE x counter\nx 5\n", `counter x = 5`)
	text("# TYPE x counter\nx_total 5\n", `unknown x_total = 5`)
	text("# TYPE g_total gauge\ng_total 1\n", `gauge g_total = 1`)
	text("# TYPE q untyped\nq 1\n", `unknown q = 1`)
	text("a{x=\"1\"} 1\na{x=\"2\"} 2\n", "unknown a{x=\"1\"} = 1\nunknown a{x=\"2\"} = 2")
	text("# TYPE a gauge\na{x=\"1\"} 1\n# TYPE b gauge\nb 2\n# TYPE a gauge\na{x=\"2\"} 3\n",
		"gauge a{x=\"1\"} = 1\ngauge a{x=\"2\"} = 3\ngauge b = 2")
	text("# TYPE foo gauge\nfoo 1\n# TYPE foo_total counter\nfoo_total 2\n", "gauge foo = 1\ncounter foo_total = 2")
	text("foo 1\n# TYPE foo_total counter\nfoo_total 2\n", "unknown foo = 1\ncounter foo_total = 2")
	text("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n",
		"histogram h bucket[1] = 1\nhistogram h bucket[+Inf] = 2\nhistogram h sum = 3\nhistogram h count = 2")
	text("# TYPE h histogram\nh_bucket 2\nh 7\nh_foo 8\n",
		"histogram h bucket[+Inf] = 2\nunknown h = 7\nunknown h_foo = 8")
	text("# TYPE h_total histogram\nh_total_bucket{le=\"0.50\",z=\"y\"} 1\n", `histogram h_total{z="y"} bucket[0.50] = 1`)
	text("# TYPE h histogram\n# TYPE h_count counter\nh_count 2\n", "counter h_count = 2")
	text("# TYPE s summary\ns{quantile=\"0.5\"} NaN\ns_sum 3\ns_count 2\n",
		"summary s quantile[0.5] = NaN\nsummary s sum = 3\nsummary s count = 2")
	text("# TYPE s summary\ns 1\n", "unknown s = 1")
	text("# TYPE x_uptime_seconds gauge\nx_uptime_seconds 9\n", "gauge x_uptime_seconds = 9")
}

func TestCreated(t *testing.T) {
	text := func(contentType, body, want string) {
		t.Helper()
		check(t, contentType, body, metric.OK, want)
	}
	text(classic, "# TYPE x_total counter\nx_total{a=\"1\"} 5\n# TYPE x_created gauge\nx_created{a=\"1\"} 1.7e9\n",
		"counter x{a=\"1\"} = 5\ncounter x{a=\"1\"} created = 1.7e+09")
	text(classic, "# TYPE h histogram\nh_count 5\n# TYPE h_created gauge\nh_created 1.7e9\n",
		"histogram h count = 5\nhistogram h created = 1.7e+09")
	text(classic, "# TYPE file_created gauge\nfile_created 1.7e9\n", "gauge file_created = 1.7e+09")
	text(openMetrics, "# TYPE x counter\nx_total 5\nx_created 1.7e9\n# EOF\n",
		"counter x = 5\ncounter x created = 1.7e+09")
}

func TestOpenMetrics(t *testing.T) {
	text := func(body string, outcome metric.Outcome, want string) *metric.Snapshot {
		t.Helper()
		return check(t, openMetrics, body, outcome, want)
	}
	text("# TYPE i info\ni_info{v=\"1\"} 1\n# TYPE st stateset\nst{st=\"a\"} 1\nst{st=\"b\"} 0\n# EOF\n", metric.OK,
		"info i{v=\"1\"} = 1\nstateset st{st=\"a\"} = 1\nstateset st{st=\"b\"} = 0")
	text("# TYPE g gaugehistogram\ng_bucket{le=\"1\"} 1\ng_gsum 3\ng_gcount 2\n# EOF\n", metric.OK,
		"gaugehistogram g bucket[1] = 1\ngaugehistogram g sum = 3\ngaugehistogram g count = 2")
	text("# TYPE h histogram\nh_bucket{le=\"1.0\"} 1 # {trace=\"x\"} 0.5 1.7\n# EOF", metric.OK,
		"histogram h bucket[1.0] = 1")
	text("# TYPE x counter\nx_total 5\n", metric.Partial, "counter x = 5")
	text("# TYPE x counter\nx_total 5\n# EOF\ny 1\n", metric.Partial, "counter x = 5")
	text("# TYPE x counter\nx_total  5\n\ny 1\n# EOF\n", metric.OK, "counter x = 5\nunknown y = 1")
	s := text("# TYPE x_seconds gauge\n# UNIT x_seconds seconds\n# HELP x_seconds say \\\"hi\\\"\nx_seconds 5\n# "+
		"EOF\n", metric.OK, "gauge x_seconds = 5")
	if f := s.DictDelta.Families[0]; f.Unit != "seconds" || f.Help != `say "hi"` {
		t.Errorf("got unit %q and help %q", f.Unit, f.Help)
	}
}

// TestRealBodies decodes what real servers sent: no line is lost and nothing warned of.
func TestRealBodies(t *testing.T) {
	lines := map[string]int{
		"bentoml-load":                    22,
		"dynamo-frontend-load":            799,
		"dynamo-worker-load":              179,
		"llamacpp-idle":                   15,
		"llamacpp-load":                   15,
		"sglang-driven":                   1041,
		"torchserve-idle":                 37,
		"torchserve-load":                 38,
		"triton-idle":                     312,
		"triton-load":                     312,
		"vllm-0.32.0-2apiservers-end":     362,
		"vllm-0.32.0-2apiservers-idle":    344,
		"vllm-0.32.0-after-run1":          455,
		"vllm-0.32.0-before-run1":         425,
		"vllm-0.32.0-idle-fresh":          410,
		"vllm-0.32.0-spec-mfu-idle":       497,
		"vllm-0.32.0-spec-mfu-under-load": 514,
		"vllm-omni-0.30.0-allstages":      2516,
		"vllm-omni-0.30.0-t0":             1771,
		"vllm-omni-0.30.0-t1":             1771,
	}
	files, err := filepath.Glob(filepath.Join(testkit.Path(t, "bodies"), "*.prom"))
	if err != nil || len(files) != len(lines) {
		t.Fatalf("%d files, want %d: %v", len(files), len(lines), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".prom")
		c, s := decodeOne(t, scrape.Options{}, classic, string(testkit.Data(t, "bodies/"+name+".prom")))
		if s.Outcome != metric.OK || s.Lines != lines[name] || s.Dropped() != 0 || s.Err != "" {
			t.Errorf("%s: %v, %d lines, want %d; drops %v; %s", name, s.Outcome, s.Lines, lines[name], s.Drops, s.Err)
		}
		if n := len(c.samples()); n != s.Lines {
			t.Errorf("%s: %d samples of %d lines", name, n, s.Lines)
		}
		if len(s.Warnings) > 0 {
			t.Errorf("%s: warnings %+v", name, s.Warnings)
		}
	}
}
