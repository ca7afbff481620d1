package metric_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

func TestClean(t *testing.T) {
	check := func(s string, n int, want string) {
		t.Helper()
		if got := metric.Clean(s, n); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
	check("plain text", 20, "plain text")
	check("a\nb\x1b[31m\u202e\xff", 20, "a?b?[31m??")
	check("größer", 20, "größer")
	check("größer", 7, "grö…")
	check("größer", 6, "gr…")
	check(strings.Repeat("x", 30), 10, "xxxxxxx…")
	check("long", 2, "…")
}

// TestWithoutURL: what net/http says of an address is taken off, also inside another error.
func TestWithoutURL(t *testing.T) {
	why := errors.New("connection refused")
	fetch := &url.Error{Op: "Get", URL: "http://u:secret@h", Err: why}
	for _, err := range []error{why, fetch, fmt.Errorf("poll: %w", fetch)} {
		if got := metric.WithoutURL(err); got != why {
			t.Errorf("%v: got %v", err, got)
		}
	}
}

// FuzzClean: whatever it is given, what comes out can be printed and is short.
func FuzzClean(f *testing.F) {
	f.Add("\x1b]0;x\a\u2028", 5)
	f.Add("日本語", 4)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < len("…") || n > 1<<16 {
			return
		}
		got := metric.Clean(s, n)
		if len(got) > n || !utf8.ValidString(got) || strings.ContainsFunc(got,
			func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q in %d bytes: %q", s, n, got)
		}
	})
}
