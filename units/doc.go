// Package units finds out in what unit a metric is, and writes values with their unit for people.
//
// There are two answers to the first question. [Infer] repeats AIPerf's rules to the letter, because its
// exports carry that unit; [InferExtended] is ours where AIPerf has none or a wrong one:
//
//	units.Infer("nv_inference_queue_duration_us", "... in microseconds ...") // ""
//	units.InferExtended("nv_inference_queue_duration_us", "... in microseconds ...", "") // "microseconds"
//
// A caller shows InferExtended's where it is not empty, else Infer. [Format] takes either:
//
//	units.Format(0.0123, "seconds") // "12.3 ms"
//
// All functions are pure and safe for concurrent use.
package units
