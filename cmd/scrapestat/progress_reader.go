package main

import (
	"context"
	"iter"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report/html"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// watched is a recording of which somebody follows the reading.
type watched struct {
	*rundb.Run
	timeline *html.Timeline // draws what is read; nil draws nothing
	bar      *bar
	marks    []metric.Mark // in place of those of the run; nil for those
}

// Marks implements summary.Recording.
func (w *watched) Marks() []metric.Mark {
	if w.marks != nil {
		return w.marks
	}
	return w.Run.Marks()
}

// Snapshots implements summary.Recording.
func (w *watched) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		last := w.Meta().OriginNS
		for s, err := range w.Run.Snapshots(ctx, target) {
			if err == nil && w.timeline != nil {
				err = w.timeline.Add(s)
			}
			if !yield(s, err) {
				return
			}
			if err == nil && s.AtNS() > last {
				w.bar.add(s.AtNS() - last)
				last = s.AtNS()
			}
		}
	}
}

// watch is the recordings of runs with a bar that follows how they are read: the whole of each, times over. The bar is
// nil when nobody would see it, and when a run was never closed, as nobody knows how much there is to read.
func watch(say *progress, what string, runs []*rundb.Run, times int) ([]*watched, *bar) {
	b := say.bar(what)
	total := int64(0)
	for _, r := range runs {
		length := r.Meta().EndNS - r.Meta().OriginNS
		for _, m := range r.Marks() {
			if m.Name == metric.MarkEnd {
				length = m.AtNS - r.Meta().OriginNS // of an import, which was closed long after
			}
		}
		if length <= 0 {
			b = nil
		}
		total += length * int64(len(r.Targets())*times)
	}
	b.total(total)
	out := make([]*watched, len(runs))
	for i, r := range runs {
		out[i] = &watched{Run: r, bar: b}
	}
	return out, b
}

// toAnalyse and toExport are the watched recordings as their readers want them.
func toAnalyse(ws []*watched) []summary.Recording {
	out := make([]summary.Recording, len(ws))
	for i, w := range ws {
		out[i] = w
	}
	return out
}

func toExport(ws []*watched) []export.Recording {
	out := make([]export.Recording, len(ws))
	for i, w := range ws {
		out[i] = w
	}
	return out
}
