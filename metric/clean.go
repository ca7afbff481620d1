package metric

import (
	"errors"
	"math"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text of others fit for a message such as [Snapshot.Err]: at most n bytes, valid UTF-8, and
// nothing that a terminal would act upon. It is for messages, not for data: labels are kept as they are.
func Clean(s string, n int) string {
	if len(s) > 4*n {
		s = s[:4*n]
	}
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= n {
		return s
	}
	cut := n - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:max(cut, 0)] + "…"
}

// WithoutURL takes the address off an error of net/http, which may hold a secret.
func WithoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Finite reports whether v is a number that is not infinite.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
