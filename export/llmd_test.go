package export_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// llmdBody is what a server with two engines shows at its poll n.
func llmdBody(n int) string {
	text := `# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0"} N
vllm:prefix_cache_queries_total{engine="1"} N
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0"} L
vllm:prefix_cache_hits_total{engine="1"} L
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0"} 0.L
vllm:kv_cache_usage_perc{engine="1"} 0.0L
`
	return strings.NewReplacer("N", strings.Repeat("1", n)+"0", "L", strconv.Itoa(n+1)).Replace(text)
}

// llmdRun is five polls of a server with two engines, of GPUs, of an endpoint picker, and of a server that none of the
// fields are of.
func llmdRun(t *testing.T) *summary.Run {
	t.Helper()
	f := newFake("http://10.0.0.1:8000/metrics", "http://gpu:9400/metrics", "http://epp:9090/metrics",
		"http://other/metrics")
	f.Polled[0].Labels = metric.LabelsFromMap(map[string]string{"llm_d_ai_role": "decode"})
	f.Polled[1].Name = "gpu"
	for i := range 5 {
		at := float64(i)
		f.Scrape(0, at, llmdBody(i))
		f.Scrape(1, at, "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 300\n"+
			"DCGM_FI_DEV_POWER_USAGE{gpu=\"1\"} 200\n")
		f.Scrape(2, at, "# TYPE inference_pool_ready_pods gauge\ninference_pool_ready_pods{name=\"p\"} 3\n")
		f.Scrape(3, at, "# TYPE vllm_like gauge\nvllm_like 1\n")
	}
	r, _ := runOfFake(t, f, summary.Options{Slice: 2 * time.Second})
	return r
}

// component is what tests read of the report.
type component struct {
	Label     string                     `json:"component_label"`
	Replica   string                     `json:"replica_id"`
	Aggregate map[string]map[string]any  `json:"aggregate"`
	Series    map[string]componentSeries `json:"time_series"`
}

type componentSeries struct {
	Units  string
	Series []map[string]any
}

type llmdReport struct {
	Version string
	Results struct {
		Observability struct{ Components []component }
	}
}

