package browser

import (
	"fmt"
	"path/filepath"
	"testing"
)

// TestFirstScreen: the six answers of a report stand on the first screen of a desk and of a phone, nothing is wider than
// the window, and a fleet of twelve takes at most 6,000 px, one of a hundred at most three times the elements.
func TestFirstScreen(t *testing.T) {
	dir := t.TempDir()
	fleet := func(n int) string {
		args := []string{"simulate"}
		for i := range n {
			args = append(args, fmt.Sprintf("t%02d=vllm,rate=%d", i, 1+i%4))
		}
		run(t, append(args, "--record", filepath.Join(dir, fmt.Sprint(n)), "--duration", "30s")...)
		return filepath.Join(dir, fmt.Sprint(n))
	}
	pages := map[string]string{"vllm": "../../testdata/runs/vllm-bench-rate4", "omni": "../../testdata/runs/classes-omni",
		"fleet-12": fleet(12), "fleet-100": fleet(100)}
	b := browse(t)
	elements := map[string]int{}
	for name, recording := range pages {
		page := filepath.Join(dir, name+".html")
		run(t, "report", recording, "-o", page, "--quiet")
		for _, size := range [][2]int{{1280, 800}, {375, 812}} {
			b.size(size[0], size[1])
			b.open("file://" + page)
			b.until(`document.querySelectorAll(".card").length > 1`)
			for _, scheme := range []string{"light", "dark"} {
				b.prefers(scheme)
				b.shot(fmt.Sprintf("first-%s-%d-%s", name, size[0], scheme), false)
			}
			if n := eval[int](b, `[...document.querySelectorAll(".answer")].filter((e) => `+
				`e.getBoundingClientRect().bottom <= innerHeight).length`); n < 5 || name != "omni" && n < 6 {
				t.Errorf("%s at %d x %d: %d answers on the first screen", name, size[0], size[1], n)
			}
			if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s at %d x %d: the page is %d px too wide", name, size[0], size[1], over)
			}
			if cut := eval[string](b, `[...document.querySelectorAll(".answer *, .verdictline, .chip")].filter((e) => `+
				`e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0).map((e) => e.textContent).join("|")`); cut != "" {
				t.Errorf("%s at %d x %d: cut off: %s", name, size[0], size[1], cut)
			}
			height := eval[int](b, `document.documentElement.scrollHeight`)
			if t.Logf("%s at %d x %d: %d px", name, size[0], size[1], height); size[0] == 1280 && height > 6000 {
				t.Errorf("%s: the page is %d px high", name, height)
			}
		}
		elements[name] = eval[int](b, `document.querySelectorAll("*").length`)
	}
	if elements["fleet-100"] > 3*elements["fleet-12"] {
		t.Errorf("a fleet of 100 has %d elements, one of 12 %d", elements["fleet-100"], elements["fleet-12"])
	}
}
