package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	dto "github.com/prometheus/client_model/go"
)

// TestRealServers measures two programs that nobody here wrote, node_exporter
// and a Prometheus server, and compares each counter of the export with the
// difference of two raw bodies that a recording proxy kept.
func TestRealServers(t *testing.T) {
	node := findProgram(t, "prometheus-node-exporter", "node_exporter")
	prom := findProgram(t, "prometheus")
	nodeAddr, promAddr := freeAddr(t), freeAddr(t)
	startProgram(t, nodeAddr, node, "--web.listen-address="+nodeAddr)
	config := t.TempDir() + "/prometheus.yml"
	yaml := "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n- job_name: node\n  " +
		"static_configs:\n  - targets: [" + nodeAddr + "]\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	startProgram(t, promAddr, prom, "--config.file="+config, "--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+promAddr)

	dir := t.TempDir()
	proxies := []*bodyProxy{newBodyProxy(t, nodeAddr), newBodyProxy(t, promAddr)}
	args := []string{"collect", proxies[0].url, proxies[1].url, "-o", dir, "--duration", "3s", "--settle", "0s",
		"--formats", "json,csv,jsonl,parquet", "--interval", "250ms", "--quiet", "--scrape-budget", "0"}
	var out, talk bytes.Buffer
	if code := run(context.Background(), args, stdio{nil, &out, &talk}); code != exitDone {
		t.Fatalf("collect: exit code %d\n%s", code, talk.String())
	}
	for _, name := range []string{"json", "csv", "jsonl", "parquet"} {
		if fi, err := os.Stat(dir + "/server_metrics_export." + name); err != nil || fi.Size() == 0 {
			t.Errorf("export %s: %v", name, err)
		}
	}
	r := readExport(t, dir)
	for _, p := range proxies {
		first, last := p.firstAndLast()
		checkCounters(t, r, p.url, parseBody(t, first), parseBody(t, last))
	}
}

// checkCounters compares every counter of one endpoint with last minus first.
// The baseline scrape is the reference of the window and the final scrape its
// end, so these are the first and the last body that were served.
func checkCounters(t *testing.T, r exportedRun, url string, first, last map[string]*dto.MetricFamily) {
	t.Helper()
	checked := 0
	for name, family := range last {
		if family.GetType() != dto.MetricType_COUNTER || first[name] == nil {
			continue
		}
		for _, m := range family.Metric {
			before := findMetric(first[name], m)
			if before == nil {
				continue
			}
			want := m.GetCounter().GetValue() - before.GetCounter().GetValue()
			got, ok := findTotal(r, strings.TrimSuffix(name, "_total"), url, m)
			if !ok { // beside a gauge of the short name a counter keeps its full one
				got, ok = findTotal(r, name, url, m)
			}
			if !ok {
				t.Errorf("%s%v of %s is not in the export", name, m.Label, url)
				continue
			}
			if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
				t.Errorf("%s%v of %s: total %v, the raw bodies differ by %v", name, m.Label, url, got, want)
			}
			checked++
		}
	}
	if checked < 20 {
		t.Errorf("%s: only %d counters were compared", url, checked)
	}
	t.Logf("%s: %d counters equal the difference of the raw bodies", url, checked)
}

func findMetric(f *dto.MetricFamily, like *dto.Metric) *dto.Metric {
	for _, m := range f.Metric {
		if labelMap(m)["\x00all"] == labelMap(like)["\x00all"] {
			return m
		}
	}
	return nil
}

// labelMap returns the labels, and under a name no label has all of them as one text.
func labelMap(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	var all strings.Builder
	for _, l := range m.Label {
		labels[l.GetName()] = l.GetValue()
		all.WriteString(l.GetName() + "\xff" + l.GetValue() + "\xff")
	}
	labels["\x00all"] = all.String()
	return labels
}

func findTotal(r exportedRun, name, url string, m *dto.Metric) (float64, bool) {
	want := labelMap(m)
	delete(want, "\x00all")
	for _, s := range r.Metrics[name].Series {
		if s.Endpoint != url+"/metrics" || len(s.Labels) != len(want) {
			continue
		}
		equal := true
		for k, v := range want {
			equal = equal && s.Labels[k] == v
		}
		if total, ok := s.Stats["total"]; equal && ok {
			return total, true
		}
	}
	return 0, false
}

func parseBody(t *testing.T, body []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// bodyProxy passes requests on and keeps the bodies of the answers.
type bodyProxy struct {
	url    string
	mu     sync.Mutex
	bodies [][]byte
}

func newBodyProxy(t *testing.T, to string) *bodyProxy {
	t.Helper()
	p := &bodyProxy{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to})
	proxy.ModifyResponse = func(resp *http.Response) error {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.bodies = append(p.bodies, body)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return nil
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

func (p *bodyProxy) firstAndLast() (first, last []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bodies[0], p.bodies[len(p.bodies)-1]
}

// findProgram skips the test where the program is not installed, except in CI,
// which installs it.
func findProgram(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed; .ci/run installs it", names[0])
	}
	t.Skipf("%s is not installed", names[0])
	return ""
}

func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// startProgram runs a server and waits until it answers.
func startProgram(t *testing.T, addr, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		resp, err := http.Get("http://" + addr + "/metrics")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("%s does not answer: %v\n%s", path, err, log.String())
		}
	}
}
