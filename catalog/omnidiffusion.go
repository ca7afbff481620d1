package catalog

import (
	"github.com/scrapestat/scrapestat/metric"
)

const diffusionExec = omniPrefix + "diffusion_exec_s"

// diffusionParts are what a diffusion stage spends its time on.
var diffusionParts = [...]string{"diffusion_preprocess_s", "diffusion_postprocess_s", "vae_decode_s",
	"diffusion_kv_load_s", "diffusion_forward_s"}

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
