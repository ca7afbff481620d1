package interop_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the outputs in docs/cookbook")

// cookbook has pages whose blocks of sh, sql and python are run one after the
// other in a folder of their own. A block of text right after one is what it
// prints.
const cookbook = "../../docs/cookbook"

var (
	recipeBlock  = regexp.MustCompile("(?ms)^```(sh|sql|python)\n(.*?)^```\n")
	recipeOutput = regexp.MustCompile("(?ms)\\A\n?```text\n(.*?)^```\n")
)

// recipes are the blocks of a page: language and code.
type recipes struct {
	Folder string      `json:"folder"`
	Blocks [][2]string `json:"blocks"`
}

// TestCookbook holds the pages of the cookbook against what their blocks print.
func TestCookbook(t *testing.T) {
	interpreter := python(t)
	pages, err := filepath.Glob(filepath.Join(cookbook, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no page in %s: %v", cookbook, err)
	}
	var texts [][]byte
	var in []recipes
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		r := recipes{Folder: t.TempDir(), Blocks: [][2]string{}}
		for _, b := range recipeBlock.FindAllSubmatch(text, -1) {
			r.Blocks = append(r.Blocks, [2]string{string(b[1]), string(b[2])})
		}
		texts, in = append(texts, text), append(in, r)
	}
	for i, out := range cook(t, interpreter, tool(t), in) {
		t.Run(filepath.Base(pages[i]), func(t *testing.T) {
			if out.Error != "" || len(out.Outputs) != len(in[i].Blocks) {
				t.Fatalf("%d of %d blocks ran\n%s", len(out.Outputs), len(in[i].Blocks), out.Error)
			}
			got := dish(texts[i], in[i].Blocks, out.Outputs)
			if bytes.Equal(got, texts[i]) {
				return
			}
			if !*update {
				t.Fatalf("%s is not what its blocks print: %s\nlook at the change, then: go test -run TestCookbook -update",
					pages[i], firstDifference(string(texts[i]), string(got)))
			}
			if err := os.WriteFile(pages[i], got, 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// tool builds the command and returns the folder it is in.
func tool(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./cmd/scrapestat")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build scrapestat: %v\n%s", err, out)
	}
	return dir
}

// cooked is what the blocks of a page printed, up to one that failed.
type cooked struct {
	Outputs []string `json:"outputs"`
	Error   string   `json:"error"`
}

// cook has one interpreter run the blocks of all pages, as to import the packages
// takes longer than most of them.
func cook(t *testing.T, interpreter, bin string, pages []recipes) []cooked {
	t.Helper()
	in, err := json.Marshal(pages)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, filepath.Join("python", "cookbook.py"))
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1",
		"TZ=UTC", "COLUMNS=140")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var result []cooked
	if err == nil {
		err = json.Unmarshal(out, &result)
	}
	if err != nil || len(result) != len(pages) {
		t.Fatalf("%v: %d of %d pages\n%s", err, len(result), len(pages), stderr.String())
	}
	return result
}

// dish is a page with what its blocks print: of sh where it shows that, of others
// always.
func dish(page []byte, blocks [][2]string, outputs []string) []byte {
	var out bytes.Buffer
	end := 0
	for i, b := range recipeBlock.FindAllIndex(page, -1) {
		out.Write(page[end:b[1]])
		end = b[1]
		shown := recipeOutput.FindIndex(page[end:])
		if shown == nil {
			if blocks[i][0] == "sh" {
				continue
			}
			shown = []int{0, 0}
		}
		end += shown[1]
		out.WriteString("\n```text\n" + plain(outputs[i]) + "```\n")
	}
	out.Write(page[end:])
	return out.Bytes()
}

// plain is an output without the blanks that end its lines, and one newline at
// its end.
func plain(output string) string {
	lines := strings.Split(strings.TrimRight(output, " \n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return "\n  page: " + a[i] + "\n  now:  " + strings.Join(b[min(i, len(b)):min(i+1, len(b))], "")
		}
	}
	return "\n  now longer"
}
