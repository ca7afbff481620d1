// Package events is the client's side of a run: what a load generator saw of its requests, on the time axis of the
// server's metrics.
//
// It begins with events: request issued, first chunk, complete, failed. A [Session] makes requests of them by the
// rules of MLPerf's endpoints benchmark, whose files it reads and whose tools can read ours. A [Report] is what people
// ask of requests: throughput, latency, time to first token (TTFT), time per output token (TPOT), with the windows,
// denominators and percentiles that the different tools use, each by its name.
//
//	s, err := events.Assemble(stream, events.Rules{})
//	r, err := events.Summarise(s, events.ReportOptions{})
//
// What is missing is nil with a reason, never 0.
package events
