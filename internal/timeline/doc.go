// Package timeline turns samples that come series by series, as stores and
// dumps give them, into the polls they once were.
//
//	t := timeline.New(timeline.Options{Source: "openmetrics"}, sink)
//	t.Describe("http_requests_total", timeline.Meta{Type: metric.Counter})
//	s := t.Series("http_requests_total", labels)
//	err := s.Add(atNS, 17)
//	err = t.Flush(ctx) // what was added goes to the sink, oldest first
//
// All samples of one scrape carry the same time, so the samples of a target that share a time are one metric.Snapshot.
// A target is a distinct set of values of Options.TargetLabels, job and instance by default; these labels identify the
// target and leave the labels of its series.
//
// Families are assembled by the declared types as package scrape does it: x_bucket, x_sum and x_count are parts of a
// histogram x, a counter loses its _total unless there is another family of the shorter name, x_created is the start
// time of x. Where no type is declared the suffixes decide: a name with buckets is a histogram, _total is a counter, a
// pair of _sum and _count without buckets a summary, all else unknown. Stats.Guessed counts those names.
//
// A staleness marker is no value: the series is absent from that instant on. An instant at which the series up is 0 is
// a failed poll. A sample given twice with the same value counts once; with another value, or earlier than what was
// flushed, it is dropped and counted in the Drops of the next poll of its target.
//
// Memory is 16 bytes per sample between two flushes, plus the dictionary. A Timeline has one owner.
package timeline
