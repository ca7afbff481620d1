package browser

import (
	"fmt"
	"path/filepath"
	"testing"
)

// screen is how a page is looked at.
type screen struct {
	name, scheme  string
	width, height int
	print         bool
}

// screens are a desk, the same in the dark, a phone, and a sheet of A4.
var screens = []screen{{"1280", "light", 1280, 800, false}, {"1280-dark", "dark", 1280, 800, false},
	{"375", "light", 375, 812, false}, {"print", "light", 794, 1123, true}}

// look shows an open page on a screen and keeps its picture.
func (b *tab) look(page string, s screen) {
	b.t.Helper()
	b.size(s.width, s.height)
	media := ""
	if s.print {
		media = "print"
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []map[string]string{
		{"name": "prefers-color-scheme", "value": s.scheme}}})
	if eval[any](b, `void window.dispatchEvent(new Event("afterprint"))`); s.print {
		eval[any](b, `void window.dispatchEvent(new Event("beforeprint"))`)
	}
	b.until(`[...document.querySelectorAll(".card .plot")].every((p) => !p.clientWidth || p.querySelector(".u-wrap") && ` +
		`Math.abs(p.querySelector(".u-wrap").clientWidth - p.clientWidth) < 3)`)
	b.frames()
	b.shot("first-"+page+"-"+s.name, false)
}

// cut are the texts of a page that are wider than what holds them.
const cut = `[...document.querySelectorAll(".answer *, .verdictline, .chip, .compared td, .compared th, .card .ct")].filter(` +
	`(e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline")` +
	`.map((e) => e.textContent).join("|")`

// wide are the elements that reach out of the window, without those that scroll by themselves.
const wide = `[...document.querySelectorAll("main *, header *")].filter((e) => e.getBoundingClientRect().right > ` +
	`innerWidth + 1 && !e.closest(".scroll, nav, .pipescroll")).slice(0, 5).map((e) => e.tagName + "." + ` +
	`e.className + " " + e.textContent.slice(0, 60)).join("|")`

// TestFirstScreen: the answers of a report stand on the first screen of a desk and of a phone, nothing is wider than
// the window or the sheet, a page takes at most 6,000 px, and a fleet of a hundred at most three times the elements of
// one of twelve.
func TestFirstScreen(t *testing.T) {
	dir := t.TempDir()
	simulated := func(name string, args ...string) []string {
		to := filepath.Join(dir, name)
		run(t, append(append([]string{"simulate"}, args...), "--record", to, "--duration", "30s")...)
		return []string{to}
	}
	fleet := func(n int) []string {
		var args []string
		for i := range n {
			args = append(args, fmt.Sprintf("t%02d=vllm,rate=%d", i, 1+i%4))
		}
		return simulated(fmt.Sprint("fleet-", n), args...)
	}
	pages := map[string][]string{"real-vllm": {"../../testdata/runs/vllm-bench-rate4"},
		"pipeline": {"../../testdata/runs/classes-omni"}, "fleet-12": fleet(12), "fleet-100": fleet(100),
		"pair": {"before=" + simulated("before", "vllm", "--rate", "8")[0],
			"after=" + simulated("after", "s=vllm,rate=8,slots=6")[0]}}
	for _, p := range profiles {
		pages[p.name] = simulated(p.name, p.name, "--rate", "12")
	}
	b := browse(t)
	elements := map[string]int{}
	for name, runs := range pages {
		page := filepath.Join(dir, name+".html")
		run(t, append(append([]string{"report"}, runs...), "-o", page, "--quiet")...)
		b.open("file://" + page)
		b.until(`document.querySelectorAll(".card").length > 1`)
		elements[name] = eval[int](b, `document.querySelectorAll("*").length`)
		for _, s := range screens {
			b.look(name, s)
			if n := eval[int](b, `[...document.querySelectorAll(".answer")].filter((e) => `+
				`e.getBoundingClientRect().bottom <= innerHeight).length`); n < least(name, s.name) {
				t.Errorf("%s on %s: %d answers on the first screen", name, s.name, n)
			}
			if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s on %s: the page is %d px too wide: %s", name, s.name, over, eval[string](b, wide))
			}
			if got := eval[string](b, cut); got != "" {
				t.Errorf("%s on %s: cut off: %s", name, s.name, got)
			}
			height := eval[int](b, `document.documentElement.scrollHeight`)
			if t.Logf("%s on %s: %d px", name, s.name, height); s.name == "1280" && height > 6000 {
				t.Errorf("%s: the page is %d px high", name, height)
			}
		}
	}
	if elements["fleet-100"] > 3*elements["fleet-12"] {
		t.Errorf("a fleet of 100 has %d elements, one of 12 %d", elements["fleet-100"], elements["fleet-12"])
	}
}

// least is how many answers the first screen of a page has at least.
func least(page, screen string) int {
	switch {
	case page == "triton" || page == "torchserve":
		return 3 // columns of a table: these servers tell no more
	case page == "pair" && screen == "375":
		return 4 // each of two runs
	}
	return 6
}
