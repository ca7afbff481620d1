package browser

import (
	"image"
	"path/filepath"
	"testing"
)

// TestRequestsOverSeries: what the clients saw has pictures of its own, and lies
// over those of the server when asked for.
func TestRequestsOverSeries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run(t, "demo", "--requests", "--duration", "5s", "-o", dir)
	path := filepath.Join(dir, "report.html")
	run(t, "report", dir, "-o", path, "--quiet")
	b := browse(t)
	b.open("file://" + path)
	b.drawAll()
	ink := b.inked()
	for _, name := range []string{"requests in flight", "requests issued", "time to first token", "request latency"} {
		if n, drawn := ink[name]; !drawn || n < 40 {
			t.Errorf("the picture %q of the clients has %d pixels of colour (drawn: %v), want some; there are %v", name, n,
				drawn, ink)
		}
	}
	b.shot("clients", true)
	const running = `[...document.querySelectorAll(".card")].find((c) => c.dataset.name === "vllm:num_requests_running")`
	over := func(name string) (bool, image.Image) {
		b.size(1400, 1000)
		eval[any](b, running+`.scrollIntoView({block: "center", behavior: "instant"})`)
		b.frames()
		return eval[bool](b, running+`.textContent.includes("in flight")`), b.shot(name, false)
	}
	is, before := over("overlay-off")
	if is {
		t.Error("the clients lie over a series that nobody asked them over")
	}
	b.click("#overlay")
	is, after := over("overlay-on")
	if !is {
		t.Error("the legend of a series does not name the clients that lie over it")
	}
	if changed(before, after) == 0 {
		t.Error("asking for the clients changes no pixel")
	}
	b.quiet("file://" + path)
}
