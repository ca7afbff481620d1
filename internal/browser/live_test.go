package browser

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The page of --listen renews itself while the run goes on, keeps what the reader
// did, and says so when the collector has ended.
func TestLivePage(t *testing.T) {
	address := server(t, "vllm", "--rate", "12")
	path, err := scrapestat()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "collect", "engine="+address, "-o", filepath.Join(t.TempDir(), "run"),
		"--listen", "0", "--interval", "100ms", "--settle", "0s", "--formats", "json")
	talk, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // it has ended, or the test failed
	url := ""
	lines := bufio.NewScanner(talk)
	for url == "" && lines.Scan() {
		if m := regexp.MustCompile(`listening on (http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			url = m[1] + "/"
		}
	}
	ended := make(chan error, 1)
	go func() {
		for lines.Scan() {
		}
		ended <- cmd.Wait()
	}()
	b := browse(t)
	b.open(url)
	b.until(`document.querySelector(".chip.live")`)
	b.until(`Number(document.documentElement.dataset.refreshed) >= 1 && document.querySelectorAll(".card").length > 2`)
	// What the reader looks at stays: the search, an open family, the zoom.
	b.until(`[...document.querySelectorAll(".open")].some((o) => o.textContent === "vllm:generation_tokens")`)
	b.click("#search")
	b.call("Input.insertText", map[string]any{"text": "generation_tokens"})
	b.click("#table tbody.fam:not([hidden]) .open")
	b.until(`document.querySelector(".detail canvas")`)
	before := eval[int](b, `Number(document.documentElement.dataset.refreshed)`)
	scrapes := eval[int](b, `parseInt(document.querySelector(".targets td.num").textContent)`)
	b.until(`Number(document.documentElement.dataset.refreshed) > ` + strconv.Itoa(before))
	b.until(`document.querySelector(".detail canvas")`)
	if got := eval[string](b, `document.querySelector("#search").value + "|" + [...document.querySelectorAll("#table `+
		`tbody.fam")].filter((x) => !x.hidden).length`); got == "generation_tokens|0" ||
		!strings.HasPrefix(got, "generation_tokens|") {
		t.Errorf("after a refresh the search is %q", got)
	}
	b.until(`parseInt(document.querySelector(".targets td.num").textContent) > ` + strconv.Itoa(scrapes))
	b.until(`document.querySelector(".detail canvas")`)
	b.frames()
	if n := b.inked()["vllm:generation_tokens"]; n < 40 {
		t.Errorf("the picture of an open family has %d pixels of colour after a refresh", n)
	}
	b.shot("live", false)
	for _, u := range b.asked(url) {
		t.Errorf("the live page asked for %s", u)
	}
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console has errors: %v", said)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("collect ended with %v", err)
	}
	b.until(`document.querySelector(".chip.warn") && /no longer ` +
		`answers/.test(document.querySelector(".chips").textContent)`)
	b.shot("live-ended", false)
}
