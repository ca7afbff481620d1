// Package summary turns recorded runs into the result tree that exports, reports and comparisons are made of.
//
//	run, err := summary.Build(ctx, []summary.Recording{db}, summary.Options{Slice: time.Second})
//	for _, m := range run.Metrics {
//		for _, s := range m.Series {
//			fmt.Println(m.Name, run.Endpoints[s.Endpoint].URL, s.Labels, s.Samples)
//		}
//	}
//
// A [Run] holds the metrics of all endpoints over one [Window], the same over the warm-up, and what happened at
// each endpoint: the ledger of every scheduled poll and every line, gaps, warnings.
//
// # Windows
//
// The marks of a recording cut it into phases. The load starts at the first mark called warmup or profiling;
// profiling runs from its mark, or from the start of the load plus Options.Warmup, to the mark "end", or to
// Options.Cooldown before it. Without a cool-down the window of each endpoint reaches on to its last update, so
// that the final scrape is inside. Phases of other names lie within and are chosen by Options.Phase.
//
// # Aggregates
//
// Options.By takes series together that differ in other labels or endpoints only, such as the replicas of a
// server. Counters add up; of histograms the observations are pooled, so that a percentile is one of all
// requests and keeps its provable bounds. Percentiles are never averaged.
//
// # Live and recorded
//
// [Build] streams the targets of recordings through the same code that a [Builder] runs during a collection; both give
// the same tree. Memory grows with series, slices and changes, not with samples; a poll costs 32 bytes.
package summary
