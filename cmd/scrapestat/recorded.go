package main

import (
	"context"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// readRecorded holds what servers told of single requests against the histograms of a run. Of several recordings taken
// together it is not known which histogram a record is of.
func readRecorded(ctx context.Context, result *summary.Run, runs ...*rundb.Run) (err error) {
	if len(runs) == 1 && runs[0].HasServerRequests() {
		result.Recorded, err = join.ExactTimes(ctx, result, runs[0], result.Options.Quantiles, nil)
	}
	return err
}

// recordedSetting tells whether servers told of single requests, which costs them time.
func recordedSetting(r *summary.Run) compare.Setting {
	s := compare.Setting{Kind: "tracing", Name: "of single requests", Value: "off"}
	if len(r.Recorded) > 0 {
		s.Value = "on"
	}
	return s
}

// useRecorded lets records stand for estimates where all runs have all of a time: one that is exact and one that is
// estimated, or bounded, differ by what the estimate is off.
func useRecorded(runs ...*summary.Run) {
	for _, r := range runs {
		for i := range r.Recorded {
			x := &r.Recorded[i]
			for _, o := range runs {
				if len(runs) > 1 && !o.Proves(x.ID, x.Engine) {
					x.Latency = -1
				}
			}
		}
	}
	for _, r := range runs {
		r.UseRecorded()
	}
}
