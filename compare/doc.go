// Package compare sets analysed runs side by side and says what changed, how sure that is, and what could not be
// compared and why.
//
//	result, err := compare.Compare([]compare.Input{
//		{Side: "main", Run: a}, {Side: "main", Run: b}, // repeats of one side
//		{Side: "pr", Run: c}, {Side: "pr", Run: d},
//	}, compare.Options{Catalog: cat})
//	for _, row := range result.Rows {
//		fmt.Println(row.Family, row.Stat, row.Labels, row.Against[1].Verdict)
//	}
//
// # Alignment
//
// The first side is the base. Families meet by name, else by an alias of the catalog; series by their labels without
// those that name a process or a place (pod, pid, instance), and by the alias of their target. What has no partner, or
// cannot be compared (another type, unit, bucket layout or estimator), is a row with the verdict Incomparable and a
// reason; nothing is skipped.
//
// # Quantities
//
// A counter is compared by its rate, a gauge by its mean, a histogram or summary by its exact mean and its rate of
// observations, a histogram also by percentiles, each with the interval that provably holds it, and by the shares of
// observations below the bounds that both have, which are exact. A percentile is always one of all observations of a
// run: percentiles of replicas or slices are never combined.
//
// # Evidence
//
// With repeats each run is one independent value: medians, intervals of the median by order statistics, Mann-Whitney's
// test and, over all rows tested, Benjamini and Hochberg's correction (package benchmath of golang.org/x/perf). With
// too few runs for the test to reach Options.Alpha, the change carries an interval from batch means over the timeslices
// of each run, as the headline has (package judge). It knows the noise within a run and nothing of that between runs,
// so it is labelled WithinRun and has no p-value: slices follow each other and depend on each other.
//
// A row is better or worse only if the change is larger than Options.MinEffect, the evidence excludes none, and the
// catalog says which direction is good; without a direction it is changed.
//
// Nothing is random: swapping sides mirrors the result exactly.
package compare
