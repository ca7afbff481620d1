package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// omniFlags are the flags of simulate that only the profile vllm-omni has.
type omniFlags struct {
	pipeline    string
	noOverlap   bool
	maxInFlight int
	engineLabel bool
	bare        bool
}

func (o *omniFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.pipeline, "pipeline", "", "`name` of the pipeline of vllm-omni: "+strings.Join(simulate.Pipelines(),
		", ")+" (default speech)")
	f.BoolVar(&o.noOverlap, "no-overlap", false,
		"let a stage of vllm-omni start when the one before has ended, instead of chunk by chunk")
	f.IntVar(&o.maxInFlight, "max-in-flight", 0,
		"requests that the pipeline of vllm-omni admits at once (default any number)")
	f.BoolVar(&o.engineLabel, "engine-label", false,
		"label the vllm:* families of vllm-omni with engine, not with stage and replica")
	f.BoolVar(&o.bare, "bare-counters", false, "leave _total off the counters of vllm-omni")
}

// apply puts the flags into the options, and refuses them for other profiles.
func (o *omniFlags) apply(profile string, to *simulate.Options) error {
	if *o == (omniFlags{}) {
		return nil
	}
	if profile != "vllm-omni" {
		return usagef("--pipeline, --no-overlap, --max-in-flight, --engine-label and --bare-counters are of the profile "+
			"vllm-omni, not of %s", profile)
	}
	name := o.pipeline
	if name == "" {
		name = "speech"
	}
	plan, err := simulate.NamedPlan(name, to.Engines)
	if err != nil {
		return usagef("--pipeline: %w", err)
	}
	plan.Overlap = plan.Overlap && !o.noOverlap
	if o.maxInFlight != 0 {
		plan.MaxInFlight = o.maxInFlight
	}
	to.Plan, to.EngineLabel, to.BareCounters = &plan, o.engineLabel, o.bare
	return nil
}
