package texttab_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// outside is what of a Markdown text is not code.
func outside(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '`')
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		rest := strings.TrimLeft(s[i:], "`")
		ticks := len(s) - i - len(rest)
		end := 0 // of the code: a run of as many backticks
		for {
			j := strings.IndexByte(rest[end:], '`')
			if j < 0 {
				return b.String() + s[i:] // not closed: no code
			}
			end += j
			run := len(rest[end:]) - len(strings.TrimLeft(rest[end:], "`"))
			if end += run; run == ticks {
				break
			}
		}
		s = rest[end:]
	}
}

func TestMarkdown(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		if got := texttab.Markdown(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	check("", "")
	check("+5.2 % (n=6), p=0.01", "+5.2 % (n=6), p=0.01")
	check("note: a_b[0]", `note: a\_b\[0\]`)
	check("vllm:e2e", "`vllm:e2e`")
	check("http://evil", "`http://evil`")
	check("see www.evil.example", "`see www.evil.example`")
	check("@all", "`@all`")
	check("a|b", "`a\\|b`")
	check("<b>", "`<b>`")
	check("a`b", "``a`b``")
	check("`", "`` ` ``")
	check("a\n# b", "`a\\n# b`")
}

// FuzzMarkdown: no text makes markup, a link, a mention, or a cell of its own.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"plain", "`a``b`", "|", `\|`, "\\", "<script>", "@x #1 a@b.example",
		"https://h www.h WWW.h", "*_~[]()!", "a\r\nb", "\u202e\xff", ":smile:", "&amp;", "` x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := texttab.Markdown(s)
		rest := outside(got)
		plain := strings.NewReplacer(`\[`, "", `\]`, "", `\_`, "").Replace(rest)
		if strings.ContainsAny(plain, "<>&@#*~|`[]_\\!{}$^\n\r") || strings.Contains(plain, "://") ||
			strings.Contains(strings.ToLower(plain), "www.") {
			t.Errorf("%q: %q has markup", s, got)
		}
		if strings.Count(got, "|") != strings.Count(got, `\|`) || strings.ContainsAny(got, "\n\r\x1b") {
			t.Errorf("%q: %q breaks its cell", s, got)
		}
	})
}
