package texttab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// text writes a table made by build.
func text(t *testing.T, build func(*texttab.Table)) string {
	t.Helper()
	var tab texttab.Table
	build(&tab)
	var b strings.Builder
	n, err := tab.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo: got %d, %v for %d bytes", n, err, b.Len())
	}
	return b.String()
}

func TestWriteTo(t *testing.T) {
	check := func(name, want string, build func(*texttab.Table)) {
		t.Helper()
		if got := text(t, build); got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
	check("empty", "", func(*texttab.Table) {})
	check("header only", "A  B\n", func(tab *texttab.Table) { tab.Header("A", "B") })
	check("aligned", "NAME   N\na      1\nlong  23\n", func(tab *texttab.Table) {
		tab.Header("NAME", "N")
		tab.Right(1)
		tab.Row("a", "1")
		tab.Row("long", "23")
	})
	check("no header", "a  b\n", func(tab *texttab.Table) { tab.Row("a", "b") })
	check("ragged rows", "A\nb  c  d\n\n   e\n", func(tab *texttab.Table) {
		tab.Header("A")
		tab.Row("b", "c", "d")
		tab.Row()
		tab.Row("", "e", "")
	})
	check("wide and combining", "日本  x\nee\u0301    y\nabcd  z\n", func(tab *texttab.Table) {
		tab.Row("日本", "x")
		tab.Row("ee\u0301", "y")
		tab.Row("abcd", "z")
	})
	check("hostile", `\x1b[2J\n  x`+"\n"+`\u202e     y`+"\n", func(tab *texttab.Table) {
		tab.Row("\x1b[2J\n", "x")
		tab.Row("\u202e", "y")
	})
	check("cut to width", "aaaaaaaaaaaaaaaaa…  12345678901234567890\nb                                      1\n",
		func(tab *texttab.Table) {
			tab.Width = 40
			tab.Right(1)
			tab.Row(strings.Repeat("a", 50), "12345678901234567890")
			tab.Row("b", "1")
		})
	check("nothing to cut", strings.Repeat("1", 20)+"  shor\n", func(tab *texttab.Table) {
		tab.Width = 10
		tab.Right(0)
		tab.Row(strings.Repeat("1", 20), "shor")
	})
}

func TestWriteToTwice(t *testing.T) {
	var tab texttab.Table
	var first, second strings.Builder
	tab.Header("H")
	tab.Row("a")
	if _, err := tab.WriteTo(&first); err != nil {
		t.Fatal(err)
	}
	tab.Row("b")
	if _, err := tab.WriteTo(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != "H\na\n" || second.String() != "H\na\nb\n" {
		t.Errorf("got %q then %q", first.String(), second.String())
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWriteToError(t *testing.T) {
	want := errors.New("pipe closed")
	var tab texttab.Table
	tab.Row("a")
	if _, err := tab.WriteTo(brokenWriter{want}); !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func TestEscape(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		if got := texttab.Escape(in); got != want {
			t.Errorf("Escape(%q): got %q, want %q", in, got, want)
		}
	}
	check("", "")
	check(`plain {a="1"} \ ~`, `plain {a="1"} \ ~`)
	check("Grüße 日本 ✓", "Grüße 日本 ✓")
	check("\x1b]0;title\a", `\x1b]0;title\a`)
	check("a\r\n\tb\x00\x7f", `a\r\n\tb\x00\x7f`)
	check("\u009b31m", `\u009b31m`)
	check("a\u202eb\u2066\u200b\ufeff\u2028", `a\u202eb\u2066\u200b\ufeff\u2028`)
	check("\xff\xc3(", `\xff\xc3(`)
	check("\ufffd", "\ufffd")
	check(`"quoted"`+"\n", `"quoted"\n`)
}

// A program reads back what was written, and a terminal has nothing to act on.
func TestWriteJSON(t *testing.T) {
	for _, text := range []string{"", "plain", "Grüße 日本 ✓ 😀", "\x1b]0;t\a\x7f", "\u009b2J\u202eb\u2066", "\\\u0085\"",
		"\U000e0001<b>\u2028"} {
		var b bytes.Buffer
		if err := texttab.WriteJSON(&b, texttab.NewObject(text, []string{text})); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q is written as %q", text, b.String())
		}
		got := map[string][]string{}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got) != 1 || !slices.Equal(got[text], []string{text}) {
			t.Errorf("%q comes back as %q, %v", text, got, err)
		}
	}
}

func TestWidth(t *testing.T) {
	check := func(in string, want int) {
		t.Helper()
		if got := texttab.Width(in); got != want {
			t.Errorf("Width(%q): got %d, want %d", in, got, want)
		}
	}
	check("", 0)
	check("abc", 3)
	check("äöü", 3)
	check("e\u0301", 1)
	check("한글", 4)
	check("ＡＢ", 4)
	check("🚀", 2)
	check("…", 1)
}

func TestTruncate(t *testing.T) {
	check := func(in string, width int, want string) {
		t.Helper()
		if got := texttab.Truncate(in, width); got != want {
			t.Errorf("Truncate(%q, %d): got %q, want %q", in, width, got, want)
		}
	}
	check("abc", 3, "abc")
	check("abcd", 3, "ab…")
	check("abcd", 1, "…")
	check("abcd", 0, "")
	check("abcd", -1, "")
	check("", 0, "")
	check("日本語", 5, "日本…")
	check("日本語", 4, "日…")
	check("e\u0301e\u0301e\u0301", 2, "e\u0301…")
}

// TestRows checks for any cells that a row is one line which holds nothing but
// printable characters, and that equal columns start at equal places.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.SliceOfN(rapid.String(), 2, 2), 1, 5).Draw(t, "cells")
		var tab texttab.Table
		tab.Width = rapid.IntRange(0, 60).Draw(t, "width")
		for _, c := range cells {
			tab.Row(append(c, "|")...)
		}
		var b strings.Builder
		if _, err := tab.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(b.String(), "\n")
		if len(lines) != len(cells)+1 || lines[len(cells)] != "" {
			t.Fatalf("got %d lines for %d rows: %q", len(lines)-1, len(cells), b.String())
		}
		for _, line := range lines[:len(cells)] {
			line = strings.TrimSuffix(line, "\n")
			if bad := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); bad >= 0 ||
				!utf8.ValidString(line) {
				t.Fatalf("line is not printable: %q", line)
			}
			if got, want := texttab.Width(line), texttab.Width(strings.TrimSuffix(lines[0], "\n")); got != want {
				t.Fatalf("the last column ends at %d and %d: %q", want, got, b.String())
			}
		}
	})
}

