package catalog

import (
	"cmp"

	"github.com/scrapestat/scrapestat/catalog/quantity"
)

// meter is what tells the energy of GPUs of a maker: a counter, or a gauge that only grows, and the gauge of watts
// beside it. Factor makes joules of the first.
type meter struct {
	engine, gpus, energy, power string
	factor                      float64
}

// meters are those of all engines; of a maker's GPUs the first that tells stands for all of them.
func meters() []meter {
	return []meter{
		{"dcgm", "nvidia", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_POWER_USAGE", 1e-3},
		{"triton", "nvidia", "nv_energy_consumption", "nv_gpu_power_usage", 1},
		{"amd", "amd", "gpu_energy_consumed", "gpu_package_power", 1e-6},
		{"amd", "amd", "", "gpu_power_usage", 0},
		{"xpum", "intel", "", "hw_power_watts", 0}}
}

// fewUpdates is how many times a meter is to be read in a stretch for its counter to be exact: what it gained is off
// by up to one reading at each end.
const fewUpdates = 20

// joules is the energy of a stretch; nil when nothing tells. A counter that did not move while there was power was not
// read again in that time, and one that fell began anew: then the gauge stands for it, as where there is no counter.
func (m meter) joules(v *View) (terms []Term, status Status, flag string) {
	energy, gauge := Term{Family: m.energy, Part: quantity.Delta, Factor: m.factor}, Term{Family: m.power, Part: Integral}
	a, watts := v.Amount(energy), v.Amount(Term{Family: m.power, Part: Mean})
	switch {
	case a.Series > 0 && a.Value >= 0 && (a.Value != 0 || watts.Value <= 0):
		if f, ok := v.catalog.Family(m.energy); ok && v.Seconds < fewUpdates*f.Staleness.Seconds() {
			return []Term{energy}, Estimate, "few_updates"
		}
		return []Term{energy}, OK, ""
	case watts.Series > 0:
		return []Term{gauge}, Estimate, "of_power"
	}
	return nil, Missing, ""
}

// joules adds up what the meters of an engine tell, or those of all GPUs watched.
func joules(v *View, engine string) (terms []Term, status Status, flag string) {
	told := map[string]bool{}
	for _, m := range meters() {
		if told[m.gpus] || engine != EnergyPack && engine != m.engine {
			continue
		}
		if more, s, f := m.joules(v); more != nil {
			told[m.gpus] = true
			terms, status, flag = append(terms, more...), max(status, s), cmp.Or(flag, f)
		}
	}
	return terms, status, flag
}

// power is the mean power of the GPUs of an engine.
func power(v *View, of argument) []Derived {
	terms, status, flag := joules(v, of.engine)
	if terms == nil {
		return nil
	}
	d, _ := v.divide(terms, nil)
	return []Derived{d.metered(status, flag)}
}

func (d Derived) metered(s Status, flag string) Derived {
	if d.atBest(s); flag != "" {
		d.Flag(flag)
	}
	return d
}

// energyBy is the energy of all GPUs and all engines together, by what the formula beside it says: which GPU belongs
// to which server is the user's to say, by a label of the targets and --by. Energy of others who share a GPU is part
// of it. Without energy or work there is nothing.
func energyBy(v *View, work argument) []Derived {
	return energetic(v, work, func(joules total) Derived { return divided(joules.sum, work.Value) })
}

// perEnergy is the other way round.
func perEnergy(v *View, work argument) []Derived {
	return energetic(v, work, func(joules total) Derived { return divided(work.Value, joules.sum) })
}

func energetic(v *View, work argument, quotient func(joules total) Derived) []Derived {
	if !work.ok {
		return nil
	}
	terms, status, flag := joules(v, work.engine)
	if terms == nil {
		return nil
	}
	joules := v.sum(terms)
	d := quotient(joules)
	d.Families = append(joules.families, work.Families...)
	d.believe(joules)
	d.atBest(work.Status)
	d.Flag("all_gpus_watched")
	return []Derived{d.metered(status, flag)}
}
