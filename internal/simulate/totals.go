package simulate

import "time"

// Totals are what a period of a Truth holds, in the same shape for every profile, to compare derived metrics with.
// Requests belong to the period that they end in. Times are sums over the requests that were served; divided by Served
// they are means.
type Totals struct {
	Served, Aborted, Failed                  int
	PromptTokens, CachedTokens, OutputTokens int // of the requests that were served
	AllOutputTokens                          int // of all requests that ended
	Preemptions                              int // of all requests that ended
	// E2E = Front + Queue + Prefill + Decode, to the nanosecond. Front is the
	// time before the queue of the engine, Prefill the time to the first token from there on. A triton or torchserve
	// request computes in Prefill, and has no Decode.
	E2E, Front, Queue, Prefill, Decode time.Duration
}

// TTFT is the time to the first token, from the arrival on.
func (t *Totals) TTFT() time.Duration { return t.Front + t.Queue + t.Prefill }

// Inference is the time in the engine after its queue.
func (t *Totals) Inference() time.Duration { return t.Prefill + t.Decode }

// Totals adds up the requests that ended after from and not after to, both since Origin. It needs Options.KeepTruth. Of
// the profile vllm-omni only the counts, tokens and E2E have a meaning; of dcgm there is nothing.
func (t *Truth) Totals(from, to time.Duration) Totals {
	var s Totals
	for i := range t.Requests {
		r := &t.Requests[i]
		if r.Last <= from || r.Last > to {
			continue
		}
		s.AllOutputTokens += r.OutputTokens
		s.Preemptions += r.Preemptions
		switch r.Reason {
		case "abort":
			s.Aborted++
			continue
		case "error":
			s.Failed++
			continue
		}
		s.Served++
		s.PromptTokens += r.PromptTokens
		s.CachedTokens += r.CachedTokens
		s.OutputTokens += r.OutputTokens
		s.E2E += r.Last - r.Arrival
		s.Front += r.Queued - r.Arrival
		s.Queue += r.Scheduled - r.Queued
		s.Prefill += r.First - r.Scheduled
		s.Decode += r.Last - r.First
	}
	return s
}
