package continuity_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
)

// vector is a case of continuity.json; its own "about" explains the fields.
type vector struct {
	ID      string
	T       []float64
	Outcome []string
	Series  map[string]row
	Second  struct {
		Offset float64
		Series map[string]row
	}
	NoType map[string][]int `json:"no_type"`
	Files  []string
	Expect map[string]struct {
		Status    []string
		Value     *float64
		Sum       *float64
		Buckets   []float64
		Exact     string
		Truth     *float64
		TruthLow  *float64 `json:"truth_low"`
		Low, High *float64
	}
	Restarts   *int
	Processes  any
	BornSeries *int `json:"born_series"`
}

type row struct {
	Type   string
	Values []*json.Number
}

// Every case of the vectors holds through the library: status, value, sum, buckets, interval, restarts, processes.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("../testdata/vectors/continuity.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []vector }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Cases) != 73 {
		t.Fatalf("%d cases, want 73", len(all.Cases))
	}
	for _, c := range all.Cases {
		t.Run(c.ID, func(t *testing.T) {
			x := newTarget(t)
			if c.Files != nil {
				x.files(c.T, c.Files)
			} else {
				x.play(&c, c.Series, 0)
			}
			c.check(t, x)
			if c.Second.Series != nil {
				y := newTarget(t)
				y.play(&c, c.Second.Series, c.Second.Offset)
				if s := y.target(); s.Status != continuity.OK {
					t.Errorf("second target: %+v", s)
				}
			}
		})
	}
}

// play feeds the bodies of a case.
func (x *target) play(c *vector, rows map[string]row, offset float64) {
	names := slices.SortedFunc(maps.Keys(rows), func(a, b string) int { // creation times behind their owners
		ac, bc := strings.Contains(a, "_created"), strings.Contains(b, "_created")
		if ac != bc {
			return map[bool]int{true: 1, false: -1}[ac]
		}
		return strings.Compare(a, b)
	})
	for i, at := range c.T {
		outcome := map[string]metric.Outcome{"ok": metric.OK, "partial": metric.Partial,
			"failed": metric.Timeout}[c.Outcome[i]]
		for _, name := range names {
			kind := rows[name].Type
			if slices.Contains(c.NoType[name], i) {
				continue // it is a series of another family, of type unknown
			}
			if v := rows[name].Values[i]; v != nil && outcome.Stored() {
				x.setText(name, kind, v.String())
			}
		}
		x.poll(at+offset, outcome)
	}
}

// files feeds bodies of real servers.
func (x *target) files(times []float64, files []string) {
	for i, file := range files {
		f, err := os.Open(strings.Replace(file, "captures/real", "../testdata/bodies", 1))
		if err != nil {
			x.t.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(f)
		f.Close()
		if err != nil {
			x.t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(families))
		for _, created := range []bool{false, true} {
			for _, name := range names {
				if strings.HasSuffix(name, "_created") == created {
					x.family(families[name])
				}
			}
		}
		x.poll(times[i], metric.OK)
	}
}

func (x *target) family(f *dto.MetricFamily) {
	for _, m := range f.Metric {
		pairs := make([]metric.Label, 0, len(m.Label))
		for _, l := range m.Label {
			pairs = append(pairs, metric.Label{Name: l.GetName(), Value: l.GetValue()})
		}
		with := func(more ...metric.Label) string { return metric.NewLabels(append(more, pairs...)...).String() }
		name := f.GetName()
		switch {
		case m.Counter != nil:
			x.set(name+with(), "counter", m.Counter.GetValue())
		case m.Gauge != nil:
			x.set(name+with(), "gauge", m.Gauge.GetValue())
		case m.Histogram != nil:
			for _, b := range m.Histogram.Bucket {
				le := metric.Label{Name: "le", Value: fmt.Sprint(b.GetUpperBound())}
				x.set(name+"_bucket"+with(le), "histogram", float64(b.GetCumulativeCount()))
			}
			x.set(name+"_sum"+with(), "histogram", m.Histogram.GetSampleSum())
			x.set(name+"_count"+with(), "histogram", float64(m.Histogram.GetSampleCount()))
		case m.Summary != nil:
			x.set(name+"_sum"+with(), "summary", m.Summary.GetSampleSum())
			x.set(name+"_count"+with(), "summary", float64(m.Summary.GetSampleCount()))
		}
	}
}

// total sums the series of that name over the values of the label pod.
func (x *target) total(key string) (i continuity.Increase, restarts int, found []int) {
	for name, series := range x.series {
		labels := metric.Labels{}
		if at := strings.IndexByte(name, '{'); at >= 0 {
			labels = parseLabels(name[at:])
			name = name[:at]
		}
		want := metric.Labels{}
		base := key
		if at := strings.IndexByte(key, '{'); at >= 0 {
			base, want = key[:at], parseLabels(key[at:])
		}
		if name != base || labels.Without("pod") != want {
			continue
		}
		one, v := x.increase(nameOf(x, series))
		restarts = max(restarts, v.Restarts)
		if found == nil {
			i = one
		} else {
			i = i.Add(one)
		}
		found = append(found, series)
	}
	return i, restarts, found
}

func nameOf(x *target, series int) string {
	for name, s := range x.series {
		if s == series {
			return name
		}
	}
	return ""
}

func (c *vector) check(t *testing.T, x *target) {
	for key, want := range c.Expect {
		key = strings.TrimPrefix(key, "fleet ")
		if strings.HasPrefix(key, "sum(") {
			continue // the weight of gauges is for those who sum them
		}
		i, _, series := x.total(key)
		if series == nil {
			t.Errorf("%s: no series", key)
			continue
		}
		if !slices.Contains(want.Status, i.Status.String()) {
			t.Errorf("%s: %+v, want status %v", key, i, want.Status)
		}
		if want.Value != nil && !close(i.Value, *want.Value, 1e-9) && !strings.HasPrefix(key, "fleet") {
			t.Errorf("%s: value %v, want %v", key, i.Value, *want.Value)
		}
		if want.Exact != "" && fmt.Sprint(i.Exact) != want.Exact {
			t.Errorf("%s: exactly %d, want %s", key, i.Exact, want.Exact)
		}
		if want.Truth != nil && i.Status != continuity.Refused &&
			!(i.Low <= *want.Truth*1.0000001+1e-9 && *want.Truth <= i.High*1.0000001+1e-9) {
			t.Errorf("%s: truth %v is not in %v .. %v", key, *want.Truth, i.Low, i.High)
		}
		if want.TruthLow != nil && i.Low > *want.TruthLow {
			t.Errorf("%s: lower bound %v, truth may be %v", key, i.Low, *want.TruthLow)
		}
		if want.Low != nil && i.Status == continuity.Ambiguous && (i.Low > *want.Low || i.High < *want.High) {
			t.Errorf("%s: %v .. %v, want %v .. %v", key, i.Low, i.High, *want.Low, *want.High)
		}
		c.checkParts(t, x, key, series, want.Sum, want.Buckets)
	}
	s := x.target()
	if c.Restarts != nil && s.Restarts != *c.Restarts {
		t.Errorf("%d restarts, want %d", s.Restarts, *c.Restarts)
	}
	if n, ok := c.Processes.(float64); ok && s.Processes != int(n) || c.Processes == "several" && s.Processes != 0 {
		t.Errorf("%d processes, want %v", s.Processes, c.Processes)
	}
	if c.BornSeries != nil {
		born := 0
		for key := range x.series {
			if i, v := x.increase(key); v.Births > 0 && i.Status == continuity.Born {
				born++
			}
		}
		if born != *c.BornSeries {
			t.Errorf("%d series born, want %d", born, *c.BornSeries)
		}
	}
}

func (c *vector) checkParts(t *testing.T, x *target, key string, series []int, sum *float64, buckets []float64) {
	got := map[float64]float64{}
	total := 0.0
	for n := range x.slots {
		s := &x.slots[n]
		if !slices.Contains(series, s.series) {
			continue
		}
		switch s.role {
		case metric.RoleSum:
			total += s.gain()
		case metric.RoleBucket:
			got[x.tracker.Schema().Slots[n].Bound] += s.gain()
		}
	}
	if sum != nil && !close(total, *sum, 1e-6) {
		t.Errorf("%s: sum %v, want %v", key, total, *sum)
	}
	for i, bound := range slices.Sorted(maps.Keys(got)) {
		if buckets != nil && !close(got[bound], buckets[i], 1e-9) {
			t.Errorf("%s: bucket %v has %v, want %v", key, bound, got[bound], buckets[i])
		}
	}
}

func close(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(b)) }

