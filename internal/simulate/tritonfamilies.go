package simulate

import "slices"

// tritonFamilies are the nv_* families in the order of the body.
type tritonFamilies struct {
	success, failure, count, execs, request, queued, input, infer, output *family
	pending, hits, misses, hitTime, missTime, first, loadTime             *family
	summaries                                                             [5]*family
	gpu                                                                   tritonGPU
	cpuUtilization                                                        *series
}

// tritonGPU are the gauges of the GPU, nil without them.
type tritonGPU struct{ utilization, used, power, energy *series }

func (g tritonGPU) set(share, power, energy float64) {
	g.utilization.set(share)
	g.used.set(18253611008)
	g.power.set(power)
	g.energy.set(energy)
}

const tritonGPUID = "GPU-5f1c2d3e-0b1a-4c9d-8e7f-001122334455"

func (f *tritonFamilies) register(r *registry, latencies, gpu bool) {
	l := []string{"model", "version"}
	counter := func(name, help string) *family { return r.counter(name, help, l...) }
	micros := func(name, help string) *family {
		return counter("nv_inference_"+name+"_duration_us", "Cumulative "+help+" duration in microseconds")
	}
	f.success = counter("nv_inference_request_success", "Number of successful inference requests, all batch sizes")
	f.failure = r.counter("nv_inference_request_failure", "Number of failed inference requests, all batch sizes", "model", "reason", "version")
	f.count = counter("nv_inference_count", "Number of inferences performed (does not include cached requests)")
	f.execs = counter("nv_inference_exec_count", "Number of model executions performed (does not include cached requests)")
	f.request = micros("request", "inference request")
	f.queued = micros("queue", "inference queuing")
	f.input = micros("compute_input", "compute input")
	f.infer = micros("compute_infer", "compute inference")
	f.output = micros("compute_output", "inference compute output")
	if latencies {
		f.first = r.histogram("nv_inference_first_response_histogram_ms", "Duration from request to first response in milliseconds",
			[]float64{100, 500, 2000, 5000}, l...)
		for i, part := range []string{"request", "queue", "compute_input", "compute_infer", "compute_output"} {
			f.summaries[i] = r.summary("nv_inference_"+part+"_summary_us", "Summary of inference "+part+" duration in microseconds", l...)
			f.summaries[i].quantiles = []float64{0.5, 0.9, 0.95, 0.99, 0.999}
		}
	}
	f.hits = counter("nv_cache_num_hits_per_model", "Number of cache hits per model")
	f.misses = counter("nv_cache_num_misses_per_model", "Number of cache misses per model")
	f.hitTime = counter("nv_cache_hit_duration_per_model", "Total cache hit duration per model, in microseconds")
	f.missTime = counter("nv_cache_miss_duration_per_model", "Total cache miss duration per model, in microseconds")
	f.pending = r.gauge("nv_inference_pending_request_count", "Instantaneous number of pending requests awaiting execution per-model.", l...)
	f.loadTime = r.gauge("nv_model_load_duration_secs", "Model load time in seconds", l...)
	r.gauge("nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size, in bytes").with(0).set(268435456)
	r.gauge("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes").with(0)
	if gpu {
		g := func(f *family) *series { return f.with(0, tritonGPUID) }
		f.gpu.utilization = g(r.gauge("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", "gpu_uuid"))
		g(r.gauge("nv_gpu_memory_total_bytes", "GPU total memory, in bytes", "gpu_uuid")).set(25757220864)
		f.gpu.used = g(r.gauge("nv_gpu_memory_used_bytes", "GPU used memory, in bytes", "gpu_uuid"))
		f.gpu.power = g(r.gauge("nv_gpu_power_usage", "GPU power usage in watts", "gpu_uuid"))
		g(r.gauge("nv_gpu_power_limit", "GPU power management limit in watts", "gpu_uuid")).set(300)
		f.gpu.energy = g(r.counter("nv_energy_consumption", "GPU energy consumption in joules since the Triton Server started", "gpu_uuid"))
	}
	f.cpuUtilization = r.gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]").with(0)
	r.gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes").with(0).set(135018934272)
}

// model makes the series of a model that is loaded now, all at zero.
func (f *tritonFamilies) model(w *world, name, version string, cache bool) *tritonServed {
	with := func(of *family) *series {
		if of == nil {
			return nil
		}
		return of.with(w.now, name, version)
	}
	s := &tritonServed{name: name, version: version, cache: cache, failures: map[string]*series{},
		success: with(f.success), count: with(f.count), execs: with(f.execs),
		request: with(f.request), queued: with(f.queued), input: with(f.input), infer: with(f.infer), output: with(f.output),
		pending: with(f.pending), first: with(f.first)}
	for _, reason := range []string{"REJECTED", "CANCELED", "BACKEND", "OTHER"} {
		s.failures[reason] = f.failure.with(w.now, name, reason, version)
	}
	for i, of := range f.summaries {
		if i > 0 || !cache { // with a response cache there is no summary of requests
			s.summaries[i] = with(of)
		}
	}
	if cache {
		s.hits, s.misses, s.hitTime, s.missTime = with(f.hits), with(f.misses), with(f.hitTime), with(f.missTime)
	}
	with(f.loadTime).set(2.5)
	return s
}

// unload takes the series of a model out of the body.
func (f *tritonFamilies) unload(s *tritonServed) {
	all := []*family{f.success, f.count, f.execs, f.request, f.queued, f.input, f.infer, f.output, f.pending, f.first, f.loadTime,
		f.hits, f.misses, f.hitTime, f.missTime}
	for _, of := range slices.Concat(all, f.summaries[:]) {
		if of != nil {
			of.drop(s.name, s.version)
		}
	}
	for reason := range s.failures {
		f.failure.drop(s.name, reason, s.version)
	}
}
