package summary_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// TestPythonLabels has Python's str() of each dict as the wanted text.
func TestPythonLabels(t *testing.T) {
	check := func(want string, pairs ...string) {
		t.Helper()
		if got := summary.PythonLabels(labels(pairs...)); got != want {
			t.Errorf("%q: got %s, want %s", pairs, got, want)
		}
	}
	check("")
	check("{'a': '1'}", "a", "1")
	check("{'a': '', 'b': '2'}", "b", "2", "a", "")
	check(`{'a': "it's"}`, "a", "it's")
	check(`{'a': 'say "x"'}`, "a", `say "x"`)
	check(`{'a': 'it\'s "x"'}`, "a", `it's "x"`)
	check(`{'a': 'C:\\x'}`, "a", `C:\x`)
	check(`{'a': '\n\r\t\x00\x1b\x7f'}`, "a", "\n\r\t\x00\x1b\x7f")
	check(`{'a': 'é漢😀'}`, "a", "é漢😀")
	check(`{'a': '\x80\xa0\xad'}`, "a", "\u0080\u00a0\u00ad")
	check(`{'a': '\u200b\u2028\ufeff\U000e0001'}`, "a", "\u200b\u2028\ufeff\U000e0001")
	check("{'a': '\ufffd'}", "a", "\xff")
}

func labels(pairs ...string) metric.Labels {
	var list []metric.Label
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, metric.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return metric.NewLabels(list...)
}

func checkPython(t interface{ Fatalf(string, ...any) }, s string) {
	got := summary.PythonLabels(labels("a", s))
	body, ok := strings.CutPrefix(got, "{'a': ")
	body, ok2 := strings.CutSuffix(body, "}")
	if !ok || !ok2 || len(body) < 2 || body[0] != body[len(body)-1] {
		t.Fatalf("%q is printed as %s", s, got)
	}
	back := unquotePython(body[1 : len(body)-1])
	if want := strings.ToValidUTF8(strings.Map(func(r rune) rune { return r }, s), "\ufffd"); back != want {
		t.Fatalf("%q is printed as %s, which reads back as %q", s, got, back)
	}
	for _, r := range body {
		if !unicode.IsPrint(r) {
			t.Fatalf("%q is printed with %U", s, r)
		}
	}
	if strings.ContainsRune(body[1:len(body)-1], '"') && body[0] == '"' {
		t.Fatalf("%q: a double quote inside double quotes: %s", s, got)
	}
}

// unquotePython evaluates the escapes of a Python string literal.
func unquotePython(s string) string {
	var b strings.Builder
	for s != "" {
		if s[0] != '\\' {
			r, n := utf8.DecodeRuneInString(s)
			b.WriteRune(r)
			s = s[n:]
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
		if digits == 0 {
			c := s[1]
			if i := strings.IndexByte("nrt", c); i >= 0 {
				c = "\n\r\t"[i]
			}
			b.WriteByte(c)
			s = s[2:]
			continue
		}
		r := rune(0)
		for _, c := range s[2 : 2+digits] {
			r = r<<4 | rune(strings.IndexRune("0123456789abcdef", c))
		}
		b.WriteRune(r)
		s = s[2+digits:]
	}
	return b.String()
}

func TestPythonLabelsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkPython(t, rapid.String().Draw(t, "s")) })
}

func FuzzPythonLabels(f *testing.F) {
	for _, s := range []string{"", "it's", `"'\`, "\u2028é\x00", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkPython(t, s) })
}
