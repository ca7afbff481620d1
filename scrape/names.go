package scrape

import (
	"bytes"
	"net/http"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// nameFilter asks a server for the kept families only, with name[]= in the query as Python's prometheus_client has it:
// such a server makes the text of a page at each request, and of few families that costs it a thirtieth.
//
// Most servers ignore the query, some refuse it, and some, with values from many processes, answer nothing at
// all. So a full answer comes first, and the first filtered one is compared with it: it must have no series of
// another name, and none less of those that are kept. Otherwise the same poll asks again, for all, and the
// target is never asked that way again. When kept series vanish later on, a full answer decides again.
type nameFilter struct {
	query string // "" asks for all, always
	names map[string]bool
	state filterState
}

type filterState uint8

const (
	filterWaits filterState = iota // for a full answer to compare with
	filterTrial                    // the next answer is compared
	filterOn
)

const (
	maxKeptNames  = 64
	maxNamesQuery = 4000 // gunicorn refuses request lines above 4094 bytes
)

// suffixes are what the samples of a family may be called after it.
func suffixes() []string {
	return []string{"", "_total", "_created", "_bucket", "_sum", "_count", "_gsum", "_gcount", "_info"}
}

// newNameFilter returns a filter for the families that keep names one by one. It
// asks for all when keep says more than a list of whole names.
func newNameFilter(keep *regexp.Regexp) *nameFilter {
	f := &nameFilter{names: map[string]bool{}}
	if keep == nil {
		return f
	}
	parsed, err := syntax.Parse(keep.String(), syntax.Perl)
	if err != nil {
		return f
	}
	families, ok := wholeNames(parsed.Simplify())
	if !ok {
		return f
	}
	var query []string
	for _, family := range families {
		// A counter may be meant by the name of its samples.
		for _, base := range []string{family, strings.TrimSuffix(family, "_total")} {
			for _, s := range suffixes() {
				if name := base + s; name != "" && !f.names[name] {
					f.names[name] = true
					query = append(query, "name%5B%5D="+url.QueryEscape(name))
				}
			}
		}
	}
	if q := strings.Join(query, "&"); len(q) <= maxNamesQuery {
		f.query = q
	}
	return f
}

// wholeNames lists the texts that a pattern matches, when it is bound to both ends of the text and there are few.
func wholeNames(x *syntax.Regexp) ([]string, bool) {
	for x.Op == syntax.OpCapture {
		x = x.Sub[0]
	}
	if x.Op == syntax.OpAlternate { // ^a$|^b$
		return union(x.Sub, wholeNames)
	}
	if x.Op != syntax.OpConcat || len(x.Sub) < 3 || x.Sub[0].Op != syntax.OpBeginText ||
		x.Sub[len(x.Sub)-1].Op != syntax.OpEndText {
		return nil, false
	}
	return product(x.Sub[1 : len(x.Sub)-1])
}

// spellings lists what a part of a pattern matches.
func spellings(x *syntax.Regexp) ([]string, bool) {
	if x.Flags&syntax.FoldCase != 0 {
		return nil, false
	}
	switch x.Op {
	case syntax.OpLiteral:
		return []string{string(x.Rune)}, true
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpCapture:
		return spellings(x.Sub[0])
	case syntax.OpConcat:
		return product(x.Sub)
	case syntax.OpAlternate:
		return union(x.Sub, spellings)
	case syntax.OpQuest:
		list, ok := spellings(x.Sub[0])
		return append(list, ""), ok && len(list) < maxKeptNames
	case syntax.OpCharClass:
		var list []string
		for i := 0; i+1 < len(x.Rune); i += 2 {
			if x.Rune[i+1]-x.Rune[i] >= maxKeptNames {
				return nil, false
			}
			for r := x.Rune[i]; r <= x.Rune[i+1]; r++ {
				list = append(list, string(r))
			}
		}
		return list, len(list) <= maxKeptNames
	}
	return nil, false
}

func union(parts []*syntax.Regexp, of func(*syntax.Regexp) ([]string, bool)) ([]string, bool) {
	var all []string
	for _, p := range parts {
		list, ok := of(p)
		if !ok || len(all)+len(list) > maxKeptNames {
			return nil, false
		}
		all = append(all, list...)
	}
	return all, true
}

func product(parts []*syntax.Regexp) ([]string, bool) {
	all := []string{""}
	for _, p := range parts {
		list, ok := spellings(p)
		if !ok || len(all)*len(list) > maxKeptNames {
			return nil, false
		}
		var next []string
		for _, head := range all {
			for _, tail := range list {
				next = append(next, head+tail)
			}
		}
		all = next
	}
	return all, true
}

// use reports whether the next request is to be a filtered one.
func (f *nameFilter) use() bool { return f.query != "" && f.state != filterWaits }

// url is u with the names.
func (f *nameFilter) url(u *url.URL) *url.URL {
	v := *u
	v.RawQuery = strings.TrimPrefix(v.RawQuery+"&"+f.query, "&")
	return &v
}

// judge looks at a filtered answer before it is decoded. It returns why the poll must ask for all, or "".
func (f *nameFilter) judge(d *Decoder, a answer, s *metric.Snapshot) string {
	refused := s.Outcome == metric.HTTPError && s.Status >= 400 && s.Status < 500 && s.Status != http.StatusTooManyRequests
	switch {
	case refused:
		return "it answers " + http.StatusText(s.Status)
	case s.Outcome != metric.OK:
		return "" // a failure like any other
	case f.state == filterOn && len(a.body) > d.layout.size*3/4:
		return "" // nothing to suspect
	case a.cut:
		return "the answer was cut short"
	}
	return f.compare(d, a.body)
}

// compare returns what a filtered body has too much or too little, against the last stored one.
func (f *nameFilter) compare(d *Decoder, body []byte) string {
	has := map[string]struct{}{}
	for line := range bytes.Lines(body) {
		line = bytes.Trim(line, " \t\r\n")
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		n := seriesEnd(line)
		if n <= 0 || !f.names[string(line[:nameEnd(line)])] {
			return "the answer has other families: " + metric.Clean(string(line[:min(len(line), 60)]), 60)
		}
		has[string(line[:n])] = struct{}{}
	}
	text, at := d.layout.stretches(), int32(0)
	for i := range d.layout.lines {
		g, o := &d.layout.lines[i], &d.layout.origins[i]
		at += g.text
		series := text[at-o.back : at-o.back+o.length]
		if _, ok := has[series]; g.slot != noSlot && !ok {
			return "the answer lacks " + metric.Clean(series, 100)
		}
	}
	return ""
}

// stored takes over a decoded poll: filtered is how it was asked for, before how many slots there had been.
func (f *nameFilter) stored(d *Decoder, filtered bool, before int, s *metric.Snapshot) {
	switch {
	case f.query == "":
	case filtered && len(d.present) < before:
		f.state = filterWaits
	case filtered:
		f.state = filterOn
	case s.Outcome == metric.OK && d.layout.ok && d.format != formatProtobuf && len(d.present) > 0 && d.filters():
		f.state = filterTrial
	}
}

// filters reports whether the last body had lines that --keep or --drop left out: without any there is nothing to save.
func (d *Decoder) filters() bool {
	return slices.ContainsFunc(d.drops, func(x metric.Drop) bool { return x.Reason == reasonWords[filtered] })
}

// refuse ends asking that way, for a reason.
func (f *nameFilter) refuse(why string) metric.Warning {
	f.query = ""
	return metric.Warning{Code: "name_filter", Text: "asked for the families of --keep only (name[]=), and " + why +
		"; the target is asked for all of them from now on"}
}
