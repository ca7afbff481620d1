package promstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/prompb"

	"github.com/scrapestat/scrapestat/metric"
)

// CheckSelector refuses what is no series selector such as {job="vllm"}.
func CheckSelector(selector string) error {
	_, err := parseSelector(selector)
	return err
}

// parseSelector reads a PromQL series selector: a name, matchers in braces, or
// both. At least one matcher must not match the empty value.
func parseSelector(selector string) ([]*prompb.LabelMatcher, error) {
	p := &selectorText{rest: selector}
	out, ok := p.selector()
	p.skip()
	if !ok || p.rest != "" {
		return nil, fmt.Errorf("selector %q: want a series selector such as {job=\"vllm\"}, at %q", selector,
			metric.Clean(p.rest, 40))
	}
	for _, m := range out {
		if m.Type == prompb.LabelMatcher_EQ && m.Value != "" || m.Type == prompb.LabelMatcher_NEQ && m.Value == "" ||
			m.Type == prompb.LabelMatcher_RE && m.Value != "" && m.Value != ".*" {
			return out, nil
		}
	}
	return nil, fmt.Errorf("selector %q matches every series: name a label that must have a value", selector)
}

type selectorText struct{ rest string }

func (p *selectorText) skip() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *selectorText) take(text string) bool {
	p.skip()
	rest, ok := strings.CutPrefix(p.rest, text)
	p.rest = rest
	return ok
}

// word reads a bare name.
func (p *selectorText) word() string {
	p.skip()
	n := strings.IndexFunc(p.rest, func(r rune) bool {
		return !(r == '_' || r == ':' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
	if n < 0 {
		n = len(p.rest)
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	return w
}

// quoted reads a string of PromQL: in double, single or back quotes.
func (p *selectorText) quoted() (string, bool) {
	p.skip()
	if p.rest == "" || !strings.ContainsRune("\"'`", rune(p.rest[0])) {
		return "", false
	}
	quote := p.rest[0]
	for i := 1; i < len(p.rest); i++ {
		switch {
		case p.rest[i] == '\\' && quote != '`':
			i++
		case p.rest[i] == quote:
			body := p.rest[1:i]
			p.rest = p.rest[i+1:]
			return unquote(body, quote)
		}
	}
	return "", false
}

func unquote(body string, quote byte) (string, bool) {
	if quote == '`' {
		return body, true
	}
	var b strings.Builder
	for body != "" {
		r, multibyte, rest, err := strconv.UnquoteChar(body, quote)
		if err != nil {
			return "", false
		}
		if multibyte || r < 0x80 {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		body = rest
	}
	return b.String(), true
}

func (p *selectorText) selector() (out []*prompb.LabelMatcher, ok bool) {
	add := func(t prompb.LabelMatcher_Type, name, value string) {
		out = append(out, &prompb.LabelMatcher{Type: t, Name: name, Value: value})
	}
	if name := p.word(); name != "" {
		add(prompb.LabelMatcher_EQ, "__name__", name)
	}
	if !p.take("{") {
		return out, len(out) > 0
	}
	for !p.take("}") {
		name, quoted := p.quoted()
		if !quoted {
			name = p.word()
		}
		if name == "" {
			return nil, false
		}
		t, isMatcher := p.operator()
		switch {
		case isMatcher:
			value, ok := p.quoted()
			if !ok {
				return nil, false
			}
			add(t, name, value)
		case quoted: // {"utf8.name"}
			add(prompb.LabelMatcher_EQ, "__name__", name)
		default:
			return nil, false
		}
		if !p.take(",") {
			return out, p.take("}")
		}
	}
	return out, true
}

func (p *selectorText) operator() (prompb.LabelMatcher_Type, bool) {
	for _, x := range []struct {
		text string
		t    prompb.LabelMatcher_Type
	}{
		{"=~", prompb.LabelMatcher_RE}, {"!~", prompb.LabelMatcher_NRE}, {"!=", prompb.LabelMatcher_NEQ},
		{"=", prompb.LabelMatcher_EQ},
	} {
		if p.take(x.text) {
			return x.t, true
		}
	}
	return 0, false
}
