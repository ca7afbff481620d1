package catalog

// meter is a counter of energy, and the gauge of watts beside it. Factor makes joules of the counter.
type meter struct {
	counter, gauge string
	factor         float64
}

// meterOf returns that of an engine; of all GPUs watched the one whose families are there.
func meterOf(v *View, engine string) meter {
	ours := meter{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_POWER_USAGE", 1e-3}
	there := len(v.Series(ours.counter)) > 0 || len(v.Series(ours.gauge)) > 0
	if engine == "triton" || engine == EnergyPack && !there {
		return meter{"nv_energy_consumption", "nv_gpu_power_usage", 1}
	}
	return ours
}

// fewUpdates is how many times a meter is to be read in a stretch for its counter to be exact: what it gained is off
// by up to one reading at each end.
const fewUpdates = 20

// joules is the energy of a stretch; nil when nothing tells. A counter that did not move while there was power was not
// read again in that time: then the gauge stands for it, as where there is no counter.
func (m meter) joules(v *View) (terms []Term, status Status, flag string) {
	counter, gauge := Term{Family: m.counter, Factor: m.factor}, Term{Family: m.gauge, Part: Integral}
	a, watts := v.Amount(counter), v.Amount(Term{Family: m.gauge, Part: Mean})
	switch {
	case a.Series > 0 && (a.Value != 0 || watts.Value <= 0):
		if f, ok := v.catalog.Family(m.counter); ok && v.Seconds < fewUpdates*f.Staleness.Seconds() {
			return []Term{counter}, Estimate, "few_updates"
		}
		return []Term{counter}, OK, ""
	case watts.Series > 0:
		return []Term{gauge}, Estimate, "of_power"
	}
	return nil, Missing, ""
}

// power is the mean power of the GPUs of an engine.
func power(v *View, of argument) []Derived {
	terms, status, flag := meterOf(v, of.engine).joules(v)
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
	terms, status, flag := meterOf(v, work.engine).joules(v)
	if terms == nil || !work.ok {
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
