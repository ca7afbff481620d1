//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

// tty is a real pseudo-terminal with a shell in it, held by tmux.
type tty struct {
	t      *testing.T
	socket string
}

// newTerminal starts a shell in a terminal of that size.
func newTerminal(t *testing.T, width, height int) *tty {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt-get install tmux")
	}
	dir, err := os.MkdirTemp("", "tmux") // a socket has a short path
	if err != nil {
		t.Fatal(err)
	}
	term := &tty{t, filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() // it may have ended
		os.RemoveAll(dir)
	})
	races := filepath.Join(dir, "races")
	t.Cleanup(func() { ownRaces(t, races) })
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height),
		"env PS1='shell> ' ENV= GORACE='exitcode=0 log_path="+races+"' sh")
	term.wait("shell>")
	return term
}

// ownRaces reads what the race detector found in the commands of a terminal. The
// library that reads keys closes its file while its reader still asks for it, at
// the very end (cancelreader 0.2.2); anything else is ours.
func ownRaces(t *testing.T, path string) {
	t.Helper()
	logs, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, report := range strings.Split(string(text), "WARNING: DATA RACE")[1:] {
			if !strings.Contains(report, "cancelreader.(*epollCancelReader).Close") {
				t.Errorf("data race: %s", report)
			}
		}
	}
}

func (term *tty) tmux(args ...string) string {
	term.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (term *tty) screen() string { return term.tmux("capture-pane", "-p") }

// until waits until the screen is as wanted and returns it.
func (term *tty) until(what string, ok func(string) bool) string {
	term.t.Helper()
	ctx, cancel := context.WithTimeout(term.t.Context(), 2*patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		screen := term.screen()
		if ok(screen) {
			return screen
		}
		select {
		case <-ctx.Done():
			term.t.Fatalf("the screen never was: %s\n%s", what, screen)
		case <-tick.C:
		}
	}
}

// wait waits for a text on the screen.
func (term *tty) wait(text string) string {
	term.t.Helper()
	return term.until(text, func(s string) bool { return strings.Contains(s, text) })
}

func (term *tty) keys(keys ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, keys...)...)
}

// command types a line.
func (term *tty) command(line string) { term.t.Helper(); term.keys(line, "Enter") }

