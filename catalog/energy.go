package catalog

import "slices"

// work is what engines made: by a frontend, which counts what its workers count again, or else by each engine, by the
// first family of it that there is.
type work struct {
	frontend []Term
	engines  [][][]Term
}

func workTokens() work {
	return work{increase(dynamo + "output_tokens"), [][][]Term{
		{increase("vllm:generation_tokens")},
		{increase(sglang+"realtime_tokens", "mode", "decode"), increase(sglang + "generation_tokens")},
		{increase(trtllm + "generation_tokens")}, {sumOf(tgi + "request_generated_tokens")},
		{increase(llama + "tokens_predicted")},
	}}
}

func workRequests() work {
	return work{increase(dynamo + "requests"), [][][]Term{
		{increase("vllm_omni:requests_success"), increase("vllm:request_success")}, {increase(sglang + "num_requests")},
		{increase(trtllm + "request_success")},
		{increase(tgi + "request_success")}, {increase("ts_inference_requests")},
	}}
}

func workAudio() work  { return work{engines: [][][]Term{{sumOf("vllm_omni:audio_duration_s")}}} }
func workImages() work { return work{engines: [][][]Term{{increase("vllm_omni:image_count")}}} }

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

// meter is a counter of joules, and the gauge of watts beside it.
type meter struct {
	counter []Term
	power   string
}

func dcgmMeter() meter   { return meter{times(1e-3, increase(dcgmEnergy)), dcgmPower} }
func tritonMeter() meter { return meter{increase("nv_energy_consumption"), "nv_gpu_power_usage"} }

// fewUpdates is how many times a meter is to be read in a stretch for its counter to be exact: what it gained is off
// by up to one reading at each end.
const fewUpdates = 20

// joules is the energy of a stretch; nil when nothing tells. A counter that did not move while there was power was not
// read again in that time: then the gauge stands for it, as where there is no counter.
func (m meter) joules(v *View) (terms []Term, status Status, flag string) {
	a, watts := v.Amount(m.counter[0]), v.Amount(meanOver(m.power)[0])
	switch {
	case a.Series > 0 && (a.Value != 0 || watts.Value <= 0):
		if f, ok := v.catalog.Family(m.counter[0].Family); ok && v.Seconds < fewUpdates*f.Staleness.Seconds() {
			return m.counter, Estimate, "few_updates"
		}
		return m.counter, OK, ""
	case watts.Series > 0:
		return integral(m.power), Estimate, "of_power"
	}
	return nil, Missing, ""
}

// watts is a rule for the mean power.
func (m meter) watts(help string) Rule {
	return Rule{Name: "avg_power", Unit: "watt", Help: help, Category: Efficiency, Better: LowerBetter, Headline: true,
		Formula: "energy / time, or else the mean of the gauge",
		Make: func(v *View) []Derived {
			terms, status, flag := m.joules(v)
			if terms == nil {
				return nil
			}
			d, _ := v.divide(terms, nil)
			return []Derived{d.metered(status, flag)}
		}}
}

func (d Derived) metered(s Status, flag string) Derived {
	if d.atBest(s); flag != "" {
		d.Flag(flag)
	}
	return d
}

func energyPack() Pack {
	return Pack{Name: EnergyPack, Title: "Energy", Rules: energyRules(),
		Prefixes: slices.Concat([]string{dcgmEnergy, dcgmPower, "nv_energy_consumption", "nv_gpu_power_usage"},
			workTokens().families(), workRequests().families(), workAudio().families(), workImages().families())}
}

// energyRules are of all GPUs and all engines together: which GPU belongs to which server is the user's to say, by a
// label of the targets and --by. Energy of others who share a GPU is part of it.
func energyRules() []Rule {
	by := func(name, of string, w work) Rule {
		return Rule{Name: name, Unit: "joule", Help: "Energy of all GPUs watched, by " + of + ".", Category: Efficiency,
			Better:  LowerBetter,
			Formula: "energy of all GPUs watched / " + of, Make: func(v *View) []Derived { return energyBy(v, w, false) }}
	}
	return []Rule{
		by("j_per_output_token", "generated tokens", workTokens()).headline("j_per_token"),
		{Name: "tokens_s_per_watt", Unit: "tokens/joule",
			Help: "Generated tokens per second by the power of all GPUs watched.", Category: Efficiency, Better: HigherBetter,
			Formula: "generated tokens / energy of all GPUs watched",
			Make:    func(v *View) []Derived { return energyBy(v, workTokens(), true) }},
		by("j_per_request", "requests", workRequests()).headline(""),
		by("j_per_audio_second", "seconds of sound", workAudio()),
		by("j_per_image", "images", workImages()),
	}
}

// energyBy gives nothing unless there is both energy and work.
func energyBy(v *View, w work, inverse bool) []Derived {
	num, status, flag := dcgmMeter().joules(v)
	if num == nil {
		num, status, flag = tritonMeter().joules(v)
	}
	den := w.of(v)
	if num == nil || den == nil {
		return nil
	}
	if inverse {
		num, den = den, num
	}
	d, _ := v.divide(num, den)
	d.Flag("all_gpus_watched")
	return []Derived{d.metered(status, flag)}
}
