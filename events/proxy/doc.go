// Package proxy records the requests that pass through it to a server of OpenAI's interface, so that any load
// generator becomes a source of request events.
//
//	p, err := proxy.New(proxy.Options{Upstream: "http://127.0.0.1:8000", Recorder: rec})
//	...
//	err = p.Serve(ctx, ln) // until ctx is done
//	fmt.Println(p.Stats().Added.P99)
//
// What passes is not changed: an answer is handed on as it is read, flushed at once, and a stream of server-sent events
// is scanned on the way. The exceptions are those of every proxy (hop-by-hop headers), Accept-Encoding, which becomes
// identity for requests that are recorded, because a compressed stream cannot be scanned, and Options.ForceUsage.
//
// # What is recorded
//
// A POST to a path that ends in /completions is recorded, everything else passes unseen. Its events are sample.issued
// (headers in), sample.upstream_sent, sample.first_byte (of the body), sample.recv_first (the first chunk with
// content, else reasoning, else a tool call: a chunk with a role alone is none), sample.recv_non_first for each later
// one when asked for, error.client or error.generic, sample.detail and sample.complete, which ends every request, also
// one that failed. An answer that is no stream has no first chunk.
//
// Text of prompts and answers, credentials and headers other than x-request-id, traceparent and the times of servers
// are never recorded.
//
// # Memory
//
// A stream costs a line at most, an answer that is no stream its length, both up to Options.MaxScan each and
// Options.MaxScanTotal together. What is larger passes and is counted as not scanned. Options.ForceUsage holds the
// bodies of requests until they are sent, together up to Options.MaxRequest; those beyond pass as they are.
package proxy