func FuzzTruncate(f *testing.F) {
	f.Add("plain", 3)
	f.Add("日本\x1b[0m\xff", 4)
	f.Fuzz(func(t *testing.T, s string, width int) {
		s = texttab.Escape(s)
		if texttab.Escape(s) != s {
			t.Errorf("Escape is not idempotent on %q", s)
		}
		if got := texttab.Truncate(s, width); texttab.Width(got) > max(width, 0) || !utf8.ValidString(got) {
			t.Errorf("Truncate(%q, %d) = %q takes %d columns", s, width, got, texttab.Width(got))
		}
	})
}

// table has a column for people, one for programs, and one for both.
func mixed() *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{Head: "NAME"}, {ID: "unit"}, {ID: "n", Head: "N", Right: true},
		{ID: "none", Head: "NONE"}}}
	for _, v := range []any{int64(1), 2.5, math.NaN(), true, []string{"a", "b"}, "x,y", nil} {
		t.Rows = append(t.Rows, []texttab.Cell{{Text: "a|b"}, {Value: "s"}, {Text: fmt.Sprint(v), Value: v}, {}})
	}
	return t
}

func TestShown(t *testing.T) {
	shown, left := mixed().Shown(2)
	if got := text(t, func(tab *texttab.Table) { *tab = *shown }); got != "NAME    N\na|b     1\na|b   2.5\n" ||
		left != 5 {
		t.Errorf("got\n%swith %d left", got, left)
	}
	if shown, left = mixed().Shown(0); len(shown.Rows) != 7 || left != 0 {
		t.Errorf("got %d rows, %d left", len(shown.Rows), left)
	}
}

func TestWriteMarkdown(t *testing.T) {
	check := func(tab *texttab.Table, want string) {
		t.Helper()
		var b strings.Builder
		if err := tab.WriteMarkdown(&b, texttab.Rule{Left: "---", Right: "--:"}); err != nil || b.String() != want {
			t.Errorf("got\n%s%v, want\n%s", b.String(), err, want)
		}
	}
	shown, _ := mixed().Shown(1)
	check(shown, "| NAME | N |\n|---|--:|\n| `a\\|b` | 1 |\n")
	bare := &texttab.Table{Columns: make([]texttab.Column, 2)}
	bare.Row("a", "")
	check(bare, "|  |  |\n|---|---|\n| a |  |\n")
}

func TestWriteCSV(t *testing.T) {
	var b strings.Builder
	want := "unit,n,none\ns,1,\ns,2.5,\ns,,\ns,true,\ns,\"[\"\"a\"\",\"\"b\"\"]\",\ns,\"x,y\",\ns,,\n"
	if err := mixed().WriteCSV(&b); err != nil || b.String() != want {
		t.Errorf("got\n%s%v, want\n%s", b.String(), err, want)
	}
	if err := mixed().WriteCSV(brokenWriter{io.ErrClosedPipe}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got error %v", err)
	}
}

func TestObjects(t *testing.T) {
	tab := mixed()
	tab.Rows = slices.Delete(tab.Rows, 2, 3) // JSON has no NaN
	got, err := json.Marshal(texttab.NewObject("z", tab.Objects()[:2], "a", tab.Objects()[3]))
	const want = `{"z":[{"unit":"s","n":1,"none":null},{"unit":"s","n":2.5,"none":null}],"a":{"unit":"s","n":["a","b"],` +
		`"none":null}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// pairs are labels.
type pairs []string

func (p pairs) Len() int       { return len(p) / 2 }
func (p pairs) String() string { return "{" + strings.Join(p, "=") + "}" }
func (p pairs) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := 0; i < len(p) && yield(p[i], p[i+1]); i += 2 {
		}
	}
}

// Labels are an object in JSON and text in CSV, where an empty set is nothing.
func TestLabels(t *testing.T) {
	var tab texttab.Table
	tab.Columns = []texttab.Column{{ID: "l"}}
	tab.Rows = [][]texttab.Cell{{{Value: pairs{"z", "1"}}}, {{Value: pairs{}}}}
	var b strings.Builder
	if err := tab.WriteCSV(&b); err != nil || b.String() != "l\n{z=1}\n\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
	if got, err := json.Marshal(tab.Objects()); err != nil || string(got) != `[{"l":{"z":"1"}},{"l":{}}]` {
		t.Errorf("got %s, %v", got, err)
	}
}
