package collect_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/rundb"
)

// Targets that a file lists come, go and come back while the run is recorded; the
// failures of one that has gone are not failures of the run.
func TestDiscovery(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	host := strings.TrimSuffix(strings.TrimPrefix(target(t).URL, "http://"), "/metrics")
	write("list.json", `[{"targets":["`+host+`"]}]`)
	config := write("p.yml", "scrape_configs:\n- job_name: j\n  file_sd_configs: [{files: [list.json]}]\n")
	d, err := discover.Load(config, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &told{gone: make(chan bool, 10)}
	o := options(t)
	o.Discoverers, o.Refresh, o.Events = []*discover.Discoverer{d}, 5*time.Millisecond, e
	dir := filepath.Join(t.TempDir(), "run")
	s := open(t, dir, o)
	go func() {
		<-s.Ready()
		write("list.json", `[]`)
		<-e.gone
		write("list.json", `[{"targets":["`+host+`"]}]`)
		<-e.gone
		write("list.json", `[{"targets":["`+host+`", "127.0.0.1:1"]}]`)
		<-e.gone
		s.Stop()
	}()
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"added 0 one", "added 1 ", "gone 1 true", "gone 1 false", "added 2 ", "gone 2 false"}
	got := slices.DeleteFunc(e.words, func(w string) bool {
		return !strings.HasPrefix(w, "added") &&
			!strings.HasPrefix(w, "gone")
	})
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := len(r.Lives(1)); n != 2 {
		t.Errorf("the recording has %d events of the target, want 2", n)
	}
}

// Lines about requests and a proxy tell one run of them.
func TestLinesAndProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{` +
			`"completion_tokens":1}}`))
	}))
	defer upstream.Close()
	lines := `{"id":"a","issued_ns":1000000000,"complete_ns":2000000000}` + "\nno line\n"
	o := options(t)
	o.Client = collect.ClientOptions{Lines: "-", In: strings.NewReader(lines), Proxy: &collect.ProxyOptions{
		Listen: "127.0.0.1:0", Calibration: 1, Options: proxy.Options{Upstream: upstream.URL, MaxRequest: 1 << 20,
			MaxStreams: 4, Untracked: true}}}
	e := &told{}
	o.Events = e
	s := open(t, filepath.Join(t.TempDir(), "run"), o)
	addr, ok := s.ProxyAddr().(*net.TCPAddr)
	if !ok || addr.Port == 0 {
		t.Fatalf("the proxy listens on %v", s.ProxyAddr())
	}
	go func() {
		<-s.Ready()
		defer s.Stop()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Post("http://"+addr.String()+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"m","messages":[]}`))
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	}()
	run, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := run.Client.String(), "requests: 2 (0 failed, 0 in flight), "; !strings.HasPrefix(got, want) ||
		!strings.Contains(got, "2 lines and the proxy, 1 lines bad") {
		t.Errorf("got %q", got)
	}
	if !slices.Contains(e.words, "message proxy: 1 requests (0 failed), 0 passed unrecorded") ||
		!slices.Contains(e.words, "warning request_lines_bad") {
		t.Errorf("told %q", e.words)
	}
}
