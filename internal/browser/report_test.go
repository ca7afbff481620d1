package browser

import (
	"bufio"
	"fmt"
	"image"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// profiles are the engines whose reports are opened, and a quantity or family that
// must be drawn for each.
var profiles = []struct{ name, drawn string }{
	{"vllm", "vllm:num_requests_running"},
	{"vllm-omni", "vllm:num_requests_running"},
	{"sglang", "sglang:num_running_reqs"},
	{"trtllm", "trtllm_request_success"},
	{"dynamo", "dynamo_frontend_inflight_requests"},
	{"triton", "nv_inference_count"},
	{"torchserve", "ts_inference_requests"},
	{"tgi", "tgi_request_count"},
	{"llamacpp", "llamacpp:tokens_predicted"},
}

// server starts a simulated engine that ends with the test and returns its address.
func server(t *testing.T, args ...string) string {
	t.Helper()
	path, err := scrapestat()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"simulate"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended with the test's context
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("simulate %v says no address: %v", args, err)
	}
	return strings.TrimSpace(line)
}

// record records simulated engines, each into a run of its name, by a clock that does not wait.
func record(t *testing.T, dir string, names ...string) {
	t.Helper()
	for i, name := range names {
		run(t, "simulate", name, "--rate", "12", "--seed", fmt.Sprint(i+1), "--record", filepath.Join(dir, name),
			"--duration", "30s", "--warmup", "5s")
		run(t, "report", filepath.Join(dir, name), "--quiet")
	}
}

func TestReportOfEachEngine(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for _, p := range profiles {
		names = append(names, p.name)
	}
	record(t, dir, names...)
	b := browse(t)
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			b.t = t
			url := "file://" + filepath.Join(dir, p.name, "report.html")
			b.open(url)
			b.until(`document.querySelectorAll(".card").length > 1`)
			b.drawAll()
			ink := b.inked()
			for name, n := range ink {
				if n < 40 {
					t.Errorf("the picture of %s has %d pixels of colour, want some", name, n)
				}
			}
			eval[any](b, fmt.Sprintf(`(() => { const o = [...document.querySelectorAll(".open")].find((o) => o.textContent `+
				`=== %q); if (o) o.click(); })()`, p.drawn))
			b.frames()
			if n := b.inked()[p.drawn]; n < 40 {
				t.Errorf("the picture of %s has %d pixels of colour, want some; drawn are %v", p.drawn, n, ink)
			}
			b.shot("engine-"+p.name, p.name == "vllm-omni")
			b.quiet(url)
		})
	}
	b.t = t
	interact(t, b, "file://"+filepath.Join(dir, "vllm", "report.html"))
	several(t, b, filepath.Join(dir, "vllm"), filepath.Join(dir, "vllm-omni"))
	printed(t, b, "file://"+filepath.Join(dir, "vllm", "report.html"))
}

// interact does what a person does: zoom, hover, search, sort, keyboard, theme.
func interact(t *testing.T, b *tab, url string) {
	b.size(1400, 1000)
	b.open(url)
	first := "#g-overview .card .plot"
	b.rect(first)
	b.until(fmt.Sprintf(`document.querySelector(%q)`, first+" .u-over"))
	r := b.rect(first + " .u-over")
	at := func(part float64) float64 { return r.X + part*r.Width }
	y := r.Y + r.Height/2

	// Hovering shows values, in this picture and in others.
	b.mouse("Moved", at(0.3), y, 0)
	b.mouse("Moved", at(0.5), y, 0)
	b.until(`[...document.querySelectorAll("#g-overview .card")].filter((c) => c.querySelector("canvas")).slice(0, ` +
		`2).every((c) => c.querySelector(".lv").textContent !== "")`)
	b.shot("hover", false)

	// Dragging zooms all pictures; Escape and the button show the whole run.
	whole := b.shot("unzoomed", false)
	b.mouse("Pressed", at(0.35), y, 1)
	b.mouse("Moved", at(0.45), y, 0)
	b.mouse("Moved", at(0.65), y, 0)
	b.mouse("Released", at(0.65), y, 1)
	b.until(`!document.querySelector("#unzoom").hidden`)
	b.frames()
	if part := changed(whole, b.shot("zoomed", false)); part < 0.005 {
		t.Errorf("zooming changed %.4f of the pixels", part)
	}
	b.press("Escape")
	b.until(`document.querySelector("#unzoom").hidden`)

	// The keyboard moves the cursor, says what is there, and zooms.
	eval[any](b, fmt.Sprintf(`document.querySelector(%q).focus()`, first))
	b.press("ArrowRight")
	b.press("ArrowRight")
	b.until(`/ at -?\d/.test(document.querySelector("#say").textContent)`)
	b.press("+")
	b.until(`!document.querySelector("#unzoom").hidden`)
	b.click("#unzoom")
	b.until(`document.querySelector("#unzoom").hidden`)

	search(t, b)

	// The theme follows the system until somebody chooses one.
	b.prefers("dark")
	b.frames()
	if l := lightness(b.shot("dark", false)); l > 0.35 {
		t.Errorf("the dark page has a lightness of %.2f", l)
	}
	b.click("#theme")
	b.frames()
	if l := lightness(b.shot("light", false)); l < 0.65 {
		t.Errorf("the light page has a lightness of %.2f", l)
	}
	b.prefers("light")
	b.click("#theme")
	b.frames()
	if l := lightness(b.shot("dark-chosen", false)); l > 0.35 {
		t.Errorf("the dark page has a lightness of %.2f", l)
	}
	b.click("#theme")

	// Every control has a name, every picture a description, and headings go down
	// one by one.
	if bad := eval[[]string](b, `[...document.querySelectorAll("button,input,select,[role=group]")].filter((e) => `+
		`!(e.getAttribute("aria-label") || e.textContent.trim() || (e.labels && e.labels.length))).map((e) => `+
		`e.outerHTML.slice(0, 80))`); len(bad) > 0 {
		t.Errorf("controls without a name: %v", bad)
	}
	if bad := eval[int](b, `(() => { let last = 0, bad = 0; for (const h of document.querySelectorAll("h1,h2,h3,h4")) {`+
		` const n = Number(h.tagName[1]); if (n > last + 1) bad++; last = n; } return bad; })()`); bad > 0 {
		t.Errorf("%d headings skip a level", bad)
	}
	b.quiet(url)

	// A narrow window has no sideways scrolling of the page.
	b.size(390, 800)
	b.until(`[...document.querySelectorAll(".u-wrap")].every((e) => e.clientWidth < 390)`)
	if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 392 {
		t.Errorf("the page is %d pixels wide in a window of 390", wide)
	}
	b.shot("narrow", false)
	b.size(1400, 1000)
}