// The rows of real servers in section 14 of the design document: how many units are how certain, and some of them.
// Run with -v it prints them; cmd/scrapestat's TestRudeServers prints the others.
func TestRealServers(t *testing.T) {
	vllm := []string{"vllm-0.32.0-before-run1.prom", "vllm-0.32.0-after-run1.prom", "vllm-0.32.0-spec-mfu-idle.prom",
		"vllm-0.32.0-spec-mfu-under-load.prom"}
	const engine = `{engine="0",model_name="tiny"}`
	for _, c := range []struct {
		name, want string
		files      []string
		shown      []string
	}{
		{"vLLM, before and after a run", "ok, 0 restarts, 0 events; 59 ok; 8 born; 9600 ok; 200 born", vllm[:2], []string{
			"vllm:generation_tokens_total" + engine,
			`http_requests_total{handler="/v1/completions",method="POST",status="2xx"}`}},
		{"vLLM, the same and another process", "corrected, 1 restarts, 1 events; 77 corrected; 10427 corrected; " +
			"202 corrected; 206 corrected; 30.12 corrected", vllm, []string{"vllm:generation_tokens_total" + engine,
			`vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"}`,
			"vllm:time_to_first_token_seconds" + engine, "process_cpu_seconds_total"}},
		{"vLLM-Omni", "ok, 0 restarts, 0 events; 186 ok", []string{"vllm-omni-0.30.0-t0.prom",
			"vllm-omni-0.30.0-t1.prom"}, nil},
	} {
		x := newTarget(t)
		var files []string
		for _, f := range c.files {
			files = append(files, "captures/real/"+f)
		}
		x.files([]float64{1795334500, 1795334700, 1795335350, 1795335400}, files)
		units, statuses := map[int]bool{}, map[continuity.Status]int{}
		for id, s := range x.slots {
			if x.adjusted(id) {
				units[s.series] = true
			}
		}
		for key, series := range x.series {
			if i, _ := x.increase(key); units[series] {
				statuses[i.Status]++
			}
		}
		s := x.target()
		got := fmt.Sprintf("%s, %d restarts, %d events", s.Status, s.Restarts, len(s.Events))
		for _, status := range slices.Sorted(maps.Keys(statuses)) {
			got += fmt.Sprintf("; %d %s", statuses[status], status)
		}
		for _, key := range c.shown {
			i, _ := x.increase(key)
			got += fmt.Sprintf("; %v %s", i.Value, i.Status)
		}
		if t.Logf("%s: %s", c.name, got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
