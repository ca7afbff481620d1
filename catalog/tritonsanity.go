package catalog

import "math"

// tritonResets is the most restarts of a series of the statistics: section 3.2 of the design document triton.md,
// "Sanity columns".
func tritonResets(v *View) []Derived {
	most := 0
	for _, gains := range v.byName {
		for _, g := range gains {
			most = max(most, g.Resets)
		}
	}
	return counted(float64(most), tritonRequests)
}

// invariantViolations counts the invariants of section 1.3 that fail by more than one percent. One whose input is
// missing cannot fail; of batches only too few can, as a sequence batcher leaves slots empty. Failures are counted in
// some of them only, so that a stretch with failures tells nothing.
func invariantViolations(v *View) []Derived {
	n := 0
	less := func(a, b Amount) {
		if a.Series > 0 && b.Series > 0 && a.Value < b.Value-0.01*math.Abs(b.Value) {
			n++
		}
	}
	same := func(a, b Amount) {
		less(a, b)
		less(b, a)
	}
	success, hits := v.Amount(requestCount("success")), v.Amount(requestCount("cache_hit"))
	if success.Series == 0 {
		return nil
	}
	if v.Amount(requestCount("fail")).Value > 0 {
		d := Derived{Status: Missing, Families: []string{tritonRequests}}
		d.Flag("failures")
		return []Derived{d}
	}
	same(v.Amount(requestCount("queue")), success)
	computed := success
	computed.Value -= hits.Value
	for _, part := range computeParts {
		same(v.Amount(requestCount(part)), computed)
	}
	sizes, _ := batchSizes(v)
	if len(sizes) == 0 {
		return counted(float64(n), tritonRequests)
	}
	one := Amount{Series: 1}
	executions, inferences, inferNS := one, one, one
	for _, s := range sizes {
		executions.Value += s.executions
		inferences.Value += s.executions * s.size
		inferNS.Value += s.inferNS * s.size
	}
	made := v.Amount(Term{Family: tritonInferences})
	less(inferences, made)
	same(executions, v.Amount(Term{Family: tritonExecutions}))
	if infer := v.Amount(requestCount("compute_infer")); infer.Series > 0 && infer.Value == made.Value {
		// All requests have batch 1: each request was charged the whole batch.
		less(inferNS, v.Amount(Term{Family: tritonRequestNS, Where: stat("compute_infer")}))
	}
	return counted(float64(n), tritonBatches, tritonBatchNS, tritonExecutions, tritonInferences, tritonRequests)
}

// implausible counts the means of requests that are longer than a thousand times the stretch.
func implausible(v *View) []Derived {
	n, seen := 0, false
	for _, of := range []string{"success", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit",
		"cache_miss", "fail"} {
		d, some := v.divide([]Term{requestTime(of)}, []Term{requestCount(of)})
		if seen = seen || some; d.Status.Defined() && v.Seconds > 0 && d.Value > 1000*v.Seconds {
			n++
		}
	}
	if !seen {
		return nil
	}
	return counted(float64(n), tritonRequests, tritonRequestNS)
}
