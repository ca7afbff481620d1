package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/internal/simulate"
)

// TestLimits hits every limit of collect that has a flag: the hit is counted under
// an outcome or a reason, and what the run says about it names the flag. A flag
// without a case fails.
func TestLimits(t *testing.T) {
	t.Parallel()
	script := func(text string) string { return serveBad(t, text).Addr }
	native := httptest.NewServer(newNativeServer())
	defer native.Close()
	tried := map[string]bool{}
	// counted is an outcome, or the reason of a drop or of a warning.
	check := func(flag, value, counted, address string, more ...string) {
		t.Helper()
		tried[flag] = true
		dir := filepath.Join(t.TempDir(), "run")
		var said bytes.Buffer
		args := append([]string{"collect", address, "-o", dir, "--formats", "json", "--" + flag, value}, quickRun...)
		code := run(t.Context(), append(args, more...), stdio{strings.NewReader(""), &said, &said})
		_, shown := runQuiet("show", dir)
		if text := said.String() + shown; code != exitDone && code != exitNothing || !strings.Contains(text, "--"+flag) {
			t.Errorf("--%s %s: exit %d, and its name is not in\n%s", flag, value, code, text)
		}
		accounts, err := faults.Accounts(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		export, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
		if err != nil {
			t.Fatal(err)
		}
		if accounts[0].Outcomes[counted] == 0 && !bytes.Contains(export, []byte(`"`+counted+`"`)) {
			t.Errorf("--%s %s: %s is not counted: %v", flag, value, counted, accounts)
		}
		checkFaultyRun(t, dir, "json")
	}
	three := script(`200 body="a{x=\"1\"} 1\na{x=\"2\"} 2\na{x=\"3\"} 3\n"`)
	check("max-body", "20", "too_large", three)
	check("max-compressed-body", "10", "too_large", script(`200 gzip body="a 1\nb 2\nc 3\n"`))
	check("max-headers", "200", "too_large", script(`200 header="X-Long: `+strings.Repeat("x", 300)+`" body="a 1\n"`))
	check("max-error-body", "10", "http_error", script(`500 body="more than ten bytes"`))
	check("max-redirects", "0", "refused_redirect", script(`302 header="Location: /elsewhere/metrics"`))
	check("max-samples", "2", "too_large", three)
	check("max-families", "2", "family_limit", script(`200 body="a 1\nb 1\nc 1\nd 1\n"`))
	check("max-families", "1", "family_limit", script(`200 body="# TYPE a gauge\n# TYPE b gauge\na 1\n"`))
	check("max-series", "2", "series_limit", three)
	check("max-labels", "1", "label_limit", script(`200 body="a{x=\"1\",y=\"2\"} 1\nb 1\n"`))
	check("max-name-length", "5", "name_limit", script(`200 body="too_long 1\nb 1\n"`))
	check("max-value-length", "5", "value_limit", script(`200 body="a{x=\"too long\"} 1\nb 1\n"`))
	check("max-buckets", "2", "bucket_limit",
		script(`200 body="# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"+Inf\"} 1\n"`))
	check("max-native-buckets", "2", "native_bucket_limit", native.URL, "--protocols", "protobuf")
	check("max-memory", "4000", "memory_limit", three)
	check("max-recording", "1000", "recording_limit", three)
	tried["max-pending"] = true // by TestHardening/K1
	check("timeout", "60ms", "timeout", script("hang"))
	check("connect-timeout", "60ms", "connect_error", deaf(t))

	cmd := newCollectCmd(discard())
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if g := f.Annotations[inGroup]; len(g) == 1 && g[0] == "Limit" && !tried[f.Name] {
			t.Errorf("--%s is not tried", f.Name)
		}
	})
}

// deaf returns the address of a server that takes no connection: its queue is full.
func deaf(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) }) // of a test
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for range 16 {
		c, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = c.Close() }) // as above
	}
	t.Fatal("the queue of a server that never accepts does not fill")
	return ""
}

// peakOfCollect is peakOf a short run against a server.
func peakOfCollect(t *testing.T, want string, args ...string) int64 {
	t.Helper()
	return peakOf(t, want, append([]string{"collect", "-o", filepath.Join(t.TempDir(), "run"), "--formats", "json",
		"--interval", "100ms",
		"--duration", "300ms", "--settle", "0s", "--scrape-budget", "0"}, args...)...)
}

