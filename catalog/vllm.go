package catalog

// VLLMPack is the name of the pack of vLLM.
const VLLMPack = "vllm"

const vllmPrefix = "vllm:"

func vllmPacks() []Pack {
	return []Pack{{Name: VLLMPack, Title: "vLLM", Prefixes: []string{vllmPrefix}, Split: []string{"model_name", "model", "stage"},
		Rules: vllmSaturation()}}
}

func vllmSaturation() []Rule {
	return []Rule{
		{Name: "running_mean", Unit: "requests", Help: "Requests in the running batch.", Question: Saturation, Headline: true, Canonical: "running",
			Num: []Term{{Family: vllmPrefix + "num_requests_running", Part: Integral}}},
		{Name: "waiting_mean", Unit: "requests", Help: "Requests that wait to be scheduled.", Question: Saturation, Better: LowerBetter, Headline: true,
			Canonical: "waiting", Num: []Term{{Family: vllmPrefix + "num_requests_waiting", Part: Integral}}},
	}
}
