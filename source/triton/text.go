package triton

import (
	"net/http"
	"strings"
)

// maxText bounds the text of an error.
const maxText = 400

// censor replaces what no message may show: the values of the headers and the userinfo that are sent.
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