// peakOf runs scrapestat in a process of its own and returns the largest resident
// set that it had, in bytes.
func peakOf(t *testing.T, want string, args ...string) int64 {
	t.Helper()
	cmd := exec.Command("scrapestat", args...)
	talk := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = talk, talk
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the code is that of a target that fails
	}()
	// What wait4 says would have the memory of this process in it, as of the fork.
	peak := int64(0)
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil {
			if _, text, ok := strings.Cut(string(status), "VmHWM:"); ok {
				var kib int64
				if _, err := fmt.Sscan(text, &kib); err == nil {
					peak = max(peak, kib<<10)
				}
			}
		}
		select {
		case <-tick.C:
			continue
		case <-done:
			tick.Stop()
		}
		break
	}
	if !strings.Contains(talk.String(), want) || peak == 0 {
		t.Errorf("%q: peak %d, %q is not said:\n%s", args, peak, want, talk.String())
	}
	return peak
}

// TestCatalogueMemory has the cases that are about memory, in a process of their
// own, as the kernel counts it: beside the same run of a target that behaves, or
// in all.
func TestCatalogueMemory(t *testing.T) {
	t.Parallel()
	if racing {
		t.Skip("the race detector takes several times the memory")
	}
	usual := peakOfCollect(t, "recording 1 targets", serveBad(t, goodScript).Addr)
	check := func(t *testing.T, script, want string, most int64, more ...string) {
		t.Helper()
		var peak int64
		for range 3 { // when the collector of garbage comes is chance; what is held is not
			peak = peakOfCollect(t, want, append([]string{serveBad(t, script).Addr}, more...)...)
			t.Logf("%d KiB, %d KiB more than usual, at most %d", peak>>10, (peak-usual)>>10, most>>10)
			if peak-usual <= most {
				return
			}
		}
		t.Errorf("the process grew by %d bytes, want at most %d", peak-usual, most)
	}
	t.Run("T10 endless head", func(t *testing.T) {
		check(t, `raw body="HTTP/1.1 200 OK\r\n" fill=400000:"X-Pad: 0123456789012345678901234567890123456789\r\n"`,
			"--max-headers", 2<<20)
	})
	t.Run("T12 bomb", func(t *testing.T) {
		check(t, "200 bomb=1073741824", "--max-body", 2*(64<<20))
	})
	t.Run("P17 huge lines", func(t *testing.T) {
		// A buffer for the body of 32 MiB, and what is dropped of it.
		check(t, `200 body="good 1\nlong{x=\"" fill=33000000:"y" body="\"} 2\n"`, "--max-value-length", 4*(33<<20))
		// The names of 100,000 labels, before they are counted.
		check(t, `200 body="good 1\nmany{" count=100000:"l#=\"1\"," body="z=\"1\"} 2\n"`, "--max-labels", 32<<20)
	})
	t.Run("D08 nominal load", func(t *testing.T) { nominalLoad(t, 256<<20) })
	t.Run("E05 a line of 1 GiB", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "long.jsonl")
		if err := errors.Join(os.WriteFile(path, []byte(`{"endpoint_url":"`), 0o600), os.Truncate(path, 1<<30)); err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"aiperf-jsonl", "openmetrics"} {
			peak := peakOf(t, "scrapestat: ", "import", what, path, "-o", filepath.Join(t.TempDir(), "run"))
			t.Logf("%s: %d KiB", what, peak>>10)
			if peak > 512<<20 {
				t.Errorf("import %s took %d bytes for a line of 1 GiB", what, peak)
			}
		}
	})
}

// nominalLoad records ten servers of 1,200 samples three times a second and makes
// all exports, without a limit that the runtime of Go would keep by itself.
func nominalLoad(t *testing.T, most int64) {
	args := []string{"collect", "-o", filepath.Join(t.TempDir(), "run"), "--formats", "json,csv,jsonl,parquet",
		"--interval", "333ms", "--scrape-budget", "0", "--duration", "3s", "--settle", "0s"}
	for i := range 10 {
		sim, err := simulate.New("vllm", simulate.Options{Rate: 28, Seed: uint64(i), ExtraSeries: 800})
		if err != nil {
			t.Fatal(err)
		}
		if n := sim.Samples(); n < 1200 {
			t.Fatalf("%d samples, want 1,200", n)
		}
		args = append(args, serveHandler(t, sim))
	}
	peak := peakOf(t, "recording 10 targets", args...)
	t.Logf("%d KiB, at most %d", peak>>10, most>>10)
	if peak > most {
		t.Errorf("the process took %d bytes, want at most %d", peak, most)
	}
	checkFaultyRun(t, args[2], "json", "csv", "jsonl", "parquet")
}
