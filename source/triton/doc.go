// Package triton polls the statistics extension of NVIDIA's Triton Inference Server, which has exact counters per model
// that its Prometheus endpoint does not: batch sizes, cache, decoupled responses, memory, and failures with their
// durations. It reads them over HTTP (GET /v2/models/stats) and over gRPC (ModelStatistics), which carry the same
// values.
//
//	s, err := triton.New("triton+http://localhost:8000?model=resnet", triton.Options{})
//	s.Poll(ctx, now, &snapshot) // again and again, from one goroutine
//	err = s.Close()
//
// A [Source] is a target of package scrape without knowing it. A [Decoder] turns
// recorded answers into snapshots in the same way.
//
// # Values
//
// Every count and every duration is an unsigned 64-bit integer and stays one (metric.SampleID.Integer): nanoseconds
// pass 2^53 after hours, not years. Integers in quotes, and zeros left out, are what a JSON form of the gRPC message
// looks like; both are read. A value that is no such integer costs itself alone: it is counted in
// metric.Snapshot.Drops.
//
// A statistic that an older server does not send has no series. It is not zero.
//
// # Restarts
//
// A model that is loaded again starts from zero. A fall of any counter, of the time of the last inference, or an entry
// that vanished and came back, restarts all counters of the model and version together, so that a quotient of two of
// them stays one: the creation time of the series (metric.RoleCreated) becomes that of the previous poll. The same way
// a series that appears while its server is watched, such as that of a batch size not met before, counts from zero, as
// it was zero at the previous poll.
//
// The server reads its counters without a lock, so a poll can be torn: a count that has moved on and a duration that
// has not. Such a poll is stored as it is, and counted in triton_stats_torn_reads_total.
//
// # Limits
//
// Limits bound the body, the models, the series of a run, batch sizes and response indices before memory is taken for
// them; the memory of a poll is that of the body and one model.
package triton
