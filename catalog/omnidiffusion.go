package catalog

import (
	"github.com/scrapestat/scrapestat/metric"
)

// The families of images.
const (
	diffusionExec    = omniPrefix + "diffusion_exec_s"
	diffusionPerStep = omniPrefix + "diffusion_exec_per_step_s"
	diffusionSteps   = omniPrefix + "num_inference_steps"
	imageCount       = omniPrefix + "image_count"
	imagePixels      = omniPrefix + "image_pixels"
	imageTTFP        = omniPrefix + "image_ttfp_s"
	denoiseStep      = omniPrefix + "denoise_step_latency_s"
)

// diffusionParts are what a diffusion stage spends its time on.
var diffusionParts = [...]string{"diffusion_preprocess_s", "diffusion_postprocess_s", "vae_decode_s",
	"diffusion_kv_load_s", "diffusion_forward_s"}

// omniDiffusionRules are the rules of stages that make images.
func omniDiffusionRules() []Rule {
	by := []string{"stage"}
	mean := func(name, unit, family, help string) Rule {
		return Rule{Name: name, Unit: unit, Help: help, Category: TimeSpent, Better: LowerBetter, By: by,
			Num: []Term{{Family: family, Part: Sum}}, Den: []Term{{Family: family, Part: Count}}}
	}
	first := mean("image_ttfp_mean", "seconds", imageTTFP, "To the first image, or the only one.")
	first.Headline, first.Category = true, Latency
	rules := []Rule{
		{Name: "images_s", Unit: "images/s", Help: "Images that were made.", Category: Throughput, Better: HigherBetter,
			Headline: true,
			Num:      []Term{{Family: imageCount}}},
		{Name: "megapixels_s", Unit: "megapixels/s", Help: "Pixels that were made.", Category: Throughput,
			Better: HigherBetter,
			Num:    []Term{{Family: imagePixels, Part: Sum, Factor: 1e-6}}},
		{Name: "mean_pixels", Unit: "pixels", Help: "Pixels of an image. Its percentiles mean nothing: all images lie " +
			"above the last bound.", Category: Throughput,
			Num: []Term{{Family: imagePixels, Part: Sum}}, Den: []Term{{Family: imagePixels, Part: Count}}},
		{Name: "steps_mean", Unit: "steps", Help: "Denoising steps of a request.", Category: Throughput,
			Num: []Term{{Family: diffusionSteps, Part: Sum}}, Den: []Term{{Family: diffusionSteps, Part: Count}}},
		{Name: "diffusion_step_mean", Unit: "seconds", Help: "Execution by denoising step, each step with the same weight.",
			Category: TimeSpent,
			Better:   LowerBetter, Headline: true, Num: []Term{{Family: diffusionExec, Part: Sum}},
			Den: []Term{{Family: diffusionSteps, Part: Sum}}},
		mean("diffusion_step_mean_by_request", "seconds", diffusionPerStep,
			"Execution by denoising step, each request with the same weight."),
		mean("denoise_step_mean", "seconds", denoiseStep, "One denoising step."),
		mean("diffusion_exec_mean", "seconds", diffusionExec, "Execution of a request."),
		first,
		slo("image_ttfp_slo", "Requests whose first image came within so many seconds.", imageTTFP, 1, 2, 5, 10),
		{Name: "diffusion_share", Unit: "ratio",
			Help: "Parts of the work by its execution; only those that the server shows.", Category: TimeSpent,
			Formula: "d({preprocess, postprocess, vae_decode, kv_load, forward}_sum) / d(diffusion_exec_s_sum)",
			Make:    diffusionShares},
		{Name: "peak_memory", Unit: "megabytes", Help: "Peak memory of the stage.", Category: Saturation, Better: LowerBetter,
			By:  by,
			Num: []Term{{Family: omniPrefix + "peak_memory_mb", Part: Max}}, Formula: "max(peak_memory_mb)", Make: peakMemory},
	}
	for i := range rules {
		if rules[i].Make == nil {
			rules[i] = rules[i].ifMade()
		}
	}
	return rules
}

func diffusionShares(v *View) []Derived {
	return perValue(v, diffusionExec, "stage", func(stage metric.Label) []Derived {
		all := v.total(Term{Family: diffusionExec, Part: Sum, Where: []metric.Label{stage}})
		var out []Derived
		for _, family := range diffusionParts {
			part := v.total(Term{Family: omniPrefix + family, Part: Sum, Where: []metric.Label{stage}})
			out = append(out, label(part.some(all), metric.NewLabels(metric.Label{Name: "part", Value: partName(family)}))...)
		}
		return out
	})
}

// partName is a family without what all of them have.
func partName(family string) string {
	const prefix = "diffusion_"
	if len(family) > len(prefix) && family[:len(prefix)] == prefix {
		family = family[len(prefix):]
	}
	return family[:len(family)-len("_s")]
}

func peakMemory(v *View) []Derived {
	const family = omniPrefix + "peak_memory_mb"
	return perValue(v, family, "stage", func(stage metric.Label) []Derived {
		a := v.Amount(Term{Family: family, Part: Max, Where: []metric.Label{stage}})
		return counted(a.Value, family)
	})
}

// omniDuplexRules are the rules of duplex sessions.
func omniDuplexRules() []Rule {
	where := func(name, value string) []metric.Label { return []metric.Label{{Name: name, Value: value}} }
	const appends, rebuilds = omniPrefix + "duplex_append_requests", omniPrefix + "duplex_kv_rebuilds"
	return []Rule{
		{Name: "duplex_append_success_ratio", Unit: "ratio", Help: "Appends that were taken, a repeated one too.",
			Category: Errors, Better: HigherBetter,
			Num: []Term{{Family: appends, Where: where("outcome", "success")},
				{Family: appends, Where: where("outcome", "deduplicated"), Optional: true}},
			Den: []Term{{Family: appends}}},
		{Name: "duplex_rebuild_ratio", Unit: "ratio", Help: "Rebuilds of a KV cache that succeeded.", Category: Errors,
			Better: HigherBetter,
			Num:    []Term{{Family: rebuilds, Where: where("outcome", "success")}}, Den: []Term{{Family: rebuilds}}},
		{Name: "duplex_append_mean", Unit: "seconds", Help: "Time of an append.", Category: Latency, Better: LowerBetter,
			By:  []string{"outcome"},
			Num: sumOf(omniPrefix + "duplex_append_latency_s"), Den: countOf(omniPrefix + "duplex_append_latency_s")},
		{Name: "duplex_control_wait_mean", Unit: "seconds", Help: "Wait of a control operation.", Category: TimeSpent,
			Better: LowerBetter,
			By:     []string{"operation"}, Num: sumOf(omniPrefix + "duplex_control_queue_wait_s"),
			Den: countOf(omniPrefix + "duplex_control_queue_wait_s")},
	}
}