// search finds, opens and sorts families.
func search(t *testing.T, b *tab) {
	shown := `[...document.querySelectorAll("#table tbody.fam")].filter((x) => !x.hidden).map((x) => ` +
		`x.querySelector(".open").textContent)`
	look := func(text string) []string {
		b.click("#search")
		eval[any](b, fmt.Sprintf(`(() => { const s = document.querySelector("#search"); s.value = ""; s.dispatchEvent(new `+
			`Event("input")); })()`))
		b.call("Input.insertText", map[string]any{"text": text})
		return eval[[]string](b, shown)
	}
	all := eval[[]string](b, shown)
	if got := look("latency e2e"); len(got) != 1 || got[0] != "vllm:e2e_request_latency_seconds" {
		t.Errorf("search for two words: got %v", got)
	}
	b.click("#table tbody.fam:not([hidden]) .open")
	b.until(`document.querySelector(".detail canvas") && document.querySelector(".detail table")`)
	b.click(".detail .mode")
	b.frames()
	b.shot("family", false)
	if got := look("^vllm:.*_total$|^vllm:prompt"); len(got) == 0 || len(got) == len(all) ||
		!strings.HasPrefix(got[0], "vllm:") {
		t.Errorf("search for a regular expression: got %v", got)
	}
	if got := look("nothing has this name"); len(got) != 0 {
		t.Errorf("search for nothing: got %v", got)
	}
	if got := look(" "); len(got) != len(all) {
		t.Errorf("an empty search shows %d of %d", len(got), len(all))
	}
	b.click("#table th[data-sort=num] button")
	b.click("#table th[data-sort=num] button")
	n := eval[[]float64](b, `[...document.querySelectorAll("#table tbody.fam")].map((x) => `+
		`parseFloat(x.rows[0].cells[2].textContent))`)
	for i := 1; i < len(n); i++ {
		if n[i] > n[i-1] {
			t.Errorf("sorted by series, falling: got %v", n)
			break
		}
	}
}

// several opens the report of two runs.
func several(t *testing.T, b *tab, base, other string) {
	path := filepath.Join(t.TempDir(), "two.html")
	run(t, "report", "base="+base, "other="+other, "-o", path, "--quiet")
	b.open("file://" + path)
	b.drawAll()
	if got := eval[int](b, `document.querySelectorAll(".run").length`); got != 2 {
		t.Errorf("got %d runs, want 2", got)
	}
	if !eval[bool](b, `[...document.querySelectorAll(".card")].some((c) => /base · /.test(c.textContent) && /other · `+
		`/.test(c.textContent))`) {
		t.Error("no picture has series of both runs")
	}
	b.shot("several", true)
	b.quiet("file://" + path)
	pictures(b, "file://"+filepath.Join(other, "report.html"), "file://"+path)
}

// printed makes a PDF and looks at what a printer gets.
func printed(t *testing.T, b *tab, url string) {
	b.size(1400, 1000)
	b.open(url)
	pdf := answerOf[struct{ Data []byte }](b, "Page.printToPDF", map[string]any{"printBackground": true}).Data
	if len(pdf) < 50_000 || !strings.HasPrefix(string(pdf), "%PDF") {
		t.Errorf("printing gave %d bytes", len(pdf))
	}
	b.quiet(url)
}

// changed is the part of the pixels that differ.
func changed(a, b image.Image) float64 {
	r, n := a.Bounds(), 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if a.At(x, y) != b.At(x, y) {
				n++
			}
		}
	}
	return float64(n) / float64(r.Dx()*r.Dy())
}

// lightness is the mean of a picture, 0 to 1.
func lightness(a image.Image) float64 {
	r, sum := a.Bounds(), 0.0
	for y := r.Min.Y; y < r.Max.Y; y += 3 {
		for x := r.Min.X; x < r.Max.X; x += 3 {
			red, green, blue, _ := a.At(x, y).RGBA()
			sum += float64(red+green+blue) / 3 / 0xffff
		}
	}
	return sum / math.Ceil(float64(r.Dx())/3) / math.Ceil(float64(r.Dy())/3)
}
