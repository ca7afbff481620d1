package sql_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/export/lake/sql"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
)

// TestStatement checks that every statistic is written in every dialect, and what is refused.
func TestStatement(t *testing.T) {
	for _, d := range sql.Dialects() {
		for _, s := range sql.Statistics() {
			text, err := sql.Statement(sql.Query{Dialect: d, Statistic: s, Lake: "/data/l", SliceNS: 1e9})
			if err != nil || strings.ContainsAny(text, ";") || strings.Contains(text, "<no value>") ||
				strings.Count(text, "(") != strings.Count(text, ")") {
				t.Errorf("%s %s: %v\n%s", d, s, err, text)
			}
		}
	}
	for name, q := range map[string]sql.Query{
		"dialect": {Dialect: "oracle", Statistic: "totals", Lake: "l"}, "statistic": {Dialect: "spark", Lake: "l"},
		"lake": {Dialect: "spark", Statistic: "totals"}, "pattern": {Dialect: "spark", Statistic: "totals", Lake: "l/*"},
		"slices": {Dialect: "spark", Statistic: "slices", Lake: "l"},
		"by":     {Dialect: "spark", Statistic: "gauges", Lake: "l", By: []string{"x"}},
		"zero":   {Dialect: "spark", Statistic: "totals", Lake: "l", Metric: "a\x00b"},
	} {
		if text, err := sql.Statement(q); err == nil {
			t.Errorf("%s: not refused:\n%s", name, text)
		}
	}
}

// outside returns what of a statement is not in literals, as the parser of its engine finds them.
func outside(text string, backslash, ticks bool) (out string, closed bool) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && (c == '\'' || ticks && c == '`'):
			quote = c
			b.WriteString("?")
		case quote == 0:
			b.WriteByte(c)
		case quote == '\'' && backslash && c == '\\':
			i++
		case c == quote && i+1 < len(text) && text[i+1] == quote:
			i++
		case c == quote:
			quote = 0
		}
	}
	return b.String(), quote == 0
}

// FuzzLiterals checks that no name leaves its literal: outside of literals a statement is always the same.
func FuzzLiterals(f *testing.F) {
	for _, s := range []string{"a", "it's", `\`, `\'`, "'; drop table x; --", "`", "``", "a\nb", `\\'`, "''",
		"é", "\xff"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, name, path string) {
		defer fuzzbound.Check(t)()
		for _, d := range sql.Dialects() {
			write := func(name, path string) (string, error) {
				text, err := sql.Statement(sql.Query{Dialect: d, Statistic: "quantiles", Lake: "/" + path + "/l",
					Run:    "x" + name,
					Metric: "x" + name, Phase: "x" + name, By: []string{"x" + name}})
				if err != nil {
					return "", err
				}
				out, closed := outside(text, d != "duckdb", d == "spark")
				if !closed {
					t.Fatalf("%s: a literal does not end:\n%s", d, text)
				}
				return out, nil
			}
			want, _ := write("a", "a")
			if got, err := write(name, path); err == nil && got != want {
				t.Fatalf("%s: %q, %q leave their literals:\n%s\nwant\n%s", d, name, path, got, want)
			}
		}
	})
}
