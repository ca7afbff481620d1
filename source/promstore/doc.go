// Package promstore speaks with stores that speak Prometheus: it reads the raw samples of a time range back as polls,
// and writes polls to a store while they are recorded.
//
// Reading:
//
//	stats, err := promstore.Import(ctx, promstore.ImportOptions{
//		URL: "http://prometheus:9090", Match: []string{`{job="vllm"}`},
//		StartNS: start, EndNS: end,
//	}, sink)
//
// Samples come by remote read, as streamed chunks or as samples, or from the query API: `selector[range]` as an instant
// query gives raw samples, while query_range would resample them. The time range is cut into slices that hold about
// ImportOptions.SliceSamples; a slice that the server finds too large is halved. Types and help texts are those of the
// metadata API; where it has none, suffixes decide (package timeline). The query API leaves staleness markers out,
// remote read does not: both give the same polls, as a marker is no value.
//
// Writing:
//
//	w, err := promstore.NewWriter(promstore.WriterOptions{URL: url})
//	w.AddTarget(target)    // in the order of their indices
//	go w.Run(ctx)          // in a goroutine of the caller's
//	w.Record(snapshot)     // copies, never blocks, never fails
//	w.Close()              // Run ends when all is sent, or when ctx is done
//	report(w.Stats())      // what was not sent is counted
//
// Everything a server sends is bounded before it is held: bodies, frames, declared lengths of compressed blocks,
// labels, samples of a slice. No error shows a secret: URLs are redacted, texts of the server are cut and cleaned.
package promstore
