package browser

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// scrapestat is the program under test, built once.
var scrapestat = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "scrapestat-browser-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "scrapestat")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/scrapestat")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build scrapestat: %w: %s", err, out)
	}
	return path, nil
})

// run runs scrapestat and returns what it wrote to both streams.
func run(t *testing.T, args ...string) string {
	t.Helper()
	path, err := scrapestat()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("scrapestat %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// tab is a page in a browser of its own, with all that it said and asked for.
type tab struct {
	t       *testing.T
	d       *devtools
	session string

	mu       sync.Mutex
	console  []string // errors, warnings, exceptions
	requests []string
	dialogs  int
}

// browse starts a browser with an empty page.
func browse(t *testing.T) *tab {
	t.Helper()
	b := &tab{t: t, d: launch(t)}
	b.d.mu.Lock()
	b.d.events = b.hear
	b.d.mu.Unlock()
	target := answerOf[struct{ TargetID string }](b, "Target.createTarget", map[string]any{"url": "about:blank"})
	b.session = answerOf[struct{ SessionID string }](b, "Target.attachToTarget",
		map[string]any{"targetId": target.TargetID, "flatten": true}).SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil)
	}
	b.size(1400, 1000)
	b.call("Page.addScriptToEvaluateOnNewDocument",
		map[string]any{"source": "window.__violations = []; window.__ran = 0; " +
			"addEventListener('securitypolicyviolation', (e) => window.__violations.push(e.violatedDirective + ' ' + " +
			"e.blockedURI + ' ' + e.sample));"})
	return b
}

// hear notes events of the page.
func (b *tab) hear(method string, params json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch method {
	case "Runtime.consoleAPICalled":
		var e struct{ Type string }
		if json.Unmarshal(params, &e) == nil && (e.Type == "error" || e.Type == "warning" || e.Type == "assert") {
			b.console = append(b.console, string(params))
		}
	case "Log.entryAdded":
		var e struct {
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(params, &e) == nil && (e.Entry.Level == "error" || e.Entry.Level == "warning") {
			b.console = append(b.console, e.Entry.Text+" "+e.Entry.URL)
		}
	case "Runtime.exceptionThrown":
		b.console = append(b.console, string(params))
	case "Network.requestWillBeSent":
		var e struct{ Request struct{ URL string } }
		if json.Unmarshal(params, &e) == nil {
			b.requests = append(b.requests, e.Request.URL)
		}
	case "Page.javascriptDialogOpening":
		b.dialogs++
		// the test fails by the count
		_, _ = b.d.send(b.session, "Page.handleJavaScriptDialog", map[string]any{"accept": true})
	}
}

// call asks the page's part of the browser.
func (b *tab) call(method string, params any) json.RawMessage {
	b.t.Helper()
	res, err := b.d.call(60*time.Second, b.session, method, params)
	if err != nil {
		b.t.Fatalf("%v\nconsole: %s", err, strings.Join(b.said(), "\n"))
	}
	return res
}

func answerOf[T any](b *tab, method string, params any) T {
	b.t.Helper()
	var v T
	if err := json.Unmarshal(b.call(method, params), &v); err != nil {
		b.t.Fatalf("answer of %s: %v", method, err)
	}
	return v
}

func (b *tab) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.console...)
}

// asked returns the URLs that the page asked for, less the page itself and what is
// part of it.
func (b *tab) asked(own string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, u := range b.requests {
		if u != own && !strings.HasPrefix(u, "data:") {
			out = append(out, u)
		}
	}
	return out
}

// open loads a page and waits until its script has run. What was said before is
// forgotten.
func (b *tab) open(url string) {
	b.t.Helper()
	b.mu.Lock()
	b.console, b.requests = nil, nil
	b.mu.Unlock()
	b.call("Page.navigate", map[string]any{"url": url})
	b.until("document.documentElement?.dataset.ready === 'true'")
}

// eval evaluates an expression, waiting for a promise.
func eval[T any](b *tab, expr string) T {
	b.t.Helper()
	res := answerOf[struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}](b, "Runtime.evaluate", map[string]any{"expression": "(async () => JSON.stringify(await (" + expr +
		")) ?? 'null')()", "awaitPromise": true, "returnByValue": true})
	if res.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expr, res.ExceptionDetails)
	}
	var text string
	var v T
	if err := errors.Join(json.Unmarshal(res.Result.Value, &text), json.Unmarshal([]byte(text), &v)); err != nil {
		b.t.Fatalf("%s gave %q: %v", expr, res.Result.Value, err)
	}
	return v
}

