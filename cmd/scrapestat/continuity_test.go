package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// rows has the values of counters, body by body; none is an absent one.
type rows map[string][]float64

var none = math.NaN()

// text is the n-th body.
func (r rows) text(n int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if v := r[name][n]; !math.IsNaN(v) {
			family, _, _ := strings.Cut(name, "{")
			fmt.Fprintf(&b, "# TYPE %s counter\n%s %.0f\n", family, name, v)
		}
	}
	return b.String()
}

// times is what a process shows whose work grows with its requests.
func times(requests ...float64) rows {
	r := rows{}
	for name, factor := range map[string]float64{"req_total": 1, "tok_total": 90, "bytes_total": 4000, "steps_total": 7} {
		for _, v := range requests {
			r[name] = append(r[name], v*factor)
		}
	}
	return r
}

func gauge(name string, v float64) string {
	family, _, _ := strings.Cut(name, "{")
	return fmt.Sprintf("# TYPE %s gauge\n%s %.3f\n", family, name, v)
}

// latency is a histogram of two buckets.
func latency(first, count, sum float64) string {
	return fmt.Sprintf("# TYPE lat histogram\nlat_bucket{le=\"0.1\"} %.0f\nlat_bucket{le=\"+Inf\"} %.0f\nlat_sum %v\n"+
		"lat_count %[2]v\n", first, count, sum)
}

// rude is what a server shows, a second each body, and what every command has to say of it.
type rude struct {
	name   string
	last   int // body
	body   func(n int) string
	strict int            // exit code of collect, show and export with --strict
	checks map[string]int // exit codes of check, by assertion or ready check
	show   string         // an expression that the screen of families has
	report string         // a text that the report has
	json   string         // a text that the JSON export has
	judged bool           // compare judges the first counter
}

