package catalog

import "slices"

// work is what engines made: by a frontend, which counts what its workers count
// again, or else by each engine, by the first family of it that there is.
type work struct {
	frontend []Term
	engines  [][][]Term
}

func workTokens() work {
	return work{gained(dynamo + "output_tokens"), [][][]Term{
		{gained("vllm:generation_tokens")},
		{gained(sglang+"realtime_tokens", "mode", "decode"), gained(sglang + "generation_tokens")},
		{gained(trtllm + "generation_tokens")}, {sumOf(tgi + "request_generated_tokens")}, {gained(llama + "tokens_predicted")},
	}}
}

func workRequests() work {
	return work{gained(dynamo + "requests"), [][][]Term{
		{gained("vllm_omni:requests_success"), gained("vllm:request_success")}, {gained(sglang + "num_requests")}, {gained(trtllm + "request_success")},
		{gained(tgi + "request_success")}, {gained("ts_inference_requests")},
	}}
}

func workAudio() work  { return work{engines: [][][]Term{{sumOf("vllm_omni:audio_duration_s")}}} }
func workImages() work { return work{engines: [][][]Term{{gained("vllm_omni:image_count")}}} }

// families are those that the work may be read from.
func (w work) families() []string {
	var out []string
	for _, terms := range append(slices.Concat(w.engines...), w.frontend) {
		for _, t := range terms {
			out = append(out, t.Family)
		}
	}
	return out
}

// of returns the terms of the work that the view has, nil without any.
func (w work) of(v *View) []Term {
	if len(w.frontend) > 0 && v.Amount(w.frontend[0]).Series > 0 {
		return w.frontend
	}
	var out []Term
	for _, ways := range w.engines {
		out = append(out, v.firstOf(ways)...)
	}
	return out
}

// firstOf returns the first sum that the view has, nil without one.
func (v *View) firstOf(sums [][]Term) []Term {
	for _, terms := range sums {
		if v.Amount(terms[0]).Series > 0 {
			return terms
		}
	}
	return nil
}

// energyOf is the joules of all GPUs that were watched.
func energyOf() [][]Term {
	return [][]Term{times(1e-3, gained(dcgmEnergy)), over(dcgmPower), gained("nv_energy_consumption")}
}

func energyPack() Pack {
	return Pack{Name: EnergyPack, Title: "Energy", Rules: energyRules(), Prefixes: slices.Concat([]string{dcgmEnergy, dcgmPower, "nv_energy_consumption"},
		workTokens().families(), workRequests().families(), workAudio().families(), workImages().families())}
}

// energyRules are of all GPUs and all engines together: which GPU belongs to which
// server is the user's to say, by a label of the targets and --by. Energy of
// others who share a GPU is part of it.
func energyRules() []Rule {
	by := func(name, of string, w work) Rule {
		return Rule{Name: name, Unit: "joule", Help: "Energy of all GPUs watched, by " + of + ".", Question: Efficiency, Better: LowerBetter,
			Formula: "energy of all GPUs watched / " + of, Make: func(v *View) []Derived { return energyBy(v, w, false) }}
	}
	return []Rule{
		by("j_per_output_token", "generated tokens", workTokens()).head("j_per_token"),
		{Name: "tokens_s_per_watt", Unit: "tokens/joule", Help: "Generated tokens per second by the power of all GPUs watched.", Question: Efficiency, Better: HigherBetter,
			Formula: "generated tokens / energy of all GPUs watched", Make: func(v *View) []Derived { return energyBy(v, workTokens(), true) }},
		by("j_per_request", "requests", workRequests()).head(""),
		by("j_per_audio_second", "seconds of sound", workAudio()),
		by("j_per_image", "images", workImages()),
	}
}

// energyBy gives nothing unless there is both energy and work.
func energyBy(v *View, w work, inverse bool) []Derived {
	num, den := v.firstOf(energyOf()), w.of(v)
	if num == nil || den == nil {
		return nil
	}
	gauge := num[0].Family == dcgmPower
	if inverse {
		num, den = den, num
	}
	d, _ := v.divide(num, den)
	if gauge {
		d.atBest(Estimate)
	}
	d.Flag("all_gpus_watched")
	return []Derived{d}
}
