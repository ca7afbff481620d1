package scrape

import (
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// relabelled asks the target's Relabel about a new series. Bounds of buckets and quantiles are kept from it and
// put back: rules that see only some lines of a histogram would tear it.
func (d *Decoder) relabelled(src owner, name string, pairs []metric.Label) (owner, string, []metric.Label, reason) {
	if d.relabel == nil {
		return src, name, pairs, stored
	}
	var own []metric.Label
	switch src.kind {
	case kindBucket:
		pairs, own = takeLabel(pairs, "le")
	case kindQuantile:
		pairs, own = takeLabel(pairs, "quantile")
	}
	newName, labels, ok := d.relabel(name, metric.NewLabels(pairs...))
	if !ok || newName == "" {
		return src, name, pairs, filtered
	}
	pairs = pairs[:0]
	for n, v := range labels.All() {
		if len(own) == 0 || n != own[0].Name {
			pairs = append(pairs, metric.Label{Name: n, Value: v})
		}
	}
	pairs = append(pairs, own...)
	if why := checkSeries(d.limits, newName, pairs, true); why != stored {
		return src, newName, pairs, why
	}
	if newName != name {
		src = d.asm.renamed(src, name, newName)
		if why := src.family.why; why != stored {
			return src, newName, pairs, why
		}
	}
	return src, newName, pairs, stored
}

// takeLabel takes a label out of pairs.
func takeLabel(pairs []metric.Label, name string) (rest, taken []metric.Label) {
	for i := range pairs {
		if pairs[i].Name == name {
			taken = []metric.Label{pairs[i]}
			return append(pairs[:i], pairs[i+1:]...), taken
		}
	}
	return pairs, nil
}

// renamed returns where samples belong whose name was changed. A part of a histogram or summary stays one when
// the new name ends as the old one; without that ending it is a number of unknown type.
func (a *assembler) renamed(src owner, name, newName string) owner {
	old := a.dict.families[src.family.index]
	typ, base, suffix := old.Type, newName, ""
	switch src.kind {
	case kindBucket, kindSum, kindCount, kindCreated:
		suffix = name[strings.LastIndexByte(name, '_'):]
	case kindValue:
		if _, declared, ok := strings.Cut(name, old.Name); ok && declared == "_info" && typ == metric.Info {
			suffix = declared
		}
	}
	base, ok := strings.CutSuffix(newName, suffix)
	if !ok || base == "" {
		src.kind, typ, base = kindValue, metric.Unknown, newName
	}
	if typ == metric.Counter {
		if short, ok := strings.CutSuffix(base, "_total"); ok && short != "" {
			base = short
		}
	}
	meta := &word{help: []byte(old.Help), unit: []byte(old.Unit)}
	return owner{a.family(base, newName, typ, meta), src.kind}
}