// epoch is when the cases begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rudeCases are those that section 2 of the design document continuity.md reproduced, with the numbers of section 14.
func rudeCases() []rude {
	old, later, inside := float64(epoch.Unix()-9000), float64(epoch.Unix()-800), float64(epoch.Unix())+1.7
	start := func(v float64) string { return gauge("process_start_time_seconds", v) }
	twoProcesses := times(1000, 40, 1010, 44, 1020, 48, 1030, 52)
	jobs := rows{"jobs_total": {16119, 16125, 16130, 16136}, "tok_total": {100, 200, 300, 400}}
	errs := rows{`http_requests_total{handler="/v1",status="2xx"}`: {1000, 1400, 1800, 2200},
		`http_requests_total{handler="/v1",status="5xx"}`: {none, none, 137, 137}, "tok_total": {1, 2, 3, 4}}
	plain := rows{"a_total": {1, 2, 3, 4}, "b_total": {1, 2, 3, 4}}
	masked := times(3, 8, 40, 300, 1640)
	dips := rows{"a_total": {999990, 1000000, 999999, 1000010, 1000009, 1000015, 1000023},
		"b_total": {0, 1, 2, 3, 4, 5, 6}, "c_total": {0, 10, 20, 30, 40, 50, 60}, "d_total": {5, 6, 7, 8, 9, 10, 11}}
	return []rude{
		{name: "two processes, named", last: 7, body: func(n int) string {
			return twoProcesses.text(n) + start([]float64{old, later}[n%2])
		}, strict: exitIncomplete, checks: map[string]int{"req_total total > 40": exitDone,
			"req_total total < 100": exitIncomplete, "req_total total > 50": exitIncomplete, "req_total total < 40": exitBad,
			"one-process": exitBad},
			show:   `(?m)lower bounds: 2 processes$[^/]*req +>= 42 `,
			report: "lower_bounds", json: `"status": "lower_bound", "value": 42.0, "low": 42.0, "restarts": 1`},
		{name: "two processes, not named", last: 7, body: twoProcesses.text, strict: exitIncomplete,
			checks: map[string]int{"req_total total < 1e9": exitIncomplete, "resets": exitBad, "one-process": exitBad},
			show:   `refused: values of several processes\n(.*\n)+req +refused `,
			report: "its counters are refused", json: `"status": "refused", "type": "counter"`},
		{name: "a gauge called created", last: 3, body: func(n int) string {
			return jobs.text(n) + gauge("jobs_created", []float64{8000, 8001, 8003, 8004}[n])
		}, checks: map[string]int{"jobs_total total == 17": exitDone, "resets": exitDone}, judged: true,
			show: `\njobs +17 `, report: "0 counter resets", json: `"total": 17.0`},
		{name: "errors born in the run", last: 3, body: errs.text, judged: true,
			checks: map[string]int{"derived:http_5xx_ratio == 0": exitBad, "derived:http_5xx_ratio > 0.10246": exitDone,
				"derived:http_5xx_ratio < 0.10247": exitDone, `http_requests_total{status="5xx"} total == 137`: exitDone},
			show: `http_requests +137 requests born `, report: "born in window", json: `"status": "born", "value": 137.0`},
		{name: "a histogram born in the run", last: 2, body: func(n int) string {
			return plain.text(n) + []string{"", latency(60, 100, 20), latency(61, 102, 20.5)}[n]
		}, checks: map[string]int{"lat count == 102": exitDone, "lat sum == 20.5": exitDone}, judged: true,
			show: `lat +102 born `, report: "0 counter resets",
			json: `"value": 102.0, "low": 102.0, "high": 102.0, "sum": 20.5`},
		{name: "a masked restart", last: 4, body: func(n int) string {
			return masked.text(n) + start([]float64{old, old, inside, inside, inside}[n])
		}, checks: map[string]int{"req_total total == 1645": exitDone, "resets": exitBad, "one-process": exitDone},
			judged: true, show: `corrected for restarts\n(.*\n)+req +1,645 restarted x1 `, report: "1 counter reset<",
			json: `"status": "corrected", "processes": 1, "restarts": 1`},
		{name: "dips", last: 6, body: dips.text, judged: true,
			checks: map[string]int{"a_total total == 33": exitDone, "resets": exitDone, "one-process": exitDone},
			show:   ` 1 +0 +0 +2 +certain\n(.*\n)+a +33 `, report: "0 counter resets", json: `"dips": 2`},
		{name: "older bodies", last: 7, body: times(1000, 1050, 1100, 1050, 1150, 1100, 1200, 1250).text, judged: true,
			checks: map[string]int{"req_total total == 250": exitDone, "resets": exitDone, "one-process": exitDone},
			show:   ` 1 +0 +2 +0 +certain\n(.*\n)+req +250 `, report: "0 counter resets", json: `"older_bodies": 2`},
		{name: "a torn histogram", last: 3, body: func(n int) string {
			return plain.text(n) + latency([]float64{500000, 500001, 500000, 500003}[n],
				[]float64{1000100, 1000101, 1000103, 1000105}[n], []float64{10, 10.1, 10.3, 10.5}[n])
		}, checks: map[string]int{"lat count == 5": exitDone, "lat sum > 0.499999": exitDone,
			"lat sum < 0.500001": exitDone, "resets": exitDone}, judged: true, show: `lat +5 `, report: "0 counter resets",
			json: `"buckets": { "0.1": 3, "+Inf": 5 }`},
		{name: "an engine that leaves", last: 10, body: func(n int) string {
			all := fmt.Sprintf("# TYPE c_total counter\nc_total %d\n", n)
			for engine := range 2 {
				if engine == 0 || n < 6 {
					all += gauge(fmt.Sprintf("vllm:num_requests_running{engine=\"%d\"}", engine), 4)
				}
			}
			return all
		}, checks: map[string]int{"vllm:num_requests_running by () time_avg == 6": exitDone, "resets": exitDone},
			judged: true, show: `\nc +10 `, report: "0 counter resets", json: `"total": 10.0`},
	}
}

// recordRude collects from a server that answers with the bodies of a case, and returns the run with its exports and
// the exit code of collect --strict.
func recordRude(t *testing.T, c *rude) (dir string, code int) {
	t.Helper()
	server := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, c.body(min(int(time.Since(epoch)/time.Second), c.last)))
	})
	o := collectOptions{interval: time.Second, duration: time.Duration(c.last) * time.Second}
	o.analysis.formats, o.analysis.strict = []string{"json"}, true
	return collectInBubble(t, o, func() http.Handler { return server })
}

// asked runs a command and returns its exit code and all that it wrote.
func asked(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	var out bytes.Buffer
	code = run(t.Context(), args, stdio{nil, &out, &out})
	return code, out.String()
}

