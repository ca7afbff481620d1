package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vllmSince is a server that tells of one finished request once a file is there.
func vllmSince(t *testing.T, file string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		if _, err := os.Stat(file); err == nil {
			n = 1
		}
		fmt.Fprintf(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 0\n"+
			"# TYPE vllm:request_success counter\nvllm:request_success_total %d\n", n)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// Row 15: a warm-up that outlasts the traffic leaves nothing, which is the first line, and exit code 4 under --strict.
func TestEmptyWindowOfCollect(t *testing.T) {
	for strict, code := range map[string]int{"--strict=true": exitIncomplete, "--strict=false": exitDone} {
		dir := t.TempDir()
		file := filepath.Join(dir, "asked")
		text := said(t, code, "collect", vllmSince(t, file), "-o", filepath.Join(dir, "run"), "--formats", "json", "--warmup",
			"5m", "--settle", "0s", "--interval", "50ms", "--scrape-budget", "0", strict, "--", "touch", file)
		if !strings.HasPrefix(text, "error: nothing is left to measure: the warm-up of 5m0s is longer than the ") {
			t.Errorf("row 15, %s: %s", strict, text)
		}
		shown := said(t, exitFailed, "show", filepath.Join(dir, "run"))
		if !strings.HasPrefix(shown, "error: nothing is left") {
			t.Errorf("the first line of show: %s", shown)
		}
		said(t, exitIncomplete, "show", filepath.Join(dir, "run"), "--strict")
	}
}

// Row 16: no traffic is the first line; under --strict with a COMMAND it is exit code 4.
func TestNoTrafficOfCollect(t *testing.T) {
	url, dir := vllmSince(t, filepath.Join(t.TempDir(), "never")), t.TempDir()
	collect := func(code int, name string, args ...string) {
		t.Helper()
		text := said(t, code, append([]string{"collect", url, "-o", filepath.Join(dir, name), "--formats", "json", "--settle",
			"0s", "--interval", "1s", "--scrape-budget", "0"}, args...)...)
		if !strings.HasPrefix(text, "warning: no poll showed a request") {
			t.Errorf("row 16, %v: %s", args, text)
		}
	}
	collect(exitDone, "idle", "--duration", "200ms")
	collect(exitDone, "command", "--", "true")
	collect(exitIncomplete, "strict", "--strict", "--", "true")
	for name, code := range map[string]int{"idle": exitDone, "command": exitIncomplete} {
		text := said(t, code, "show", filepath.Join(dir, name), "--strict")
		if !strings.HasPrefix(text, "warning: no poll showed a request") {
			t.Errorf("row 16, the first line of show of %s: %s", name, text)
		}
	}
}
