// The tests are inside the package: nodes are no part of its API.
package pack

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// outline has each node of documents in a line: what decoding and messages of problems take from it.
func outline(n *yaml.Node, b *strings.Builder) {
	fmt.Fprintf(b, "%d:%d %v %v %s %q\n", n.Line, n.Column, n.Kind, n.Style, n.ShortTag(), n.Value)
	for _, c := range n.Content {
		outline(c, b)
	}
}

// differ returns how the nodes of a text differ from those of package yaml; "" when they do not, or it is left to that.
func differ(text string) string {
	documents, beyond := nodes(text)
	if beyond > 0 {
		return ""
	}
	var got, want strings.Builder
	for _, n := range documents {
		outline(n, &got)
	}
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return cmp.Diff(want.String(), got.String())
		} else if err != nil {
			return "package yaml refuses it: " + err.Error()
		}
		for _, c := range n.Content {
			outline(c, &want)
		}
	}
}

// packFiles are the embedded packs.
func packFiles(t *testing.T) map[string]string {
	names, err := filepath.Glob("../packs/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal("no packs", err)
	}
	texts := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(data)
	}
	return texts
}

// All embedded packs are read without package yaml, and as it reads them.
func TestNodesOfOurPacks(t *testing.T) {
	for name, text := range packFiles(t) {
		if _, beyond := nodes(text); beyond > 0 {
			t.Errorf("%s:%d: is not of the part of YAML that nodes.go reads: write it as in other packs", name, beyond)
		}
		if d := differ(text); d != "" {
			t.Errorf("%s: package yaml reads (-), we (+):\n%s", name, d)
		}
	}
}

// Whatever is put together of pieces of YAML, what nodes takes is what package yaml makes of it. (FuzzNew of package
// catalog has it read any bytes.)
func TestNodesOfAnyText(t *testing.T) {
	pieces := []string{"a", "b", "null", "1", "a: ", "b: ", "x.y-z: ", ":", "\n", "\n  ", "\n    ", "\n- ", "\n\n",
		"\n---\n", " ", "- ", "-", "[", "]", "{", "}", ", ", ",", "a: [", "b: {", "\"", "'", "''", "#", " #", "?", "\\",
		"\\\"", "~", "<<", "0x1", "\t", "é"}
	texts := []string{
		"a: b\n---\nc: [d, e]\n", "a:\n- b\n- c: d\n  e: 'it''s'\n- - 1\n", "a: b #\nd: \"e \n  f\\\"\"\n",
		"a: {b: c,\n d: e f\n  g}\n# h\n", "a: b\n  c\n\n  d\n", "a: b\n  # c\n  d\n", "a: b\n\n---\n\n---\nc: d\n",
		"a: [b:, c]", "a: [b:[c]]", "a: [b#c, d #e\n ]", "a:\n    b: c\n  d: e\n", "a:\n  - b\n    - c\n",
		"yes: no\nn: off\n", "a: 'b \n  c'", "a: \"b\n\n  c\"", "a: [b,\nc]", "a: b#c", "a: [b\n\n  c]",
		"a: [b\n  #c\n  d]", "a: [b, c # d\n ]", "a: [\n...\n]", "a: [b\n... c]", "a: \"b\n--- c\"", "a: b\n...\n",
		"  a: b\nc: d", "a: -1\nb: [[-1], -2.5 ]\n", "a:\n  -1\n", "a: -1-\n", "  a: b\n  c: d\n---\n e: f", "a: b\n---\n",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 40000 {
		text := []string{"", "k: ", "k:\n  "}[i%3]
		for range 1 + random.IntN(11) {
			text += pieces[random.IntN(len(pieces))]
		}
		texts = append(texts, text)
	}
	taken := 0
	for _, text := range texts {
		if d := differ(text); d != "" {
			t.Errorf("of %q package yaml reads (-), we (+):\n%s", text, d)
		}
		if _, beyond := nodes(text); beyond == 0 {
			taken++
		}
	}
	if taken < 1500 {
		t.Errorf("%d texts were taken: too few to tell", taken)
	}
}
