// Package normalize turns the polls of one target into statistics of a window.
//
// A [Accumulator] takes the snapshots of a target in time order and holds, per series, what its statistics need:
//
//	fold, err := normalize.NewFold(normalize.Options{StartNS: start, EndNS: end})
//	for snapshot := range snapshots {
//		err = fold.Add(snapshot)
//	}
//	result := fold.Result(0)
//
// The same fold serves the live view and the recorded run: Result may be asked for at any time, does not
// disturb the fold, and gives what it would give had the stream ended there.
//
// # Window
//
// The window is [StartNS, EndNS], inclusive at both ends, on Snapshot.AtNS. The reference of a series is its last
// sample strictly before the window; what a counter or histogram gained is counted from there, or from its first sample
// in the window where there is none. A counter of 64-bit integers, which only sources that are no exposition have,
// counts from zero when its creation time shows that it did not exist at the poll before its first sample. A sample is
// what a series showed in one stored poll: a slot that a changed-only frame does not list was seen unchanged. A failed
// poll has no samples and breaks nothing. Values that are not finite are no samples; one such line in a histogram costs
// that poll's sample of the whole label set. They are counted in Series.NonFinite.
//
// # Resets
//
// Under [ResetAdjust] a counter's total is the sum of its increases between consecutive samples; after a fall
// it has started from zero and the new value counts in full. A histogram restarts as a whole when its count or
// one of its buckets falls; a falling sum alone is a negative observation. A changed creation time is a restart
// too. Under [ResetClamp] everything is AIPerf's arithmetic, design document aiperf.md sections 2 and 3.1: last
// minus reference, clamped at 0 for counters, negative counts for histograms, buckets frozen by the first
// stored sample, learning up to the end of the recording.
//
// Under ResetAdjust a histogram whose buckets change is cut into segments. Its Buckets are the sums over the
// segments for the bounds that all of them have, and its estimator has learnt since the set of common bounds
// last shrank. A bucket that only appears inside the window is therefore not common.
//
// # Types
//
// Unknown series are gauges. A summary is what its count and sum gained, with the quantiles its server reported
// last; a state the share of the time it was active; a gauge histogram what it showed last. A native histogram
// is what its buckets gained, see [NativeGain]: it has no AIPerf arithmetic, so ResetClamp changes nothing for
// it, and its estimator learns from the total only.
//
// # Cost
//
// A changed slot costs a few nanoseconds, an unchanged one nothing; a full frame costs all slots. Memory grows
// with series x (slices + buckets), and for gauges with the number of changes, so that their percentiles are
// exact. A result with slices is much larger than the fold it is made of: some 40 bytes per slice of a counter
// or gauge, 100 and 8 per bucket for a histogram.
package normalize
