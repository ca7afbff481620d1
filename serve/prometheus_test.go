package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/internal/simulate/record"
	"github.com/scrapestat/scrapestat/serve"
)

// besideQueries are 38 expressions as dashboards of engines have them, and the common functions. They are asked
// at times, and have ranges, such that no sample is at an edge: Prometheus 2 takes the left one in, 3 does not.
var besideQueries = []string{
	`up`, `up == 0`, `vllm:num_requests_running`, `sum(vllm:num_requests_waiting)`, `vllm:kv_cache_usage_perc * 100`,
	`rate(vllm:prompt_tokens_total[30s])`, `sum by (instance) (rate(vllm:generation_tokens_total[30s]))`,
	`irate(vllm:generation_tokens_total[30s])`, `increase(vllm:request_success_total[1m])`,
	`sum by (finished_reason) (increase(vllm:request_success_total[1m]))`,
	`histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[30s])))`,
	`histogram_quantile(0.5, sum by (le, instance) (rate(vllm:time_to_first_token_seconds_bucket[30s])))`,
	`histogram_quantile(0.9, rate(vllm:inter_token_latency_seconds_bucket[30s]))`,
	`rate(vllm:e2e_request_latency_seconds_sum[30s]) / rate(vllm:e2e_request_latency_seconds_count[30s])`,
	`sum by (le) (increase(vllm:request_prompt_tokens_bucket[1m]))`,
	`rate(vllm:request_queue_time_seconds_sum[30s])`, `rate(vllm:prefix_cache_hits_total[1m])`,
	`sum(rate(vllm:prefix_cache_hits_total[1m])) / sum(rate(vllm:prefix_cache_queries_total[1m]))`,
	`sglang:num_running_reqs`, `rate(sglang:prompt_tokens_total[30s])`, `sglang:token_usage`,
	`histogram_quantile(0.95, sum by (le) (rate(sglang:e2e_request_latency_seconds_bucket[30s])))`,
	`nv_inference_count`, `rate(nv_inference_request_success[30s])`, `nv_inference_pending_request_count`,
	`delta(nv_inference_request_duration_us[1m]) / delta(nv_inference_request_success[1m])`,
	`avg_over_time(vllm:num_requests_running[30s])`, `max_over_time(vllm:kv_cache_usage_perc[30s])`,
	`min_over_time(up[30s])`, `count_over_time(vllm:num_requests_running[30s])`,
	`quantile_over_time(0.9, vllm:num_requests_running[30s])`, `changes(process_start_time_seconds[1m])`,
	`resets(vllm:generation_tokens_total[1m])`, `deriv(process_resident_memory_bytes[1m])`,
	`topk(2, rate(vllm:generation_tokens_total[30s]))`, `absent(vllm:num_requests_running{target="b"})`,
	`label_replace(up, "host", "$1", "instance", "(.*):.*")`,
	`max_over_time(sum(rate(vllm:generation_tokens_total[30500ms]))[30s:1s])`,
}

// prometheusOf finds the server where .ci/run puts it.
func prometheusOf(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	path := filepath.Join(cache, "scrapestat", "servers", "usr", "bin", "prometheus")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skip("Debian's Prometheus is not installed: .ci/run setup")
	}
	return path
}

