package tachometer

import (
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// ParseName reads a metric_name: name{k="v",...}, or the name alone. Labels that a parser before tore apart are
// refused.
func ParseName(text string) (name string, labels []metric.Label, ok bool) {
	name, rest, braces := strings.Cut(text, "{")
	if name == "" || strings.ContainsAny(name, "}\" ") {
		return "", nil, false
	}
	if !braces {
		return name, nil, true
	}
	for rest != "}" {
		key, after, found := strings.Cut(rest, `="`)
		value, end, closed := quoted(after)
		if !found || !closed || key == "" || strings.ContainsAny(key, `",{}`) {
			return "", nil, false
		}
		for _, l := range labels {
			if l.Name == key {
				return "", nil, false
			}
		}
		labels = append(labels, metric.Label{Name: key, Value: value})
		rest = end
		if more, comma := strings.CutPrefix(rest, ","); comma {
			rest = more
		} else if rest != "}" {
			return "", nil, false
		}
	}
	return name, labels, true
}

// quoted reads a value up to its quote, and returns what comes after that.
func quoted(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], true
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
