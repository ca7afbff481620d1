// Package otlp takes the traces that vLLM and SGLang send of their requests as records, over gRPC, HTTP or from a file.
//
//	r, err := otlp.Listen(ctx, "127.0.0.1:4317", func(q *metric.ServerRequest) { ... })
//	...
//	err = r.Close()
//
// A span with an id and the latency of a request (gen_ai.request.id, gen_ai.latency.e2e) is a record; others are
// counted. The start of the span is the arrival; the rest are durations that the server gave. The end of a span is not
// used, as it is written some milliseconds after that of the request.
//
// Attributes are taken from a list of names. All others, events, links and messages are read over where they stand, so
// that prompts, which some frameworks put there, are never copied. Answers and errors hold constant texts.
package otlp