// TestBesidePrometheus gives the samples of a run, staleness markers among them, to a real Prometheus and has 38
// expressions answered by both: series and times are equal, values to 1e-9 (row 4). A second one has none of its own
// and asks ours by remote read (row 11).
func TestBesidePrometheus(t *testing.T) {
	program := prometheusOf(t)
	dir := recorded(t, "A", startA, 10*time.Second, 2*time.Minute,
		record.Server{Name: "a", Profile: "vllm", Options: simulate.Options{Rate: 8, Seed: 1}},
		record.Server{Name: "b", Profile: "vllm", Options: simulate.Options{Rate: 4, Seed: 2}, DownFrom: 50 * time.Second,
			DownTo: 60 * time.Second},
		record.Server{Name: "f", Profile: "sglang", Options: simulate.Options{Rate: 6, Seed: 6}},
		record.Server{Name: "h", Profile: "triton", Options: simulate.Options{Rate: 9, Seed: 8}})
	ours := httptest.NewServer(open(t, serve.Options{Lookback: 5 * time.Minute}, dir).Handler())
	t.Cleanup(ours.Close)
	stored := startPrometheus(t, program, "")
	copySamples(t, ours.URL, stored)
	remote := startPrometheus(t, program, "remote_read:\n  - url: "+ours.URL+"/api/v1/read\n    read_recent: true\n")
	points, worst := 0, 0.0
	for _, expr := range besideQueries {
		want := matrixOf(t, stored, expr)
		for who, got := range map[string]map[string]float64{"ours": matrixOf(t, ours.URL, expr),
			"remote read": matrixOf(t, remote, expr)} {
			if len(got) != len(want) {
				t.Errorf("%s: %s: %d points, Prometheus has %d", expr, who, len(got), len(want))
			}
			for key, w := range want {
				g, ok := got[key]
				diff := math.Abs(g-w) / math.Max(math.Abs(w), 1e-300)
				if same := g == w || math.IsNaN(g) && math.IsNaN(w); !ok || !same && !(diff <= 1e-9) {
					t.Errorf("%s: %s at %s: %v, %v; Prometheus has %v", expr, who, key, g, ok, w)
					break
				} else if !same {
					worst = math.Max(worst, diff)
				}
			}
		}
		points += len(want)
	}
	t.Logf("%d expressions, %d points, largest relative difference %g", len(besideQueries), points, worst)
	if points < 2000 {
		t.Errorf("only %d points were compared", points)
	}
}

// startPrometheus starts a server with an empty store and returns its address.
func startPrometheus(t *testing.T, program, config string) string {
	t.Helper()
	dir := t.TempDir()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	if err := os.WriteFile(filepath.Join(dir, "p.yml"), []byte("global: {}\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "p.yml"), "--storage.tsdb.path="+dir,
		"--web.listen-address="+address, "--web.enable-remote-write-receiver", "--storage.tsdb.retention.time=100y",
		"--web.console.templates="+dir, "--web.console.libraries="+dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 600 {
		if resp, err := http.Get("http://" + address + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatalf("Prometheus is not ready: %s", said.String())
	return ""
}

// post sends a message as remote read and write have it.
func post(t *testing.T, to string, message interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	body, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(to, "application/x-protobuf", bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s: %d %.300s, %v", to, resp.StatusCode, answer, err)
	}
	return answer
}

// copySamples gives all samples of one server to another, by remote read and remote write.
func copySamples(t *testing.T, from, to string) {
	t.Helper()
	packed := post(t, from+"/api/v1/read", &prompb.ReadRequest{Queries: []*prompb.Query{{
		StartTimestampMs: startA * 1000, EndTimestampMs: (startA + 3600) * 1000,
		Matchers: []*prompb.LabelMatcher{{Type: prompb.LabelMatcher_RE, Name: "__name__", Value: ".+"}}}}})
	body, err := snappy.Decode(nil, packed)
	if err != nil {
		t.Fatal(err)
	}
	var all prompb.ReadResponse
	if err := all.Unmarshal(body); err != nil {
		t.Fatal(err)
	}
	req := &prompb.WriteRequest{}
	for _, ts := range all.Results[0].Timeseries {
		sort.Slice(ts.Labels, func(i, j int) bool { return ts.Labels[i].Name < ts.Labels[j].Name })
		req.Timeseries = append(req.Timeseries, *ts)
	}
	post(t, to+"/api/v1/write", req)
}

// matrixOf asks a server for a range and returns the values by series and time.
func matrixOf(t *testing.T, server, expr string) map[string]float64 {
	t.Helper()
	resp, err := http.PostForm(server+"/api/v1/query_range", url.Values{"query": {expr},
		"start": {fmt.Sprint(startA) + ".5"}, "end": {fmt.Sprint(startA+130) + ".5"}, "step": {"5"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil || doc.Status != "success" {
		t.Fatalf("%s: %s: %v %s", server, expr, err, doc.Error)
	}
	out := map[string]float64{}
	for _, x := range doc.Data.Result {
		var parts []string
		for n, v := range x.Metric {
			parts = append(parts, n+"="+strconv.Quote(v))
		}
		sort.Strings(parts)
		for _, p := range x.Values {
			v, err := strconv.ParseFloat(p[1].(string), 64)
			if err != nil {
				t.Fatal(err)
			}
			out[fmt.Sprintf("{%s} %v", strings.Join(parts, ","), p[0])] = v
		}
	}
	return out
}
