// Package continuity decides what a change of a cumulative series means: an increase, a restart, a dip, an older
// copy of the body, another process behind the same address, or a birth.
//
// It decides once and per target, because a process that restarts takes all its series with it. A [Tracker] is a
// filter of snapshots: the cumulative slots of the [Step] that it returns are adjusted and never fall, so nobody
// below it has a notion of resets.
//
//	t := continuity.New(continuity.Options{})
//	for s := range snapshots {
//		step, err := t.Step(s)
//		... // add step.Delta in place of s.Delta; the series in step.Born count from zero
//	}
//	v := t.Verdict(series, referenceNS, lastNS)
//	total := v.Increase(last - reference)
//
// What a number means is its [Status]; one that cannot be known is refused. While nothing ever happened to a target
// its deltas pass through as they are, without a copy.
//
// # What is cumulative
//
// The Value of a counter; the Buckets, native buckets, Sum and Count of a histogram; the Sum and Count of a summary.
// A series with such slots is a unit, which is decided as a whole by its key slot, the Value or the Count; one without
// a key slot takes no part. Sums have no say, as they may fall. Integers wrap around, which differences do not notice.
//
// The rules are section 5 of the design document continuity.md, in its order, in tracker.go.
package continuity
