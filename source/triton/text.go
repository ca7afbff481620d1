package triton

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes text from a server fit for messages: at most n bytes, valid UTF-8,
// and nothing that a terminal would act upon.
func clean(s string, n int) string {
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
	return s[:cut] + "…"
}

// maxText bounds the text of an error.
const maxText = 400

// censor replaces what no message may show: the values of the headers and the
// userinfo that are sent.
func censor(header http.Header, a *address) *strings.Replacer {
	var pairs []string
	add := func(s string) {
		if len(s) >= 4 {
			pairs = append(pairs, s, "xxxxx")
		}
	}
	for _, values := range header {
		for _, v := range values {
			add(v)
			if _, token, ok := strings.Cut(v, " "); ok {
				add(token)
			}
		}
	}
	if a.user != nil {
		password, _ := a.user.Password()
		add(password)
		add(a.user.Username())
	}
	return strings.NewReplacer(pairs...)
}

// redact takes the secrets of an address and its options out of a text.
func redact(o *Options, secrets *strings.Replacer, text string) string {
	if o.Redact != nil {
		text = o.Redact(text)
	}
	return secrets.Replace(text)
}
