// Package explain tells why the latency of a run is what it is: a ranked list of causes, each with its seconds.
//
// [Explain] is a function of its arguments. From the Facts of one engine it makes a waterfall, rows that add up to the
// mean time of a request, and findings in order of weight:
//
//	r := explain.Explain(facts, explain.DefaultRules(), explain.Latency)
//	fmt.Println(r.Verdict) // queue_kv
//	for _, row := range r.Waterfall {
//		fmt.Println(row.ID, row.Seconds)
//	}
//
// Rows that are times of requests, such as queue and prefill, are exact. What the queue is dealt out to follows from
// Little's law: the area under the gauge of waiting requests is the time that requests waited, so that a timeslice
// takes a share of it, and a timeslice has a resource that was exhausted. How decode is split is an estimate of a model
// of the step, and is left out where the model does not fit.
//
// The definitions are those of the design document explain.md; thresholds and words are data ([Rules]).
package explain
