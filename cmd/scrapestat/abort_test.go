//go:build unix

package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAbort: the second signal ends a run at once, also while a target hangs;
// the recording stays and the message says how to go on.
func TestAbort(t *testing.T) {
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE good_total counter\ngood_total 5\n"))
	}))
	defer good.Close()
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hang.Close()

	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.Command("scrapestat", "collect", good.URL, hang.URL, "-o", dir, "--interval", "50ms", "--timeout", "30s")
	var talk bytes.Buffer
	cmd.Stderr = &talk
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !waitForPolls(dir, 3) {
		t.Fatalf("%s has not recorded 3 polls after %v", dir, patience)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} { // two of one kind might become one
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitAborted {
		t.Errorf("collect ended with %v, want exit code %d", err, exitAborted)
	}
	if want := "the recording is kept: scrapestat export " + dir; !strings.Contains(talk.String(), want) {
		t.Errorf("talk %q does not say %q", talk.String(), want)
	}
	if code, talk := runQuiet("export", dir, "--formats", "json"); code != exitDone {
		t.Fatalf("export after abort: exit code %d\n%s", code, talk)
	}
	if _, ok := readExport(t, dir).Metrics["good"]; !ok {
		t.Error("the export of the aborted run lacks the metric good")
	}
}