func writeLLMD(t *testing.T, r *summary.Run, into *export.Report) (out llmdReport, text []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := export.LLMD(&b, r, export.Options{Into: into}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out, b.Bytes()
}

// TestLLMDComponents holds the names, units and points of a report: engines of a target are added up, counters begin at
// 0, a target without a field is no component.
func TestLLMDComponents(t *testing.T) {
	got, _ := writeLLMD(t, llmdRun(t), nil)
	list := got.Results.Observability.Components
	var names []string
	for _, c := range list {
		names = append(names, c.Label+" "+c.Replica)
	}
	want := []string{"epp epp:9090", "decode-engine 10.0.0.1:8000", "inference-engine gpu"}
	if slices.Sort(names); got.Version != "0.2.1" || !slices.Equal(names, slices.Sorted(slices.Values(want))) {
		t.Fatalf("version %s, components %q, want %q", got.Version, names, want)
	}
	at := map[string]component{}
	for _, c := range list {
		at[c.Label] = c
	}
	queries := at["decode-engine"].Series["prefix_cache_queries"]
	if queries.Units != "count" || len(queries.Series) != 3 || queries.Series[0]["value"] != 0.0 ||
		queries.Series[2]["value"] != 2*11110.0 {
		t.Errorf("queries %+v", queries)
	}
	rate := at["decode-engine"].Aggregate["cache_hit_rate"]
	if rate["units"] != "percent" || rate["mean"] != 100*8.0/22220 {
		t.Errorf("hit rate %v", rate)
	}
	if kv := at["decode-engine"].Aggregate["kv_cache_usage"]; kv["max"] != 0.5 || kv["units"] != "fraction" {
		t.Errorf("KV usage %v", kv)
	}
	power := at["inference-engine"].Aggregate["power_consumption"]
	if power["mean"] != 500.0 || power["units"] != "Watts" {
		t.Errorf("power %v", power)
	}
	pods := at["epp"].Series["pool_ready_pods"]
	if len(pods.Series) != 2 || pods.Series[0]["mean"] != 3.0 || pods.Series[0]["value"] != nil {
		t.Errorf("ready pods %+v", pods)
	}
}

const reportBefore = `# of the harness
version: '0.2'
run: {uid: abc, time: {start: 2026-01-01T00:00:00Z}}
results:
  request_performance: &rp {aggregate: {requests: {total: 10, share: 0.10, big: 12345678901234567890}}}
  observability:
    note: *rp
    components:
    - {component_label: decode-engine, replica_id: "10.0.0.1:8000", graph_path: a.png,
       aggregate: {kv_cache_usage: {units: fraction, mean: 0.5}}}
    - {component_label: decode-engine, replica_id: "10.0.0.2:8000"}
`

// TestLLMDInto puts components into a report that has some: nothing of it is lost, and a second time nothing changes.
func TestLLMDInto(t *testing.T) {
	r := llmdRun(t)
	read := func(text []byte) *export.Report {
		t.Helper()
		rep, err := export.ReadReport(text)
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	first := read([]byte(reportBefore))
	got, once := writeLLMD(t, r, first)
	if want := []string{"10.0.0.1:8000.aggregate.kv_cache_usage"}; !slices.Equal(first.Kept, want) {
		t.Errorf("kept %q, want %q", first.Kept, want)
	}
	list := got.Results.Observability.Components
	if got.Version != "0.2.1" || len(list) != 4 || list[0].Aggregate["kv_cache_usage"]["mean"] != 0.5 ||
		list[0].Aggregate["cache_hit_rate"] == nil || list[1].Replica != "10.0.0.2:8000" || list[1].Series != nil {
		t.Errorf("%s", once)
	}
	for _, part := range []string{`"share": 0.10`, `"big": 12345678901234567890`, `"start": "2026-01-01T00:00:00Z"`,
		`"note": {`, `"graph_path": "a.png"`} {
		if !bytes.Contains(once, []byte(part)) {
			t.Errorf("%s is lost:\n%s", part, once)
		}
	}
	if _, twice := writeLLMD(t, r, read(once)); !bytes.Equal(once, twice) {
		t.Errorf("a second time it is another file:\n%s", twice)
	}
	own := read([]byte(reportBefore))
	own.Replace = true
	got, _ = writeLLMD(t, r, own)
	if kv := got.Results.Observability.Components[0].Aggregate["kv_cache_usage"]; len(own.Kept) != 0 || kv["max"] != 0.5 {
		t.Errorf("kept %q, %v", own.Kept, kv)
	}
}

// bomb is a small report that aliases make large.
func bomb() string {
	text := "version: 0.2\nrun: {uid: a}\na0: &a0 [xxxxxxxxxxxxxxxx]\n"
	for i := range 12 {
		name, of := string(rune('b'+i)), string(rune('a'+i))
		text += name + "0: &" + name + "0 [" + strings.Repeat("*"+of+"0, ", 9) + "*" + of + "0]\n"
	}
	return text
}

func TestReadReportRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "empty"},
		{"- 1", "no benchmark report"},
		{"{", "EOF"},
		{`{"version":"0.2.1","run":{"uid":"a"}} x`, "behind"},
		{`{"version":"0.1","run":{"uid":"a"}}`, `version: "0.1"`},
		{"version: 0.3\nrun: {uid: a}", "version: 0.3"},
		{`{"version":"0.2.1"}`, "no benchmark report"},
		{"version: 0.2\nrun: {uid: .inf}", "JSON has no .inf"},
		{"version: 0.2\nrun: {<<: {uid: a}}", "a key is no text"},
		{"version: 0.2\nrun: &r {uid: *r}", "nested too deep"},
		{bomb(), "larger than"},
		{`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}", "too deep"},
	} {
		if _, err := export.ReadReport([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: error %v, want one with %q", c.text, err, c.want)
		}
	}
}

// FuzzReadReport reads anything: what is taken is written as JSON that is taken again.
func FuzzReadReport(f *testing.F) {
	f.Add([]byte(reportBefore))
	f.Add([]byte(`{"version":"0.2.1","run":{"uid":"\ud83d\ude00"},"results":{"observability":{"components":null}}}`))
	f.Add([]byte("version: 0.2\nrun: {uid: 0x1f, t: !!binary aGk=, y: yes, n: ~}\nresults: 3"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rep, err := export.ReadReport(text)
		if err != nil {
			return
		}
		var once, twice bytes.Buffer
		if err := export.LLMD(&once, &summary.Run{}, export.Options{Into: rep}); err != nil {
			t.Fatal(err)
		}
		again, err := export.ReadReport(once.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, once.Bytes())
		}
		if err := export.LLMD(&twice, &summary.Run{}, export.Options{Into: again}); err != nil ||
			!bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Errorf("%v\n%s\n%s", err, once.Bytes(), twice.Bytes())
		}
	})
}
