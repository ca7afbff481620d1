package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// What a page shows of an output is compared by its shape: numbers, with their
// units, and widths of columns may differ, words and the order of lines may not.
var (
	shapeNumber = regexp.MustCompile(`[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?`)
	shapeUnit   = regexp.MustCompile(`\b0 ?(?:ns|µs|us|ms|s|min|m|h|B|kB|KB|MB|GB|KiB|MiB|GiB)\b`)
	shapeTime   = regexp.MustCompile(`\b(?:\d+(?:\.\d+)?(?:h|ms|m|s|µs|ns))+\b`)
	shapeTrend  = regexp.MustCompile(`[▁▂▃▄▅▆▇█]+(?: *[▁▂▃▄▅▆▇█]+)*`)
	shapeFlags  = regexp.MustCompile(`\] [dof]{1,3}\b`) // of an estimate
	shapeSpace  = regexp.MustCompile(`[ \t]+`)
	shapeRule   = regexp.MustCompile(`-{3,}`)
)

func shapeOf(line string) string {
	line = shapeTime.ReplaceAllString(line, "0 u")
	line = shapeNumber.ReplaceAllString(line, "0")
	line = shapeUnit.ReplaceAllString(line, "0 u")
	line = shapeTrend.ReplaceAllString(line, "▁")
	line = shapeFlags.ReplaceAllString(line, "]")
	line = shapeRule.ReplaceAllString(line, "---")
	return strings.TrimSpace(shapeSpace.ReplaceAllString(line, " "))
}

// sameShape says where an output is not what a page shows of it. A shown line of
// ... stands for any lines, a line that ends in it was cut there.
func sameShape(shown, printed string) error {
	want, got := shapeLines(shown), shapeLines(printed)
	at := 0
	for i := 0; i < len(want); i++ {
		if want[i] != "..." {
			if at >= len(got) || !shapeMatches(want[i], got[at]) {
				return fmt.Errorf("line %d is shown as\n\t%s\nand printed as\n\t%s", i+1, want[i], lineAt(got, at))
			}
			at++
			continue
		}
		if i++; i == len(want) {
			return nil
		}
		for at < len(got) && !shapeMatches(want[i], got[at]) {
			at++
		}
		if at == len(got) {
			return fmt.Errorf("no line is printed as the one that is shown:\n\t%s", want[i])
		}
		at++
	}
	if at < len(got) {
		return fmt.Errorf("more is printed than is shown, first\n\t%s", got[at])
	}
	return nil
}

// shapeMatches compares one line; one that is shown with ... at its end was cut.
func shapeMatches(shown, printed string) bool {
	if begin, cut := strings.CutSuffix(shown, " ..."); cut {
		return strings.HasPrefix(printed, begin)
	}
	return shown == printed
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

func shapeLines(text string) []string {
	text = strings.Trim(text, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = shapeOf(lines[i])
	}
	return lines
}

// TestShape: an output whose form changes is found out, one whose numbers change
// is not.
func TestShape(t *testing.T) {
	check := func(shown, printed string, same bool) {
		t.Helper()
		if err := sameShape(shown, printed); (err == nil) != same {
			t.Errorf("%q and %q: %v", shown, printed, err)
		}
	}
	check("ttft_s  678  27.1 ms  24.2 ms [20 ms, 38 ms]", "ttft_s  1,201   1.02 s 1 s [500 ms, 2.5 s] f\n", true)
	check("took 1m5s", "took 2.5s", true)
	check("trend ▁▂▃ ▄", "trend ███", true)
	check("a 1\nb 2", "a 2\nb 3", true)
	check("a 1\n...\nc 2", "a 2\nb 3\nc 3", true)
	check("a 1\n...", "a 2\nb 3\nc 3", true)
	check("...\nc 2", "a 2\nb 3\nc 3", true)
	check("a 1 ...", "a 2 long text", true)
	check("a 1 ...", "b 2 long text", false)
	check("a 1", "a -", false)
	check("a 1", "aa 1", false)
	check("a 1", "a 1\nb 1", false)
	check("a 1\nb 1", "a 1", false)
	check("b 1\na 1", "a 1\nb 1", false)
	check("a 1\n...\nd 2", "a 2\nb 3\nc 3", false)
	check("COUNT  AVG", "COUNT  MEAN", false)
	check("a 1 requests/s", "a 1 tokens/s", false)
}
