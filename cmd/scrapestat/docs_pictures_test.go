package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// pictured is a real vLLM at five loads.
const pictured = "../../testdata/runs/vllm-sweep"

// TestPictures holds the pictures of the documents against the program: docs/img/sweep.svg is four charts of sweep
// --format html, and the answer that docs/explain.md reads is that of explain. With -update it makes both again.
func TestPictures(t *testing.T) {
	current(t, "../../docs/img/sweep.svg", sweepPicture(t))
	const mark, end = "<!-- explain testdata/runs/vllm-sweep@rate-12 -->\n```text\n", "```\n"
	page, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(page, []byte(mark))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		t.Fatal("docs/explain.md has no answer of explain")
	}
	answer := output(t, "explain", pictured+"@rate-12")
	current(t, "../../docs/explain.md", bytes.Join([][]byte{before, []byte(mark), answer, []byte(end), after}, nil))
}

// current holds a file against what it should be, or writes it.
func current(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the program makes (%v): go test ./cmd/scrapestat -run TestPictures -update", path, err)
	}
}

// sweepPicture sets charts of the page of a sweep side by side, as one picture that needs nothing else.
func sweepPicture(t *testing.T) []byte {
	t.Helper()
	page := string(output(t, "sweep", pictured, "--format", "html"))
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
	charts := regexp.MustCompile(`(?s)<h3>([^<]*)</h3>\s*<svg (.*?)</svg>`).FindAllStringSubmatch(page, -1)
	if len(charts) < 5 || style == nil {
		t.Fatalf("%d charts on the page of a sweep", len(charts))
	}
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1260 600" font-family="system-ui, sans-serif">` +
		"\n<style>" + style[1] + "</style>\n" + `<rect width="1260" height="600" fill="Canvas"/>` + "\n")
	for k, i := range []int{0, 1, 2, 4} {
		x, y := k%2*630+10, k/2*300
		fmt.Fprintf(&b, "<g color=\"CanvasText\"><text x=\"%d\" y=\"%d\">%s</text>\n<svg x=\"%d\" y=\"%d\" width=\"610\" "+
			"height=\"250\" %s</svg></g>\n", x+60, y+22, charts[i][1], x, y+36, charts[i][2])
	}
	return []byte(b.String() + "</svg>\n")
}
