package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// omniFamilies are the families of the Omni pipeline, named as a generation of
// vLLM-Omni names them. One that the generation does not have is nil.
type omniFamilies struct {
	reg    *registry
	gen    int
	model  string
	silent bool // without --log-stats: declared, but no series

	running, waiting, success, failed, succeededOld, failedOld *family
	e2e, queueWait, prompt, generated, kvWait                  *family
	stageGen, stageQueue, stageWaiting, peakMemory             *family
	ttfp, duration, rtf, frames, underrun, continuity, skipped *family
	size, tx, rx, inFlight                                     *family
	preprocess, exec, perStep, postprocess, vae, imageTTFP     *family
	steps, images, pixels                                      *family
}

// The bucket layouts of vLLM-Omni.
func omniSeconds() []float64 {
	return []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300}
}

func omniSecondsFast() []float64 {
	return []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60}
}

func omniRTF() []float64 {
	return []float64{0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.25, 1.5, 2, 5, 10}
}

func omniBytes() []float64 {
	return []float64{1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28}
}

// clientDefaults is the layout of prometheus_client for a histogram that is
// given none.
func clientDefaults() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}

const (
	newestGeneration = 4
	gone             = newestGeneration + 1
)

// parseGeneration reads Options.Generation.
func parseGeneration(s string) (int, error) {
	if s == "" {
		return newestGeneration, nil
	}
	g := slices.Index([]string{"g0", "g1", "g2", "g3", "g4"}, s)
	if g < 0 {
		return 0, fmt.Errorf("check options: Generation is %q, want g0, g1, g2, g3 or g4", s)
	}
	return g, nil
}

// omniName is the stem of a family from the generation since on, and the one
// that it had from first to last, in milliseconds when that says so.
type omniName struct {
	stem  string
	since int
	old   string // "" for none
	first int
	last  int
}

func (f *omniFamilies) prefix() string {
	if f.gen < 3 {
		return "vllm:omni_"
	}
	return "vllm_omni:"
}

// pick returns the name of a family in this generation and its scale, "" when
// there is none.
func (f *omniFamilies) pick(n omniName) (name string, scale float64) {
	switch {
	case f.gen >= n.since:
		return f.prefix() + n.stem, 1
	case n.old == "" || f.gen < n.first || f.gen > n.last:
		return "", 1
	case strings.HasSuffix(n.old, "_ms"):
		return f.prefix() + n.old, 1000
	default:
		return f.prefix() + n.old, 1
	}
}

// labels are the names of the labels in this generation.
func (f *omniFamilies) labels(labels []string) []string {
	if f.gen > 0 {
		return append([]string{"model_name"}, labels...)
	}
	all := []string{"model_name", "engine"}
	for _, l := range labels {
		switch l {
		case "stage", "replica":
			l += "_id"
		}
		all = append(all, l)
	}
	return all
}

// values are label values in the order of labels.
func (f *omniFamilies) values(values []string) []string {
	if f.gen > 0 {
		return append([]string{f.model}, values...)
	}
	return append([]string{f.model, "0"}, values...)
}

func (f *omniFamilies) counter(n omniName, help string, labels ...string) *family {
	name, _ := f.pick(n)
	if name == "" {
		return nil
	}
	return f.reg.counter(name, help, f.labels(labels)...)
}

func (f *omniFamilies) gauge(n omniName, help string, labels ...string) *family {
	name, _ := f.pick(n)
	if name == "" {
		return nil
	}
	return f.reg.gauge(name, help, f.labels(labels)...)
}

func (f *omniFamilies) histogram(n omniName, help string, bounds []float64, labels ...string) *family {
	name, scale := f.pick(n)
	if name == "" {
		return nil
	}
	if scale != 1 {
		for i := range bounds {
			bounds[i] *= scale
		}
		help = strings.Replace(help, "in seconds", "in milliseconds", 1)
	}
	h := f.reg.histogram(name, help, bounds, f.labels(labels)...)
	h.scale = scale
	return h
}

// lazy returns a series that appears with its first event, nil when the family
// or --log-stats is missing.
func (f *omniFamilies) lazy(of *family, values ...string) *series {
	if of == nil || f.silent {
		return nil
	}
	return of.lazy(f.values(values)...)
}

// with returns a series that is there from the start.
func (f *omniFamilies) with(of *family, values ...string) *series {
	s := f.lazy(of, values...)
	if s != nil {
		of.show(s, 0)
	}
	return s
}

func newOmniFamilies(w *world, gen int) *omniFamilies {
	f := &omniFamilies{reg: w.reg, gen: gen, model: w.opt.Model, silent: !w.opt.logStats()}
	f.registerPipeline()
	f.registerAudio()
	f.registerTransfers()
	f.registerDiffusion()
	return f
}

