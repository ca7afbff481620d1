package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestProxyStrict: an answer that the proxy cannot scan is a loss, which ends
// `requests proxy --strict` with 4, and without --strict does not.
func TestProxyStrict(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "up 1\n")
	}))
	defer server.Close()
	check := func(want int, flags ...string) {
		t.Helper()
		front, dir := freeAddr(t), filepath.Join(t.TempDir(), "run")
		ctx, stop := context.WithCancel(t.Context())
		var talk bytes.Buffer
		code := make(chan int, 1)
		go func() {
			args := append([]string{"requests", "proxy", "--listen", front, "--upstream", server.URL, "--calibration-requests",
				"0", "-o", dir}, flags...)
			code <- run(ctx, args, stdio{nil, &talk, &talk})
		}()
		if !askUntil(ctx, func() bool { return listening(front) }) {
			t.Fatal("the proxy does not listen")
		}
		if err := askOnce(ctx, front, 1); err != nil {
			t.Error(err)
		}
		stop()
		if got := <-code; got != want || want != exitDone && !strings.Contains(talk.String(), "--strict") {
			t.Errorf("%q: exit code %d, want %d: %s", flags, got, want, talk.String())
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			t.Errorf("others may look into the run directory: %v, %v", info, err)
		}
	}
	check(exitIncomplete, "--strict")
	check(exitDone)
}