func (term *tty) resize(width, height int) {
	term.t.Helper()
	term.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// clean wants the terminal as a shell needs it: its own screen, a cursor, echo.
func (term *tty) clean() {
	term.t.Helper()
	if got := strings.TrimSpace(term.tmux("display-message", "-p",
		"#{alternate_on} #{cursor_flag} #{mouse_any_flag}")); got != "0 1 0" {
		term.t.Errorf("second screen, cursor, mouse: got %q, want 0 1 0", got)
	}
	term.command("clear; stty -a | tr ' ;' '\\n\\n' | grep -x -e echo -e icanon -e isig | tr '\\n' ' '; echo modes")
	term.wait("isig icanon echo modes")
}

// collecting types a command line of collect and returns its run directory.
func (term *tty) collecting(args string) string {
	term.t.Helper()
	self, err := exec.LookPath("scrapestat")
	if err != nil {
		term.t.Fatal(err)
	}
	dir := filepath.Join(term.t.TempDir(), "run")
	term.tmux("send-keys", "-R")
	term.tmux("clear-history")
	term.command(fmt.Sprintf("%s collect -o %s --interval 100ms --scrape-budget 0 --formats json %s; echo exit \"code "+
		"$?\"", self, dir, args))
	return dir
}

func modelServer(t *testing.T) *httptest.Server {
	srv := httptest.NewServer(simulated(t, "vllm", simulate.Options{Rate: 40, Seed: 3}))
	t.Cleanup(srv.Close)
	return srv
}

// TestLiveView watches a run as a person does: a target crashes, the window gets
// small and large again, every view is looked at, q ends the run.
func TestLiveView(t *testing.T) {
	t.Parallel()
	good, dying := modelServer(t), modelServer(t)
	term := newTerminal(t, 120, 40)
	dir := term.collecting("a=" + good.URL + " b=" + dying.URL)
	term.wait("output_tok_s")
	if got := term.tmux("display-message", "-p", "#{alternate_on}"); got != "1\n" {
		t.Errorf("not on the second screen: %q", got)
	}
	dying.CloseClientConnections()
	dying.Close()
	term.wait("FAILED  b")
	for _, size := range [][2]int{{20, 10}, {80, 24}, {200, 60}, {8, 4}, {120, 40}} {
		term.resize(size[0], size[1])
		term.until(fmt.Sprint(size), func(s string) bool {
			lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
			for _, line := range lines {
				if texttab.Width(line) > size[0] {
					return false
				}
			}
			return strings.HasPrefix(lines[0], "pro") && len(lines) <= size[1] && strings.HasPrefix(lines[len(lines)-1], "q")
		})
	}
	term.keys("2")
	term.wait("LAST ERROR")
	term.keys("3")
	term.wait("vllm:e2e_request_latency_seconds")
	term.keys("?")
	term.wait("final scrapes, exports, summary")
	term.keys("Escape") // with the next key at once it would be alt
	term.wait("vllm:e2e_request_latency_seconds")
	term.keys("t")
	term.wait("target a")
	term.keys("C-z", "1")
	term.wait("vLLM")
	term.keys("q")
	term.wait("exit code 0")
	term.clean()
	if _, ok := readExport(t, dir).Metrics["vllm:num_requests_running"]; !ok {
		t.Error("the run that was watched has no export")
	}
}

// TestLiveViewEnds leaves the terminal clean after each way a run can end, and
// says what was said.
func TestLiveViewEnds(t *testing.T) {
	t.Parallel()
	srv := modelServer(t)
	term := newTerminal(t, 100, 30)
	check := func(args string, during func(), want ...string) {
		t.Helper()
		term.collecting(args)
		during()
		term.wait("exit code")
		screen := term.tmux("capture-pane", "-p", "-J", "-S", "-")
		for _, text := range want {
			if !strings.Contains(screen, text) {
				t.Errorf("collect %s: want %q on\n%s", args, text, screen)
			}
		}
		term.clean()
	}
	started := func() { t.Helper(); term.wait("1 engine") }
	check(srv.URL+" --duration 1s", started, "exit code 0")
	check(srv.URL, func() { started(); term.keys("C-c") }, "exit code 0")
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hang.Close()
	check(hang.URL+" --timeout 60s", func() { started(); term.keys("q", "q") }, "aborted; the recording is kept",
		"exit code 130")
	check(srv.URL+" -- sh -c 'echo words of the lo\"\"ad; exit 7'", func() {}, "words of the load", "exit code 7")
	check(srv.URL+" --live on --settle 0s -- sh -c 'echo words of the lo\"\"ad; cat; sleep 1; echo more >&2; exit 7'",
		started, "words of the load\nmore", "exit code 7")
	check(srv.URL+" --live off --duration 300ms", func() { term.wait("recording 1 targets") }, "exit code 0")
	check(srv.URL+" --live on --quiet", func() {}, "exclude each other", "exit code 2")
	check(srv.URL+" --live on --duration 1s 2>/dev/null", func() {}, "exit code 2")

	term.command("export TERM=dumb")
	check(srv.URL+" --duration 300ms", func() {}, "exit code 0")
	check(srv.URL+" --live on", func() {}, "--live on needs a terminal", "exit code 2")
}

// TestLiveViewNoColor: NO_COLOR leaves no colour.
func TestLiveViewNoColor(t *testing.T) {
	t.Parallel()
	srv := modelServer(t)
	term := newTerminal(t, 100, 30)
	check := func(env string, want bool) {
		t.Helper()
		term.command(env)
		term.collecting(srv.URL)
		term.wait("output_tok_s")
		term.until(env, func(string) bool { // a target that is late on a busy machine is not green
			return regexp.MustCompile(`\x1b\[[0-9;]*3[1-6]m`).MatchString(term.tmux("capture-pane", "-p", "-e")) == want
		})
		term.keys("q")
		term.wait("exit code 0")
	}
	check("unset NO_COLOR", true)
	check("export NO_COLOR=1", false)
}

// TestLiveViewFleet watches 500 targets.
func TestLiveViewFleet(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE good_total counter\ngood_total 5\n")
	}))
	defer srv.Close()
	list := filepath.Join(t.TempDir(), "targets")
	var lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&lines, "t%d=%s/metrics?i=%d\n", i, srv.URL, i)
	}
	if err := os.WriteFile(list, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	term := newTerminal(t, 100, 30)
	term.collecting("--interval 2s $(cat " + list + ")")
	term.wait("target all 500")
	term.keys("2", "End")
	term.wait("t499")
	term.keys("q")
	term.wait("exit code 0")
	term.clean()
}