// continuityOf is the row of a run in the table of section 14: what its export says happened, and of which increases.
func continuityOf(t *testing.T, dir string) string {
	t.Helper()
	var r exportedCase
	text, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	row := "no event"
	if c := r.Scrapestat.Endpoints[0].Continuity; c != nil {
		row = fmt.Sprintf("%s: processes %d, restarts %d, older bodies %d, dips %d", c.Status, c.Processes, c.Restarts,
			c.OlderBodies, c.Dips)
	}
	for _, s := range r.Scrapestat.Series {
		if i := s.Increase; i != nil {
			row += fmt.Sprintf("; %s %s %v", s.Metric, i.Status, i.Value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		for _, s := range r.Metrics[name].Series {
			row += fmt.Sprintf("; AIPerf's %s %v", name, cmp.Or(s.Stats.Total, s.Stats.Count))
		}
	}
	return row
}

// TestRudeServers holds every command to what it must say of servers that restart, dip, answer in turn or repeat
// themselves: a number is right, or every command knows that it is not certain.
func TestRudeServers(t *testing.T) {
	t.Parallel()
	for _, c := range rudeCases() {
		t.Run(c.name, func(t *testing.T) {
			dir, code := recordRude(t, &c)
			if code != c.strict {
				t.Errorf("collect --strict: exit code %d, want %d", code, c.strict)
			}
			want := func(exit int, text string, args ...string) {
				t.Helper()
				code, out := asked(t, args...)
				if found, err := regexp.MatchString(text, out); code != exit || !found || err != nil {
					t.Errorf("%q: exit code %d, want %d and %s (%v) in\n%s", args, code, exit, text, err, out)
				}
			}
			want(c.strict, c.show, "show", dir, "--families", "--strict")
			want(c.strict, "", "export", dir, "--formats", "csv,jsonl,parquet", "--strict", "-o", filepath.Join(dir, "x"))
			t.Logf("collect --strict exits with %d; %s", code, continuityOf(t, dir))
			for text, exit := range c.checks {
				flag := "--ready"
				if strings.Contains(text, " ") {
					flag = "--assert"
				}
				want(exit, "", "check", dir, flag, text)
			}
			compared := `(?m)0 worse.*[1-9]\d* the same`
			if !c.judged {
				compared = `(?m)^  (lower_bound of a|refused).*req rate`
			}
			want(exitDone, compared, "compare", "a="+dir, "b="+dir)
			want(exitDone, "", "report", dir, "-o", filepath.Join(dir, "report.html"))
			for file, text := range map[string]string{"report.html": c.report, "server_metrics_export.json": c.json} {
				got, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil || !strings.Contains(strings.Join(strings.Fields(string(got)), " "), text) {
					t.Errorf("%s has no %s (%v)", file, text, err)
				}
			}
		})
	}
}

// TestPoliteBytes: of a server that only works every exported byte is the same with what continuity makes of it and
// with AIPerf's arithmetic on raw values, but for the word that names the mode; and there is no status in it.
func TestPoliteBytes(t *testing.T) {
	var bodies [2]string
	for i := range bodies {
		bodies[i] = string(testkit.Data(t, fmt.Sprintf("bodies/vllm-omni-0.30.0-t%d.prom", i)))
	}
	dir, code := recordRude(t, &rude{last: 2, body: func(n int) string { return bodies[min(n, 1)] }})
	if code != exitDone {
		t.Errorf("collect --strict: exit code %d", code)
	}
	exported := func(mode, file string) string {
		out := filepath.Join(dir, mode)
		if _, err := os.Stat(out); err != nil {
			runOK(t, "export", dir, "--formats", "json,csv,jsonl,parquet", "--counter-resets", mode, "-o", out, "--strict")
		}
		text, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(string(text), `"counter_resets": "`+mode, `"counter_resets": "`, 1)
	}
	for _, file := range []string{"server_metrics_export.json", "server_metrics_export.csv", "server_metrics_export.jsonl",
		"server_metrics_export.parquet", "derived.parquet"} {
		text := exported("adjust", file)
		if len(text) < 10000 || text != exported("clamp", file) {
			t.Errorf("%s: %d bytes, that are not those of AIPerf's arithmetic", file, len(text))
		}
		if found := regexp.MustCompile(`"(increase|continuity)"`).FindString(text); found != "" {
			t.Errorf("%s has %s", file, found)
		}
	}
}

// seriesKey is how a gain is found.
func seriesKey(url, name string, labels map[string]string) string {
	return fmt.Sprint(url, name, labels)
}

// gains are what the slots of a series gained: its value or count, sum, and buckets by bound.
type gains struct {
	value, sum float64
	buckets    map[float64]float64
}

// rawGains are those of a recording by series: the last value of each slot less the first.
func rawGains(t *testing.T, dir string) map[string]*gains {
	t.Helper()
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := map[string]*gains{}
	for i, target := range r.Targets() {
		var schema metric.Schema
		first, last := map[uint32]float64{}, map[uint32]float64{}
		for s, err := range r.Snapshots(t.Context(), i) {
			if err == nil {
				err = schema.Extend(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			for k, slot := range s.Delta.Slots {
				v := schema.Slots[slot].Float(s.Delta.Bits[k])
				if _, ok := first[slot]; !ok {
					first[slot] = v
				}
				last[slot] = v
			}
		}
		for slot, v := range last {
			id := &schema.Slots[slot]
			key := seriesKey(target.URL, schema.FamilyOf(id.Series).Name, schema.Series[id.Series].Labels.Map())
			if out[key] == nil {
				out[key] = &gains{buckets: map[float64]float64{}}
			}
			switch g := v - first[slot]; id.Role {
			case metric.RoleValue, metric.RoleCount:
				out[key].value = g
			case metric.RoleSum:
				out[key].sum = g
			case metric.RoleBucket:
				out[key].buckets[id.Bound] = g
			}
		}
	}
	return out
}

// hold compares the numbers of a series with its gains and returns how many those are.
func (s *caseSeries) hold(t *testing.T, mode, name string, before map[string]*gains) (n int) {
	t.Helper()
	if s.Stats.Total == 0 && s.Stats.Count == 0 { // also gauges
		return 0
	}
	want := before[seriesKey(s.URL, name, s.Labels)]
	if want == nil {
		t.Errorf("%s: %s %v of %s is not in the recording", mode, name, s.Labels, s.URL)
		return 0
	}
	same := func(what string, got, want float64) {
		if n++; got != want {
			t.Errorf("%s: %s %v %s: %v, want %v", mode, name, s.Labels, what, got, want)
		}
	}
	same("total", s.Stats.Total+s.Stats.Count, want.value)
	same("sum", s.Stats.Sum, want.sum)
	for le, got := range s.Buckets {
		bound, err := strconv.ParseFloat(le, 64)
		if err != nil {
			t.Error(err)
		}
		same(le, got, want.buckets[bound])
	}
	return n
}

// TestPoliteNumbers holds each total, count, sum and bucket of the AIPerf part, in both modes, of every recording of a
// server that only works to what they were before there was continuity: the last value less the first, to the last bit.
func TestPoliteNumbers(t *testing.T) {
	t.Parallel()
	runs, err := filepath.Glob(testkit.Path(t, "runs") + "/*/run.db")
	if err != nil || len(runs) < 7 {
		t.Fatalf("%d recordings, %v", len(runs), err)
	}
	polite := 0
	for _, file := range runs {
		dir := filepath.Dir(file)
		before := rawGains(t, dir)
		for _, mode := range []string{"adjust", "clamp"} {
			var got exportedCase
			out := t.TempDir()
			runOK(t, "export", dir, "--window", "recording", "--warmup", "0s", "--formats", "json", "--counter-resets", mode,
				"-o", out)
			text, err := os.ReadFile(filepath.Join(out, "server_metrics_export.json"))
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			rude, n := false, 0
			for i := range got.Scrapestat.Endpoints {
				rude = rude || got.Scrapestat.Endpoints[i].Continuity != nil
			}
			if killed := strings.HasSuffix(dir, "-killed"); rude != killed {
				t.Errorf("%s: something happened: %v", dir, rude)
			} else if killed {
				break
			}
			for name, m := range got.Metrics {
				for i := range m.Series {
					n += m.Series[i].hold(t, mode, name, before)
				}
			}
			if t.Logf("%s %s: %d numbers", filepath.Base(dir), mode, n); n < 10 {
				t.Errorf("%s: only %d numbers", dir, n)
			}
			polite++
		}
	}
	if polite < 10 {
		t.Errorf("%d exports of polite recordings", polite)
	}
}

// TestSameServerTwice records one server at two ports, over HTTP: it counts once wherever targets are taken together,
// its rows stay, and every command that reads the run knows.
func TestSameServerTwice(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	served, scrapes := [2]int{}, 0
	enough, dir := make(chan struct{}), filepath.Join(t.TempDir(), "run")
	args := []string{"collect", "-o", dir, "--interval", "25ms", "--scrape-budget", "0", "--settle", "0", "--quiet",
		"--formats", "json", "--duration", patience.String()}
	ready := sync.OnceFunc(func() { close(enough) })
	for port := range served {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			scrapes++
			if served[port]++; min(served[0], served[1]) >= 15 {
				ready()
			}
			fmt.Fprint(w, gauge("process_start_time_seconds", float64(epoch.Unix())))
			for i, name := range []string{"vllm:generation_tokens_total", "vllm:prompt_tokens_total",
				"vllm:request_success_total", "vllm:num_preemptions_total"} {
				fmt.Fprintf(w, "# TYPE %s counter\n%[1]s{model_name=\"m\"} %d\n", name, (i+1)*scrapes)
			}
		}))
		defer srv.Close()
		args = append(args, fmt.Sprintf("%c=%s", 'a'+port, srv.URL))
	}
	ended := make(chan int)
	go func() {
		select {
		case <-enough:
		case <-t.Context().Done():
		}
		ended <- run(t.Context(), []string{"mark", dir, "end"}, discard())
	}()
	if code, text := asked(t, args...); code != exitDone || <-ended != exitDone {
		t.Fatalf("collect: exit code %d\n%s", code, text)
	}
	check := func(want string, args ...string) string {
		t.Helper()
		code, out := asked(t, args...)
		if found, err := regexp.MatchString(want, out); code != exitDone || !found || err != nil {
			t.Errorf("%q: exit code %d, want 0 and %s (%v) in\n%s", args, code, want, err, out)
		}
		return out
	}
	check(`(?s)vLLM  a  .*\nb +1 +0 +0 +0 +those of a: the same server, counted once\n.*b: same_server: `, "show", dir)
	check(`generation_tokens .* 1 \(and 1 repeats\)`, "show", dir, "--by", "", "--families")
	html := filepath.Join(dir, "report.html")
	check("", "report", dir, "-o", html)
	if text, err := os.ReadFile(html); err != nil || !bytes.Contains(text, []byte("same_server")) {
		t.Errorf("the report does not tell of one server (%v)", err)
	}
	check("", "export", dir, "--by", "", "--formats", "json")
	var doc struct {
		Scrapestat struct {
			Endpoints []struct {
				URL        string
				Continuity *struct {
					SameAs *int `json:"same_as"`
				}
			}
			Fleet []any
		}
		Metrics map[string]struct {
			Series []struct {
				URL   string `json:"endpoint_url"`
				Stats map[string]float64
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	e, series := doc.Scrapestat.Endpoints, doc.Metrics["vllm:generation_tokens"].Series
	if len(e) != 2 || len(series) != 2 || e[0].Continuity != nil || e[1].Continuity == nil ||
		*e[1].Continuity.SameAs != 0 || doc.Scrapestat.Fleet != nil {
		t.Fatalf("endpoints %+v, %d series, fleet %v", e, len(series), doc.Scrapestat.Fleet)
	}
	if series[0].URL != e[0].URL {
		slices.Reverse(series)
	}
	check("", "check", dir, "--assert", fmt.Sprintf("vllm:generation_tokens by () total == %v", series[0].Stats["total"]))
	back, _, err := export.ReadJSON(bytes.NewReader(text))
	if err != nil || back.Endpoints[0].SameAs != 0 || back.Endpoints[1].SameAs != 1 {
		t.Errorf("read back: %v, %+v", err, back)
	}
}

// TestPageNumbers: what the pages say of a birth and of a restart is one thing, and what check finds.
func TestPageNumbers(t *testing.T) {
	numbers := func(page, expr string) (out []float64) {
		t.Helper()
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(expr).FindStringSubmatch(strings.Join(strings.Fields(string(text)), " "))
		if found == nil {
			t.Fatalf("%s has nothing like %s", page, expr)
		}
		for _, text := range found[1:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
		return out
	}
	const birth, restart = `errors first shown as (\d+) are (\d+)`, `(\d+), (\d+), then (\d+) of a new process are (\d+)`
	born := numbers("windows.md", birth+` \((\d+) in AIPerf's part\)`)
	again := numbers("windows.md", restart)
	for _, page := range []string{"derived.md", "formats.md"} {
		if b, r := numbers(page, birth), numbers(page, restart); !slices.Equal(b, born[:2]) || !slices.Equal(r, again) {
			t.Errorf("%s says %v and %v, windows.md %v and %v", page, b, r, born, again)
		}
	}
	shown := rows{"req_total": append([]float64{again[0]}, again[:3]...), "tok_total": {100, 200, 300, 400},
		"errs_total": {none, born[0], born[0], none}}
	dir, _ := recordRude(t, &rude{last: 3, body: func(n int) string {
		since := []float64{-9000, -9000, -9000, 2.7}[n]
		return shown.text(n) + gauge("process_start_time_seconds", float64(epoch.Unix())+since)
	}})
	for name, want := range map[string]float64{"errs_total": born[1], "req_total": again[3]} {
		if code, out := asked(t, "check", dir, "--assert", fmt.Sprintf("%s total == %v", name, want)); code != exitDone {
			t.Errorf("exit code %d\n%s", code, out)
		}
	}
	if got := readExport(t, dir).Metrics["errs"].Series[0].Stats["total"]; got != born[2] {
		t.Errorf("AIPerf's part has %v errors, the page %v", got, born[2])
	}
}
