package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/internal/httpguard"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestRemoteWriteReal sends a run to a real Prometheus server and imports it
// from there again: every sample must be that of the recording, to the
// millisecond.
func TestRemoteWriteReal(t *testing.T) {
	prom := findProgram(t, "prometheus")
	addr, config := freeAddr(t), t.TempDir()+"/prometheus.yml"
	if err := os.WriteFile(config, []byte("global: {scrape_interval: 1h}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	startProgram(t, addr, prom, "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+addr,
		"--web.enable-remote-write-receiver")
	engine := httptest.NewServer(newEngine(t))
	defer engine.Close()
	for _, version := range []string{"1", "auto"} {
		run1, run2 := t.TempDir(), t.TempDir()
		start := time.Now()
		runOK(t, "collect", "engine="+engine.URL, "-o", run1, "--duration", "1500ms", "--settle", "0s", "--interval", "100ms",
			"--scrape-budget", "0",
			"--formats", "json", "--quiet", "--remote-write", "http://"+addr+"/api/v1/write", "--remote-write-version", version,
			"--remote-write-label", "run=v"+version)
		if w := warningsOf(t, run1); w != "" {
			t.Errorf("version %s: warnings %s", version, w)
		}
		runOK(t, "import", "prometheus", "http://"+addr, "--match", `{job="scrapestat",run="v`+version+`"}`, "-o", run2,
			"--quiet",
			"--target-labels", "job,instance,target,run", "--start", start.UTC().Format(time.RFC3339Nano))
		want, got := pollsOf(t, run1, 0), pollsOf(t, run2, 0)
		if len(want) < 10 || len(got) != len(want) {
			t.Fatalf("version %s: %d polls were recorded, %d arrived", version, len(want), len(got))
		}
		compared, lastNS := 0, int64(0)
		for i := range want {
			atNS := want[i].atNS / 1e6 * 1e6
			if atNS == lastNS { // the second poll of a millisecond is sent as the next
				atNS += 1e6
			}
			lastNS = atNS
			if got[i].atNS != atNS {
				t.Fatalf("version %s: poll %d is at %d, want %d", version, i, got[i].atNS, atNS)
			}
			arrived := map[string]float64{}
			for key, v := range got[i].values {
				_, key, _ = strings.Cut(key, " ") // the receiver does not keep types
				arrived[key] = v
			}
			for key, v := range want[i].values {
				if strings.Contains(key, " created ") {
					continue
				}
				typ, rest, _ := strings.Cut(key, " ")
				g, ok := arrived[rest]
				if !ok && typ == "counter" { // a counter that the server calls so without _total
					t.Fatalf("version %s: %s did not arrive", version, key)
				}
				if !ok || math.Float64bits(g) != math.Float64bits(v) {
					t.Fatalf("version %s: poll %d: %s is %v (%v), recorded was %v", version, i, key, g, ok, v)
				}
				compared++
			}
		}
		t.Logf("version %s: %d samples of %d polls are equal", version, compared, len(want))
	}
}

func newEngine(t *testing.T) http.Handler {
	t.Helper()
	sim, err := simulate.New("vllm", simulate.Options{Rate: 60, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

func warningsOf(t *testing.T, dir string) string {
	t.Helper()
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text := ""
	for _, w := range r.Warnings() {
		text += w.Code + ": " + w.Text + "\n"
	}
	return text
}

// TestRemoteWriteBroken: a receiver that hangs or refuses neither delays a run
// by more than the stated two seconds nor hides that samples were lost, and
// shows no secret.
func TestRemoteWriteBroken(t *testing.T) {
	t.Parallel()
	engine := httptest.NewServer(newEngine(t))
	defer engine.Close()
	token := t.TempDir() + "/token"
	if err := os.WriteFile(token, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(name string, h http.HandlerFunc, want string) {
		t.Helper()
		var mu sync.Mutex
		authorization := ""
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			mu.Lock()
			authorization = r.Header.Get("Authorization")
			mu.Unlock()
			h(w, r)
		}))
		defer srv.Close()
		dir := t.TempDir()
		var out, talk bytes.Buffer
		began := time.Now()
		code := run(context.Background(), []string{"collect", engine.URL, "-o", dir, "--duration", "300ms", "--settle", "0s",
			"--interval", "50ms",
			"--scrape-budget", "0", "--formats", "json", "--remote-write", strings.Replace(srv.URL, "://", "://u:hunter3@", 1) +
				"/write?key=hunter4",
			"--remote-write-bearer-token-file", token, "--remote-write-header", "X-Key: hunter5"}, stdio{nil, &out, &talk})
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: the run took %v", name, took)
		}
		if code != exitDone || !strings.Contains(talk.String(), want) {
			t.Errorf("%s: exit code %d, talk\n%s\nwant %q", name, code, talk.String(), want)
		}
		if !strings.Contains(warningsOf(t, dir), "remote_write_lost") {
			t.Errorf("%s: the recording does not say that samples were lost", name)
		}
		mu.Lock()
		if authorization != "Bearer hunter2" {
			t.Errorf("%s: the receiver saw the authorization %q", name, authorization)
		}
		mu.Unlock()
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		all := out.String() + talk.String()
		for _, f := range files {
			text, err := os.ReadFile(dir + "/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
		}
		if i := strings.Index(all, "hunter"); i >= 0 {
			t.Errorf("%s: a secret is shown: %.200q", name, all[max(0, i-80):])
		}
	}
	check("hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "0 samples were sent")
	check("500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"were dropped as the receiver did not follow")
	check("400", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of \x1b order", http.StatusBadRequest)
	}, "out of ? order")
	check("later", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}, "0 samples were sent")
}

// lockedBuffer is written by a run while the test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestListen asks a running collector: its own metrics, marks, and what it must
// refuse.
func TestListen(t *testing.T) {
	engine := httptest.NewServer(newEngine(t))
	defer engine.Close()
	dir := t.TempDir()
	talk := &lockedBuffer{}
	done := make(chan int)
	go func() {
		done <- run(context.Background(), []string{"collect", "a=" + engine.URL, "-o", dir, "--listen", "0", "--interval",
			"50ms", "--settle", "0s",
			"--scrape-budget", "0", "--formats", "json"}, stdio{nil, io.Discard, talk})
	}()
	if !waitForPolls(dir, 5) {
		t.Fatal("nothing was recorded")
	}
	m := regexp.MustCompile(`listening on (http://127\.0\.0\.1:\d+)`).FindStringSubmatch(talk.String())
	if m == nil {
		t.Fatalf("no address was printed:\n%s", talk.String())
	}
	url := m[1]
	ask := func(method, path string, change func(*http.Request)) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(req)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	check := func(method, path string, change func(*http.Request), want int) {
		t.Helper()
		if code, body := ask(method, path, change); code != want {
			t.Errorf("%s %s: status %d, want %d: %s", method, path, code, want, body)
		}
	}
	_, body := ask("GET", "/metrics", nil)
	polls := regexp.MustCompile(`scrapestat_scrapes_total\{outcome="ok",target="a"\} (\d+)`).FindStringSubmatch(body)
	if polls == nil {
		t.Fatalf("no scrapes are counted:\n%.2000s", body)
	}
	if n, _ := strconv.Atoi(polls[1]); n < 5 {
		t.Errorf("%d scrapes are counted, want at least 5", n)
	}
	for _, name := range []string{"scrapestat_scrape_body_bytes_total", "scrapestat_scrape_lateness_seconds_bucket",
		"scrapestat_commit_duration_seconds_count", "scrapestat_sample_lines_total"} {
		if !strings.Contains(body, name) {
			t.Errorf("/metrics has no %s", name)
		}
	}
	if code, body := ask("GET", "/status", nil); code != http.StatusOK || !strings.Contains(body, engine.URL) {
		t.Errorf("status page: %d, %s", code, body)
	}
	// The live page is the report of what was folded so far; nothing of it is cached
	// or framed, and its policy lets it ask this server only.
	if code, body := ask("GET", "/", nil); code != http.StatusOK || !strings.Contains(body, "<!DOCTYPE html>") ||
		!strings.Contains(body, engine.URL) ||
		!strings.Contains(body, "connect-src 'self'") || !strings.Contains(body, `class="chip live"`) {
		t.Errorf("live page: %d, %.3000s", code, body)
	}
	slowCrowd(t, strings.TrimPrefix(url, "http://"))
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	origin := func(o string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Origin", o) } }
	check("GET", "/", host("evil.example:80"), http.StatusMisdirectedRequest)
	check("GET", "/", host("localhost"), http.StatusOK)
	check("GET", "/status", host("evil.example"), http.StatusMisdirectedRequest)
	check("POST", "/", nil, http.StatusMethodNotAllowed)
	check("GET", "/../../etc/passwd", nil, http.StatusNotFound)
	check("POST", "/mark?name=x", host("evil.example"), http.StatusMisdirectedRequest)
	check("POST", "/mark?name=x", origin("http://evil.example"), http.StatusForbidden)
	check("GET", "/mark?name=x", nil, http.StatusMethodNotAllowed)
	check("GET", "/nosuch", nil, http.StatusNotFound)
	check("POST", "/mark", nil, http.StatusBadRequest)
	check("POST", "/mark?name=a%0Ab", nil, http.StatusBadRequest)
	check("POST", "/mark?name=x&at=2020-01-01T00:00:00Z", nil, http.StatusBadRequest)
	check("POST", "/mark?name=low", origin(url), http.StatusOK)
	runOK(t, "mark", url, "high")
	var out bytes.Buffer
	if code := run(context.Background(), []string{"mark", url, ""}, stdio{nil, &out, &out}); code != exitUsage {
		t.Errorf("mark without a name: exit code %d, %s", code, out.String())
	}
	check("POST", "/mark?name=end", nil, http.StatusOK)
	select {
	case code := <-done:
		if code != exitDone {
			t.Errorf("exit code %d\n%s", code, talk.String())
		}
	case <-time.After(patience):
		t.Fatal("the mark end did not end the run")
	}
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names []string
	for _, m := range r.Marks() {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "profiling low high end" {
		t.Errorf("marks %q", got)
	}
}

// connections is how many slow connections are tried: few in CI, and
// SCRAPESTAT_CONNECTIONS for the figure of docs/reliability.md.
func connections(few int) int {
	if n, err := strconv.Atoi(os.Getenv("SCRAPESTAT_CONNECTIONS")); err == nil && n > 0 {
		return n
	}
	return few
}

// slowCrowd opens connections that send a byte of a request, or none. They are
// dropped, the oldest first, and keep no request from its answer.
func slowCrowd(t *testing.T, addr string) {
	t.Helper()
	n := connections(1000)
	var crowd []net.Conn
	for i := range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
		if i%2 == 0 {
			_, _ = io.WriteString(c, "GET /status HTTP/1.1\r\nHost: "[:1+i%20]) // it may have been dropped
		}
		crowd = append(crowd, c)
	}
	// below the patience for a head
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 4 * time.Second}
	resp, err := client.Get("http://" + addr + "/status")
	if err != nil {
		t.Fatalf("a request behind %d slow connections: %v", n, err)
	}
	resp.Body.Close()
	open := 0
	for i, c := range crowd {
		patience := time.Millisecond
		if i < n-httpguard.MaxConnections { // these must be closed, which takes a moment to arrive
			patience = time.Second
		}
		_ = c.SetReadDeadline(time.Now().Add(patience)) // fails when it is closed, as Read does
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	if open > httpguard.MaxConnections {
		t.Errorf("%d of %d connections are open, the limit is %d", open, n, httpguard.MaxConnections)
	}
	faults.Figure(t, "slow-connections", fmt.Sprintf(
		"%d slow connections to --listen: at most %d are kept, and a request behind them is answered", n,
		httpguard.MaxConnections),
		"SCRAPESTAT_CONNECTIONS=10000 go test ./cmd/scrapestat -run '^TestListen$' -v")
}

func TestListenAddress(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		got, err := listenAddress(in)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	check("9400", "127.0.0.1:9400")
	check(":9400", "127.0.0.1:9400")
	check("0", "127.0.0.1:0")
	check("0.0.0.0:9400", "0.0.0.0:9400")
	check("[::]:9400", "[::]:9400")
	check("host", "error")
	check("host:port:x", "error")
	check("host:", "error")
	check("70000", "error")
}
