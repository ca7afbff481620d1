// Package simulate has servers that behave like real inference engines, for demos, documentation and tests.
//
// A [Server] is a queueing model behind the exposition of a real engine: the families, types, labels and buckets are
// those of the engine, the help texts name its units, the text is written as its own client library writes it, and the
// numbers obey the identities that hold in the engine, because they come from requests that really queue, prefill,
// decode and finish in the model.
//
//	s, err := simulate.New("vllm", simulate.Options{Rate: 8, Seed: 1})
//	...
//	err = s.Serve(ctx, "127.0.0.1:8000", func(a net.Addr) { ... })
//
// Time comes from Options.Now. Nothing runs between two uses of a server: each one first lets happen what was due since
// the last, event by event, so a server costs nothing when idle, a test moves hours in milliseconds with a clock of its
// own, and what a server shows at an instant does not depend on how often it was looked at.
//
// The servers of language models share a load (fleet) of requests that queue, prefill and decode in continuously
// batching engines; triton and torchserve share one of plain batches. A dialect is how the client library of an engine
// writes. What an engine does oddly it does here too: gauges go stale as its gauges do, series appear as late, and
// llamacpp, torchserve and trtllm notice that they are scraped, so that their bodies depend on who looked before.
//
// A profile is one file: it registers families and drives them from engines, arrivals and a world of events. With
// Options.KeepTruth a server keeps what really happened, for tests that compare an estimate with the truth.
package simulate
