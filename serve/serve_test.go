package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/internal/simulate/record"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/serve"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// startA is when run A begins.
const startA = 1767225600

// TestRunA holds what is served of one recording of ten minutes against the numbers of the design.
func TestRunA(t *testing.T) {
	dir := runA(t)
	t.Run("numbers", func(t *testing.T) { numbers(t, dir) })
	t.Run("totals", func(t *testing.T) { totals(t, dir) })
	t.Run("live", func(t *testing.T) { live(t, dir) })
	t.Run("http", func(t *testing.T) { requests(t, dir) })
}

// recorded records servers into a directory of that name and returns it.
func recorded(t testing.TB, name string, start int64, warmup, duration time.Duration, servers ...record.Server) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := record.New(record.Options{Dir: dir, Servers: servers, Start: time.Unix(start, 0), Warmup: warmup,
		Duration: duration, Interval: time.Second, Command: []string{"scrapestat", "simulate"}})
	if err == nil {
		_, err = r.Record(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// runA is run A of the design: four servers of three kinds, one of which restarts.
func runA(t testing.TB) string {
	return recorded(t, "A", startA, 30*time.Second, 10*time.Minute,
		record.Server{Name: "a", Profile: "vllm", Options: simulate.Options{Rate: 8, Seed: 1}},
		record.Server{Name: "b", Profile: "vllm", Options: simulate.Options{Rate: 4, Seed: 2}, DownFrom: 100 * time.Second,
			DownTo: 110 * time.Second},
		record.Server{Name: "f", Profile: "sglang", Options: simulate.Options{Rate: 6, Seed: 6}},
		record.Server{Name: "h", Profile: "triton", Options: simulate.Options{Rate: 9, Seed: 8}})
}

// windowOf finds a part of a run as the command does.
func windowOf(ctx context.Context, r *rundb.Run, what string) (fromNS, toNS int64, err error) {
	var o summary.Options
	if what != "" {
		if o.Window, err = window.Parse(what); err != nil {
			return 0, 0, err
		}
	}
	w, err := summary.WindowOf(ctx, r, o)
	return w.Start.AtNS, w.End.AtNS, err
}

func open(t testing.TB, o serve.Options, dirs ...string) *serve.Server {
	t.Helper()
	o.Window = windowOf
	for _, dir := range dirs {
		name, path, ok := strings.Cut(dir, "=")
		if !ok {
			name, path = filepath.Base(dir), dir
		}
		o.Runs = append(o.Runs, serve.Run{Name: name, Dir: path})
	}
	s, err := serve.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ask returns the values of an instant query by one of their labels.
func ask(t testing.TB, s *serve.Server, label, expr string, at ...float64) map[string]float64 {
	t.Helper()
	q := serve.Request{Expr: expr}
	if len(at) > 0 {
		ms := int64(at[0] * 1000)
		q.AtMS = &ms
	}
	r, err := s.Query(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%s: %v in %s", expr, err, b.Bytes())
	}
	out := map[string]float64{}
	for _, x := range doc.Result {
		v, err := strconv.ParseFloat(x.Value[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		out[x.Metric[label]] = v
	}
	return out
}

// numbers holds the numbers of the design: rows 1, 2, 5, 6b and 10.
func numbers(t *testing.T, dir string) {
	s := open(t, serve.Options{}, dir)
	const end = startA + 630
	for _, x := range []struct {
		label, expr string
		at          []float64
		want        map[string]float64
	}{
		{"target", "increase(vllm:generation_tokens_total[600001ms] anchored)", []float64{end},
			map[string]float64{"a": 557444, "b": 265037}},
		{"target", "increase(vllm:generation_tokens_total[$window] anchored)", nil,
			map[string]float64{"a": 557444, "b": 265037}},
		{"target", "increase(vllm:generation_tokens_total[600001ms])", []float64{end},
			map[string]float64{"a": 556932.92822, "b": 264486.44081}},
		{"target", "increase(vllm:prompt_tokens_total[$window] anchored)", nil,
			map[string]float64{"a": 2535042, "b": 1208747}},
		{"", "histogram_quantile(0.5, sum by(le)(increase(http_request_duration_highr_seconds_bucket[600001ms] anchored)))",
			[]float64{end}, map[string]float64{"": 0.9103711790393013}},
		{"", "count(sglang:prompt_tokens_total)", nil, map[string]float64{"": 1}},
		{"", "min(count by (model) (nv_inference_count))", nil, map[string]float64{"": 1}},
		{"", `sum(count_over_time((up{target="b"} == 0)[30s:1s]))`, []float64{startA + 120}, map[string]float64{"": 10}},
		{"target", `vllm:num_requests_running{target="b"}`, []float64{startA + 105.5}, map[string]float64{}},
		{"", `count(vllm:num_requests_running{target="b"})`, []float64{startA + 111.5}, map[string]float64{"": 1}},
		{"phase", `scrapestat_phase`, []float64{startA + 10}, map[string]float64{"warmup": 1}},
		{"run", `scrapestat_run_info`, nil, map[string]float64{"A": 1}},
		{"", `count(scrape_samples_scraped > 20)`, nil, map[string]float64{"": 4}},
	} {
		got := ask(t, s, x.label, x.expr, x.at...)
		if !maps.EqualFunc(got, x.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }) {
			t.Errorf("%s: %v, want %v", x.expr, got, x.want)
		}
	}
}

// totals is row 3: every counter and count over $window is the total of the statistics, but for those that
// restart_unseen names.
func totals(t *testing.T, dir string) {
	s := open(t, serve.Options{}, dir)
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	run, err := summary.Build(t.Context(), []summary.Recording{r}, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range run.Metrics {
		m := &run.Metrics[i]
		if m.Type != metric.Counter && m.Type != metric.Histogram {
			continue
		}
		name := m.Name + "_count"
		if m.Type == metric.Counter {
			if name = m.Name; !strings.HasPrefix(name, "nv_") {
				name += "_total"
			}
		}
		res, err := s.Query(t.Context(), serve.Request{Expr: "increase(" + name + "[$window] anchored)"})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.HasPrefix(w, "restart_unseen") }) {
			continue
		}
		got := map[string]string{}
		for row := range res.Rows {
			got[row.Labels] = row.Value
		}
		for k := range m.Series {
			x, want := &m.Series[k].Series, 0.0
			if x.AIPerf != nil {
				x = x.AIPerf // PromQL knows nothing of births either
			}
			switch {
			case x.Counter != nil:
				want = x.Counter.Total
			case x.Histogram != nil:
				want = float64(x.Histogram.Count)
			}
			target := run.Endpoints[m.Series[k].Endpoint].Name
			l := m.Series[k].Labels.Join(metric.LabelsFromMap(map[string]string{"target": target, "run": "A",
				"job": "scrapestat", "instance": target + ":8000"}))
			key := strings.ReplaceAll(l.String(), ",", ", ")
			if v, err := strconv.ParseFloat(got[key], 64); err != nil || math.Abs(v-want) > 1e-9*want {
				t.Errorf("%s%s: %q, want %v", name, key, got[key], want)
			}
			compared++
		}
	}
	if compared < 60 {
		t.Errorf("only %d totals were compared", compared)
	}
}

// TestAlign is row 9: the same servers recorded an hour apart lie over each other.
func TestAlign(t *testing.T) {
	var dirs []string
	for i, name := range []string{"x", "y"} {
		dirs = append(dirs, name+"="+recorded(t, name, startA+int64(i)*3600, 5*time.Second, 20*time.Second,
			record.Server{Name: "a", Profile: "vllm", Options: simulate.Options{Rate: 8, Seed: 1}}))
	}
	s := open(t, serve.Options{}, dirs...)
	q := serve.Request{Expr: `vllm:generation_tokens_total{run="x"} - ignoring(run) vllm:generation_tokens_total{run="y"}`,
		Range: true, StartMS: (startA + 6) * 1000, EndMS: (startA + 24) * 1000, Step: time.Second}
	r, err := s.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for row := range r.Rows {
		if n++; row.Value != "0" {
			t.Errorf("at %d: %s", row.TimeMS, row.Value)
		}
	}
	if n != 19 {
		t.Errorf("%d points, want 19", n)
	}
	now := time.Unix(2e9, 5e8)
	o := serve.Options{Align: serve.AlignNow, Now: func() time.Time { return now }}
	if to := open(t, o, dirs...).Runs()[0].To; !to.Equal(time.Unix(2e9, 0)) {
		t.Errorf("aligned at now: the end is %v", to)
	}
	var wrong *serve.UsageError
	for _, o := range []serve.Options{{Align: "mark:none", Runs: []serve.Run{{Name: "x", Dir: dirs[0][2:]}}},
		{Runs: []serve.Run{{Name: "x", Dir: dirs[0][2:]}, {Name: "x", Dir: dirs[1][2:]}}}} {
		if _, err := serve.New(t.Context(), o); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// live is row 13: what is recorded while it is served shows in the next query, and memory is bounded.
func live(t *testing.T, whole string) {
	dir := t.TempDir()
	w := copyPolls(t, whole, dir)
	w(50)
	now := time.Unix(startA, 0)
	s := open(t, serve.Options{Now: func() time.Time { return now }}, dir)
	last := 0.0
	for range 3 {
		got := ask(t, s, "target", `vllm:generation_tokens_total`)["a"]
		up := ask(t, s, "", `sum(count_over_time(up[1h]))`)[""]
		if got <= last || up < 50 {
			t.Errorf("%v after %v, %v polls", got, last, up)
		}
		last = got
		w(200)
		now = now.Add(2 * time.Second)
	}
	for w(1000) {
		now = now.Add(2 * time.Second)
	}
	all := open(t, serve.Options{}, dir)
	now = now.Add(2 * time.Second)
	for _, expr := range []string{`sum by (__name__, target) ({__name__=~"vllm:.+"})`, `sum(count_over_time(up[1h]))`,
		`count({__name__=~".+"})`} {
		at := float64(startA + 600)
		if a, b := ask(t, s, "__name__", expr, at), ask(t, all, "__name__", expr, at); !maps.Equal(a, b) {
			t.Errorf("%s: %v live, %v of the closed run", expr, a, b)
		}
	}
	small := open(t, serve.Options{MaxMemory: 20_000}, whole)
	if _, err := small.Query(t.Context(), serve.Request{Expr: `count({__name__=~"vllm:.+"})`}); err == nil ||
		!strings.Contains(err.Error(), "--max-memory") {
		t.Errorf("beyond the memory: %v", err)
	}
	ask(t, small, "target", `vllm:num_requests_running`) // what fits is answered after it
}

// copyPolls records the polls of a run again into dir, so many with each call. It reports whether there are more.
func copyPolls(t *testing.T, from, dir string) func(n int) bool {
	t.Helper()
	r, err := rundb.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	w, err := rundb.Create(dir, r.Meta(), rundb.WriterOptions{BlockPolls: 64})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddTarget(r.Targets()[0]); err != nil {
		t.Fatal(err)
	}
	var polls []func() error
	for s, err := range r.Snapshots(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		c := s.Clone()
		polls = append(polls, func() error { return w.Record(c) })
	}
	closed := false
	return func(n int) bool {
		if closed {
			return false
		}
		for range min(n, len(polls)) {
			if err := polls[0](); err != nil {
				t.Fatal(err)
			}
			polls = polls[1:]
		}
		err := w.Flush(t.Context())
		if len(polls) == 0 {
			closed, err = true, errors.Join(err, w.Close(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		return len(polls) > 0
	}
}

// requests is rows 15 and 17 and the paths of section 6: each request, the status, and what the body must have.
func requests(t *testing.T, dir string) {
	s := open(t, serve.Options{MaxSamples: 20_000}, dir)
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	const end = "&time=1767226230"
	form := func(pairs ...string) string { return strings.Join(pairs, "&") }
	for _, x := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/api/v1/query?query=1%2B1&time=4", "", 200, `{"resultType":"scalar","result":[4,"2"]}`},
		{"POST", "/api/v1/query", "query=1%2B1&time=4.5", 200, `"result":[4.500,"2"]`},
		{"GET", "/api/v1/query?query=up" + end + "&limit=1", "", 200, "truncated"},
		{"GET", "/api/v1/query?query=" + url.QueryEscape(`"a"`) + end, "", 200, `"resultType":"string"`},
		{"GET", "/api/v1/query?query=sum(", "", 400, `"errorType":"bad_data"`},
		{"GET", "/api/v1/query?query=up&time=x", "", 400, "valid timestamp"},
		{"POST", "/api/v1/query_range", form("query=up", "start=1767225600", "end=1767226200", "step=15"), 200, `"matrix"`},
		{"POST", "/api/v1/query_range", form("query=up", "start=1767225600", "end=1767226200", "step=0.03"), 400,
			"11000 points"},
		{"POST", "/api/v1/query_range", form("query=up", "start=5", "end=4", "step=1"), 400, "before start"},
		{"GET", "/api/v1/query?query=" + url.QueryEscape(`count_over_time({__name__=~".+"}[10m])`) + end, "", 422,
			`"errorType":"execution"`},
		{"POST", "/api/v1/query", "query=" + strings.Repeat("1%2B", 40_000) + "1", 400, "at most"},
		{"GET", "/api/v1/series?match[]=up", "", 200, `"instance":"a:8000"`},
		{"GET", "/api/v1/series", "", 400, "match[]"},
		{"GET", "/api/v1/labels?match[]=up", "", 200, `["__name__","instance","job","run","target"]`},
		{"GET", "/api/v1/labels?match[]=up&start=5&end=6", "", 200, `[]`},
		{"GET", "/api/v1/label/target/values", "", 200, `["a","b","f","h"]`},
		{"GET", "/api/v1/label/U__target/values", "", 200, `["a","b","f","h"]`},
		{"GET", "/api/v1/metadata?metric=nv_inference_count", "", 200, `{"nv_inference_count":[{"type":"counter"`},
		{"GET", "/api/v1/metadata?metric=vllm:generation_tokens_total", "", 200, `"type":"counter"`},
		{"GET", "/api/v1/metadata?limit=1", "", 200, "truncated"},
		{"GET", "/api/v1/query_exemplars?query=up", "", 200, `"data":[]`},
		{"GET", "/api/v1/status/buildinfo", "", 200, `"version":"3.`},
		{"GET", "/api/v1/status/tsdb", "", 200, `"minTime":1767225600000`},
		{"GET", "/api/v1/rules", "", 200, `{"groups":[]}`},
		{"GET", "/api/v1/targets", "", 200, `"job":"scrapestat"`},
		{"GET", "/federate?match[]=up", "", 200, `up{instance="a:8000",job="scrapestat",run="A",target="a"} 1 1767226230000`},
		{"GET", "/", "", 200, "4 targets"},
		{"GET", "/-/ready", "", 200, "Ready"},
		{"GET", "/api/v1/admin/tsdb/snapshot", "", 404, `"status":"error"`},
		{"GET", "/nothing", "", 404, `"status":"error"`},
		{"DELETE", "/api/v1/series", "", 405, `"status":"error"`},
		{"POST", "/api/v1/read", "x", 400, "snappy"},
	} {
		req, err := http.NewRequest(x.method, srv.URL+x.path, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		if x.body != "" {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != x.status || !strings.Contains(string(body), x.want) {
			t.Errorf("%s %.100s %.80s: %d %.300s, want %d and %s", x.method, x.path, x.body, resp.StatusCode, body, x.status,
				x.want)
		}
		if strings.HasPrefix(x.path, "/api") && !json.Valid(body) {
			t.Errorf("%s: no JSON: %.200s", x.path, body)
		}
	}
}

// FuzzHTTP sends any parameters to each path: the answer is JSON of a status that the API has.
func FuzzHTTP(f *testing.F) {
	s := open(f, serve.Options{Timeout: time.Second, MaxSamples: 100_000},
		recorded(f, "fuzz", startA, time.Second, 10*time.Second,
			record.Server{Name: "a", Profile: "vllm", Options: simulate.Options{Rate: 8, Seed: 1}}))
	h := s.Handler()
	paths := []string{"query", "query_range", "series", "labels", "label/x/values", "metadata", "query_exemplars", "read"}
	f.Add(uint8(0), "query=up&time=1767225605")
	f.Add(uint8(1), "query=rate(x_total[$window])&start=1767225600&end=1767225610&step=1s")
	f.Add(uint8(2), "match[]={__name__=~\"vllm.%2B\"}&start=-1e300&end=NaN")
	f.Add(uint8(3), "match[]=up&limit=-1")
	f.Add(uint8(1), "query=$phase:profiling/9&start=9223372036854775807&end=1&step=1e-300")
	f.Fuzz(func(t *testing.T, path uint8, form string) {
		name := paths[int(path)%len(paths)]
		r := httptest.NewRequest("POST", "/api/v1/"+name, strings.NewReader(form))
		if name == "metadata" || strings.HasPrefix(name, "label/") {
			r = httptest.NewRequest("GET", "/api/v1/"+name, nil)
			r.URL.RawQuery = form
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 && w.Code != 400 && w.Code != 422 && w.Code != 503 || w.Code != 200 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s with %q: %d %.200s", name, form, w.Code, w.Body)
		}
	})
}