func (f *omniFamilies) registerPipeline() {
	f.running = f.gauge(omniName{stem: "num_requests_running"}, "Number of requests currently running across all pipeline stages.")
	f.waiting = f.gauge(omniName{stem: "num_requests_waiting"}, "Number of requests waiting to be scheduled.")
	f.succeededOld = f.counter(omniName{since: gone, old: "num_requests_success"}, "Number of requests that succeeded.")
	f.failedOld = f.counter(omniName{since: gone, old: "num_requests_fail"}, "Number of requests that failed.")
	f.success = f.counter(omniName{stem: "requests_success", since: 1},
		"Total requests by completion reason (stop / length / abort / ...). Aborts cover client-disconnect / "+
			"cancellation paths in addition to upstream FinishReason.ABORT.", "finished_reason")
	f.e2e = f.histogram(omniName{stem: "e2e_request_latency_s", since: 1, old: "e2e_request_latency_seconds"},
		"Pipeline-global end-to-end request latency in seconds (user arrival to complete response).", omniSeconds())
	f.prompt = f.counter(omniName{stem: "prompt_tokens", since: 3}, "Total prompt (input) tokens processed across all pipeline stages.")
	f.generated = f.counter(omniName{stem: "generation_tokens", since: 3},
		"Total generation (output) tokens produced across all pipeline stages.")
	f.queueWait = f.histogram(omniName{stem: "request_queue_wait_s", since: 4, old: "request_queue_time_seconds"},
		"Time a request waited for admission to the pipeline, in seconds.", omniSeconds())
	f.failed = f.counter(omniName{stem: "requests_failed", since: 4}, "Total failed requests by reason.", "reason")
	f.kvWait = f.histogram(omniName{stem: "kv_wait_s", since: 4},
		"Time spent waiting for a KV transfer, in seconds.", omniSeconds(), "connector_type")
	f.stageGen = f.histogram(omniName{stem: "stage_gen_time_s", since: 4},
		"Diffusion / image stage time from submission to finished output, in seconds.", omniSeconds(), "stage", "stage_type")
	f.stageQueue = f.histogram(omniName{stem: "stage_in_queue_s", since: 4},
		"Time from enqueue to admission in the stage scheduler, in seconds.", omniSecondsFast(), "stage")
	f.stageWaiting = f.gauge(omniName{stem: "stage_waiting_requests", since: 4}, "Number of requests waiting in the stage scheduler.", "stage")
	f.peakMemory = f.gauge(omniName{stem: "peak_memory_mb", since: 4}, "Peak memory of the stage, in MB.", "stage")
}

func (f *omniFamilies) registerAudio() {
	l := []string{"stage", "replica"}
	f.ttfp = f.histogram(omniName{stem: "audio_ttfp_s", since: 1},
		"Time from request arrival to first audio packet, in seconds.", omniSeconds(), l...)
	f.duration = f.histogram(omniName{stem: "audio_duration_s", since: 1},
		"Generated audio content duration, in seconds (audio_frames / sample_rate).", omniSeconds(), l...)
	f.rtf = f.histogram(omniName{stem: "audio_rtf", since: 1},
		"Audio real-time factor (stage_gen_time_s / audio_duration_s); SLO red line < 1.", omniRTF(), l...)
	f.frames = f.counter(omniName{stem: "audio_frames", since: 1}, "Total audio frames generated; throughput recovered via rate().", l...)
	f.underrun = f.histogram(omniName{stem: "audio_underrun_s", since: 1},
		"Worst-case streaming-audio underrun per request, in seconds.", omniSecondsFast(), l...)
	f.continuity = f.counter(omniName{stem: "audio_continuity_ok", since: 1},
		"Total streaming requests whose worst underrun stayed within the threshold.", "stage", "replica", "threshold_ms")
	f.skipped = f.counter(omniName{stem: "audio_skipped_requests", since: 1},
		"Total requests that finished without audio.", "stage", "replica", "reason")
}

func (f *omniFamilies) registerTransfers() {
	l := []string{"from_stage", "from_replica", "to_stage", "to_replica"}
	f.size = f.histogram(omniName{stem: "transfer_size_bytes", since: 1},
		"Per-transfer payload size in bytes (one observation per physical hop).", omniBytes(), l...)
	f.tx = f.histogram(omniName{stem: "transfer_tx_s", since: 2, old: "transfer_tx_time_ms", first: 1, last: 1},
		"Sender-side time in seconds (serialize + submit to connector).", omniSecondsFast(), l...)
	f.rx = f.histogram(omniName{stem: "transfer_rx_s", since: 2, old: "transfer_rx_decode_time_ms", first: 1, last: 1},
		"Receiver-side time in seconds (recv + deserialize).", omniSecondsFast(), l...)
	f.inFlight = f.histogram(omniName{stem: "transfer_in_flight_s", since: 2, old: "transfer_in_flight_time_ms", first: 1, last: 1},
		"Network in-flight time in seconds (TX done -> RX recv start).", omniSecondsFast(), l...)
}

func (f *omniFamilies) registerDiffusion() {
	l := []string{"stage", "replica"}
	f.preprocess = f.histogram(omniName{stem: "diffusion_preprocess_s", since: 3, old: "diffusion_preprocess_time_ms"},
		"Diffusion preprocessing time, in seconds.", omniSecondsFast(), l...)
	f.exec = f.histogram(omniName{stem: "diffusion_exec_s", since: 3, old: "diffusion_exec_time_ms"},
		"Diffusion execution time, in seconds.", omniSeconds(), l...)
	f.perStep = f.histogram(omniName{stem: "diffusion_exec_per_step_s", since: 3, old: "diffusion_step_time_ms"},
		"Diffusion execution time per denoising step, in seconds.", omniSecondsFast(), l...)
	f.postprocess = f.histogram(omniName{stem: "diffusion_postprocess_s", since: 3, old: "diffusion_postprocess_time_ms"},
		"Diffusion postprocessing time, in seconds.", omniSecondsFast(), l...)
	f.vae = f.histogram(omniName{stem: "vae_decode_s", since: 4}, "VAE decoding time, in seconds.", omniSeconds(), l...)
	f.imageTTFP = f.histogram(omniName{stem: "image_ttfp_s", since: 4},
		"Time from request arrival to first image (or only image) emitted, in seconds.", omniSeconds(), l...)
	f.steps = f.histogram(omniName{stem: "num_inference_steps", since: 4}, "Denoising steps per request.", clientDefaults())
	f.images = f.counter(omniName{stem: "image_count", since: 4}, "Total images generated.")
	f.pixels = f.histogram(omniName{stem: "image_pixels", since: 4}, "Pixels per image.", clientDefaults())
}
