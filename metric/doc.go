// Package metric is the vocabulary every other package speaks: targets,
// families, series, slots, samples, snapshots and warnings.
//
// The shape of the data follows from how servers are polled. A target shows the same few thousand lines again
// and again, so a target has a dictionary ([Schema]) that only grows, and a poll ([Snapshot]) carries what is
// new in the dictionary ([DictDelta]) and the values that changed ([Delta]):
//
//	Family    vllm:e2e_request_latency_seconds, histogram
//	Series    {engine="0"} of that family
//	SampleID  one scalar of that series: a bucket, the sum, the count
//	Delta     slot 17 is now 42, slot 18 is now 43; the others are as before
//
// A consumer applies each snapshot to a [Replay] of its own; the live analysis and the recorded one therefore
// see the same stream. A failed poll is a Snapshot with an outcome and no samples: gaps are data.
//
// The package holds no behaviour beyond these values and imports nothing of this module.
package metric
