// Package scrape polls metrics endpoints and turns what they answer into snapshots.
//
// A [Collector] polls each [Target] from a goroutine of its own, on a fixed grid
// of times, and hands every poll to a [Sink], the failed ones included:
//
//	t, err := scrape.ParseTarget("prefill=http://10.0.0.3:8000")
//	c, err := scrape.New([]scrape.Target{t}, scrape.Options{}, sink)
//	err = c.Run(ctx, stop) // baseline, periodic; after stop closes a final poll
//
// What a poll does: send one request, read the whole body under limits and one deadline, take a slot of a
// semaphore as wide as there are cores, decode, record. The measured times therefore hold no work of ours.
//
// # Scheduled polls
//
// Every scheduled poll ends as exactly one snapshot. Scheduled are the baseline, each tick of the grid that the
// pace asks for, each boundary and the final poll. A tick that falls due while the previous poll is still
// running is a snapshot of its own with the outcome SkippedOverlap. A target that fails, or that spends more
// than [Options.MaxScrapeShare] of its time on answering, is polled on fewer ticks of its grid; those left out
// by that are not scheduled. No target is ever given up.
//
// # Fewer families
//
// When [Options.Keep] lists whole names, as ^(a|b)$ does, a server that honours name[] in the query, as Python's
// prometheus_client does, is asked for those families only; that is a small part of its work for all of them. The first
// answer is always a full one, and the first filtered one is believed only when it has no other family and lacks no
// series; otherwise the warning name_filter says why, and the target is asked for all as before.
//
// # Formats
//
// [Options.Protocols] is what a target is asked for; what it answered first it is asked for until the run ends.
// The bytes of a body decide what it is. Protobuf is cut into messages, and each parsed on its own; native
// histograms come that way only, and have a slot for each populated bucket.
//
// # Decoding
//
// A [Decoder] holds the dictionary of one target and decodes one body after the other. It has two ways. The
// slow one cuts the body into lines, reads the metadata, has each sample line parsed by Prometheus's textparse,
// and assembles families. It learns the layout of the body on the way: the text between the values. The fast
// one, replay, compares the next body with that text, and parses only those values whose bytes changed;
// whatever does not fit takes the slow way again. Replay allocates nothing, and cannot give a value to a wrong
// series, as every byte outside the values is compared.
//
// A line that cannot be stored costs that line only. It is counted in
// [metric.Snapshot.Drops] by reason; stored and dropped lines add up to all.
//
// Decisions that a reader of the data should know:
//   - A counter declared as x_total is the family x, unless the body has another
//     family x. That choice is kept for the run.
//   - A family is unknown when its TYPE line has an unknown word, contradicts
//     another one, or comes after its samples.
//   - x_created is not a metric: it becomes the Created slot of x or x_total, if
//     the body declares one of these.
//   - Timestamps in a body are ignored: the time of the poll counts.
//   - A body that does not end in a line feed (OpenMetrics: in # EOF) was cut
//     short; a last line without line feed is not believed.
//   - A body with more samples than [Limits.Samples] is refused as a whole; the
//     other limits cost only the lines that exceed them.
package scrape
