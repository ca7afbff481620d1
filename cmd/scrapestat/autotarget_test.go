package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAutoTargets: for each load generator what its command line says, in both forms of flags, also behind programs
// that start it; a shell, an unknown program and none are refused.
func TestAutoTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, empty := filepath.Join(dir, "c.yml"), filepath.Join(dir, "e.yml")
	writeText(t, config, "server:\n  type: vllm\n  base_url: http://h:9000/v1\n")
	writeText(t, empty, "load: {}\n")
	for command, want := range map[string]string{
		"vllm bench serve": "http://127.0.0.1:8000/metrics",
		"vllm bench serve --host=h --port 9 --port 10":                 "http://h:10/metrics",
		"vllm bench serve --host ::1":                                  "http://[::1]:8000/metrics",
		"env A=1 uv run /opt/bin/vllm bench serve --base-url http://h": "http://h/metrics",
		"srun -n 1 vllm bench serve --base-url=https://h:1/v1?x=y":     "https://h:1/metrics",
		"aiperf profile": "http://localhost:8000/metrics",
		"aiperf profile --url a:1 b:2 -u http://c:3/v1 -m x": "http://a:1/metrics http://b:2/metrics http://c:3/metrics",
		"aiperf profile --server-metrics h:9/dcgm i:8 --no-x": "http://localhost:8000/metrics http://h:9/dcgm " +
			"http://i:8/metrics",
		"guidellm run": "http://localhost:8000/metrics",
		"guidellm run --backend kind=openai_http,target=http://h:1/v1":      "http://h:1/metrics",
		`guidellm run --backend={"kind":"openai_http","target":"http://h"}`: "http://h/metrics",
		"guidellm benchmark --target http://h:2":                            "http://h:2/metrics",
		"inference-perf --config_file " + config:                            "http://h:9000/metrics",
		"python -m sglang.bench_serving":                                    "http://127.0.0.1:30000/metrics",
		"python3 -m sglang.bench_serving --backend vllm-chat":               "http://127.0.0.1:8000/metrics",
		"python -m sglang.bench_serving --backend=lmdeploy --host h":        "http://h:23333/metrics",
		"python -m sglang.bench_serving --backend trt --port 1":             "http://127.0.0.1:1/metrics",
		"inference-perf":                         "no: --config_file is not given",
		"inference-perf --config_file " + empty:  "no: has no server.base_url",
		"inference-perf --config_file none.yaml": "no: none.yaml",
		"bash -c vllm bench serve":               "no: a shell hides it",
		"wrk http://h:1":                         "no: looked for vllm bench serve, aiperf profile",
		"vllm serve":                             "no: looked for",
		"vllm bench serve --base-url http://":    "no: no address",
		"":                                       "no: looked for",
	} {
		got, told, err := expandAuto([]string{"gpu=h:9400", "auto"}, strings.Fields(command))
		if why, refused := strings.CutPrefix(want, "no: "); refused {
			if err == nil || codeOf(err) != exitUsage || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v, want %s", command, err, why)
			}
			continue
		}
		if all := append([]string{"gpu=h:9400"}, strings.Fields(want)...); err != nil || !slices.Equal(got, all) ||
			!strings.HasSuffix(told, ": "+want) {
			t.Errorf("%s: %q, %q, %v, want %s", command, got, told, err, want)
		}
	}
	if got, told, err := expandAuto([]string{"h:1"}, nil); len(got) != 1 || told != "" || err != nil {
		t.Errorf("%q, %q, %v", got, told, err)
	}
}

// TestNewestFile: the pattern decides, with ** for any directories, then the time.
func TestNewestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	since := time.Now().Add(-time.Minute)
	if err := os.MkdirAll(filepath.Join(dir, "x/y"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.json", "x/b.json", "x/y/b.json"} {
		writeText(t, filepath.Join(dir, name), "{}")
	}
	for pattern, want := range map[string]string{"*.json": "a.json", "**/b.json": "x/y/b.json x/b.json",
		"x/*.json":   "x/b.json",
		"x/y/b.json": "x/y/b.json", "*.csv": "", "none/*.json": ""} {
		got := newestFile(filepath.Join(dir, pattern), since)
		rel := strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(got, dir)), "/")
		if rel != want && !slices.Contains(strings.Fields(want), rel) {
			t.Errorf("%s: %q, want %q", pattern, rel, want)
		}
	}
	if got := newestFile(filepath.Join(dir, "*.json"), time.Now().Add(time.Hour)); got != "" {
		t.Errorf("%s was written before", got)
	}
}