// until waits for an expression to be true.
func (b *tab) until(expr string) {
	b.t.Helper()
	for range 400 {
		if eval[bool](b, "Boolean("+expr+")") {
			return
		}
		eval[any](b, "new Promise((ok) => setTimeout(ok, 50))")
	}
	b.t.Fatalf("never became true: %s\nconsole: %s", expr, strings.Join(b.said(), "\n"))
}

// frames lets the page draw.
func (b *tab) frames() {
	b.t.Helper()
	eval[any](b, "new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(ok, 30))))")
}

func (b *tab) size(w, h int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": w, "height": h, "deviceScaleFactor": 1,
		"mobile": false})
}

// prefers sets what the system prefers: "light" or "dark".
func (b *tab) prefers(scheme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme",
		"value": scheme}}})
}

// rect is where an element is, after it was scrolled into view.
type rect struct{ X, Y, Width, Height float64 }

func (b *tab) rect(selector string) rect {
	b.t.Helper()
	return eval[rect](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center",`+
		` behavior: "instant"}); const r = e.getBoundingClientRect(); return {X: r.x, Y: r.y, Width: r.width, Height: `+
		`r.height}; })()`, selector))
}

// mouse sends an event of the mouse: moved, pressed or released.
func (b *tab) mouse(kind string, x, y float64, clicks int) {
	b.t.Helper()
	p := map[string]any{"type": "mouse" + kind, "x": x, "y": y, "clickCount": clicks}
	if kind != "Moved" {
		p["button"], p["buttons"] = "left", 1
	}
	b.call("Input.dispatchMouseEvent", p)
}

// press sends a key to what has the focus.
func (b *tab) press(key string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": key}
		if kind == "keyDown" && len(key) == 1 {
			p["text"] = key
		}
		b.call("Input.dispatchKeyEvent", p)
	}
}

// click clicks into the middle of an element.
func (b *tab) click(selector string) {
	b.t.Helper()
	r := b.rect(selector)
	b.mouse("Moved", r.X+r.Width/2, r.Y+r.Height/2, 0)
	b.mouse("Pressed", r.X+r.Width/2, r.Y+r.Height/2, 1)
	b.mouse("Released", r.X+r.Width/2, r.Y+r.Height/2, 1)
}

// shot takes a picture of the whole page, or of what is seen of it, and keeps it.
func (b *tab) shot(name string, whole bool) image.Image {
	b.t.Helper()
	data := answerOf[struct{ Data []byte }](b, "Page.captureScreenshot",
		map[string]any{"format": "png", "captureBeyondViewport": whole}).Data
	if dir := os.Getenv("SCRAPESTAT_SHOTS"); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		b.t.Fatalf("read picture %s: %v", name, err)
	}
	return img
}

// unfold opens the pictures beyond the first ones, and gives long tables all of their height.
func (b *tab) unfold() {
	b.t.Helper()
	eval[any](b, `(() => { document.querySelectorAll("details.more").forEach((d) => { d.open = true; }); `+
		`document.querySelectorAll("#families > .scroll, #health > .scroll, .strips").forEach((e) => { `+
		`e.style.maxHeight = "none"; }); })()`)
}

// drawAll makes the window as tall as the page, so that every picture is drawn.
func (b *tab) drawAll() {
	b.t.Helper()
	b.unfold()
	for range 2 {
		b.size(1400, eval[int](b, "document.documentElement.scrollHeight")+300)
	}
	b.until(`[...document.querySelectorAll(".card")].every((c) => c.querySelector("canvas"))`)
	b.frames()
}

// quiet fails when the page said, asked or ran what it must not.
func (b *tab) quiet(own string) {
	b.t.Helper()
	if said := b.said(); len(said) > 0 {
		b.t.Errorf("the console has errors: %s", strings.Join(said, "\n"))
	}
	if asked := b.asked(own); len(asked) > 0 {
		b.t.Errorf("the page asked the network: %s", strings.Join(asked, "\n"))
	}
	if v := eval[[]string](b, "window.__violations"); len(v) > 0 {
		b.t.Errorf("the page broke its own policy: %s", strings.Join(v, "\n"))
	}
}

// inked counts the pixels of each card's canvas that have a colour.
func (b *tab) inked() map[string]int {
	b.t.Helper()
	return eval[map[string]int](b, `Object.fromEntries([...document.querySelectorAll(".card")].map((card) => {
		const c = card.querySelector("canvas"); if (!c) return [card.dataset.name, 0];
		const x = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true}); x.drawImage(c, 0, 0);
		const d = x.getImageData(0, 0, c.width, c.height).data; let n = 0;
		for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 100 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], `+
		`d[i + 1], d[i + 2]) > 45) n++;
		return [card.dataset.name, n]; }))`)
}
