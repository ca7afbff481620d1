package catalog

import "slices"

// DCGMPack and EnergyPack are the names of the packs of the DCGM exporter: of each GPU, and of its energy by what
// engines made with it, which takes endpoints of both together.
const (
	DCGMPack   = "dcgm"
	EnergyPack = "energy"
)

const dcgm = "DCGM_FI_"

func dcgmPacks() []Pack {
	return []Pack{
		{Name: DCGMPack, Title: "GPU (DCGM)", Prefixes: []string{dcgm}, Split: []string{"Hostname", "gpu", "GPU_I_ID"},
			Rules: slices.Concat(dcgmUse(), dcgmThrottling(), dcgmTraffic(), dcgmEvents())},
		energyPack(),
	}
}

const (
	dcgmEnergy = dcgm + "DEV_TOTAL_ENERGY_CONSUMPTION"
	dcgmPower  = dcgm + "DEV_POWER_USAGE"
)

func dcgmUse() []Rule {
	percent := func(name, help, family string) Rule { return level(name, "percent", help, dcgm+family) }
	share := func(name, help, family string) Rule { return level(name, "ratio", help, dcgm+family) }
	return []Rule{
		dcgmMeter().watts("Power, by the counter of energy; else of the gauge."),
		peak("power_peak", "watt", "Highest power seen.", dcgmPower).category(Efficiency, LowerBetter),
		percent("gpu_util_mean", "Share of the time in which a kernel ran.", "DEV_GPU_UTIL").headline(""),
		percent("mem_copy_util_mean", "Share of the time in which memory was read or written.", "DEV_MEM_COPY_UTIL"),
		share("gr_engine_active_mean", "Share of the time in which the engine was active.", "PROF_GR_ENGINE_ACTIVE"),
		share("sm_active_mean", "Share of the cycles in which a multiprocessor was active.", "PROF_SM_ACTIVE").headline(""),
		share("sm_occupancy_mean", "Share of the warps in use.", "PROF_SM_OCCUPANCY"),
		share("tensor_active_mean", "Share of the cycles in which the tensor cores were active.",
			"PROF_PIPE_TENSOR_ACTIVE").headline(""),
		share("dram_active_mean", "Share of the cycles in which the memory was active.", "PROF_DRAM_ACTIVE").headline(""),
		{Name: "dram_gb_s", Unit: "gb/s", Help: "Memory traffic: the active share of the peak that the user told.",
			Category: Efficiency, Better: HigherBetter,
			Status: Estimate, Formula: "dram active x peak_gb_s", Make: dcgmMemory},
		peak("fb_used_peak", "mebibytes", "Most GPU memory in use.", dcgm+"DEV_FB_USED").headline(""),
		peak("gpu_temp_peak", "celsius", "Highest temperature.", dcgm+"DEV_GPU_TEMP").category(Saturation, LowerBetter),
	}
}

func dcgmMemory(v *View) []Derived {
	family := dcgm + "PROF_DRAM_ACTIVE"
	a, most := v.Amount(meanOver(family)[0]), v.Inputs().PeakGBs
	if a.Series == 0 || most == 0 {
		return nil
	}
	x := a.Value * most
	return []Derived{{Value: x, Shown: x, Families: []string{family}}}
}

func dcgmThrottling() []Rule {
	var out []Rule
	for _, r := range [][3]string{{"power", "POWER", "power"}, {"thermal", "THERMAL", "heat"},
		{"sync_boost", "SYNC_BOOST", "other GPUs"},
		{"board_limit", "BOARD_LIMIT", "the board"}, {"reliability", "RELIABILITY", "reliability"}} {
		out = append(out, rate("throttled_share_"+r[0], "ratio",
			"Share of the time in which the clock was held back for "+r[2]+".",
			times(1e-9, increase(dcgm+"DEV_"+r[1]+"_VIOLATION"))).category(Saturation, LowerBetter))
	}
	out[0] = out[0].headline("")
	return out
}

// dcgmTraffic reads what some deployments export as counters and others as gauges of a rate.
func dcgmTraffic() []Rule {
	var out []Rule
	for _, r := range [][3]string{{"pcie_tx", "PROF_PCIE_TX_BYTES", "Sent over PCIe."},
		{"pcie_rx", "PROF_PCIE_RX_BYTES", "Received over PCIe."},
		{"nvlink_tx", "PROF_NVLINK_TX_BYTES", "Sent over NVLink."},
		{"nvlink_rx", "PROF_NVLINK_RX_BYTES", "Received over NVLink."}} {
		family := dcgm + r[1]
		counted := times(1e-9, increase(family))
		out = append(out, Rule{Name: r[0] + "_gb_s", Unit: "gb/s", Help: r[2], Category: Saturation,
			Formula: family + " / time, or its mean",
			Make: func(v *View) []Derived {
				if s := v.Series(family); len(s) > 0 && isGauge(s[0]) {
					return quotient(v, &Rule{Num: times(1e-9, integral(family))})
				}
				return quotient(v, &Rule{Num: counted})
			}})
	}
	return out
}

// dcgmEvents count what should not happen.
func dcgmEvents() []Rule {
	nvlink := func(of string) string { return dcgm + "DEV_NVLINK_" + of + "_ERROR_COUNT_TOTAL" }
	return []Rule{
		events("ecc_corrected", "Memory errors that were corrected.", []string{dcgm + "DEV_ECC_SBE_VOL_TOTAL"},
			[]string{dcgm + "DEV_ECC_SBE_AGG_TOTAL"}),
		events("ecc_uncorrected", "Memory errors that were not corrected.", []string{dcgm + "DEV_ECC_DBE_VOL_TOTAL"},
			[]string{dcgm + "DEV_ECC_DBE_AGG_TOTAL"}),
		events("rows_remapped", "Memory rows remapped.", []string{dcgm + "DEV_CORRECTABLE_REMAPPED_ROWS",
			dcgm + "DEV_UNCORRECTABLE_REMAPPED_ROWS"}),
		events("pcie_replays", "Retries of PCIe.", []string{dcgm + "DEV_PCIE_REPLAY_COUNTER"}),
		events("nvlink_errors", "Errors of NVLink.", []string{nvlink("CRC_FLIT"), nvlink("CRC_DATA"), nvlink("REPLAY"),
			nvlink("RECOVERY")}),
		{Name: "xid_changed", Unit: "count", Help: "GPUs whose last XID error is another one than at the beginning.",
			Category: Errors, Better: LowerBetter, Headline: true,
			WindowOnly: true, Formula: "series of XID_ERRORS that changed", Make: dcgmXID},
	}
}

// dcgmXID compares the last error code at both ends: the same error again is not seen.
func dcgmXID(v *View) []Derived {
	family := dcgm + "DEV_XID_ERRORS"
	d := Derived{Families: []string{family}, Status: Bound}
	for _, g := range v.Series(family) {
		if g.Last != g.First || g.Min != g.Max {
			d.Value++
		}
	}
	if len(v.Series(family)) == 0 {
		return nil
	}
	d.Shown = d.Value
	return []Derived{d}
}

// events is how much the first group of counters of which there is one gained. Where a family is a gauge the
// difference of its ends stands for that.
func events(name, help string, groups ...[]string) Rule {
	return Rule{Name: name, Unit: "count", Help: help, Category: Errors, Better: LowerBetter, WindowOnly: true,
		Formula: "increase",
		Make: func(v *View) []Derived {
			for _, families := range groups {
				if d := v.increase(families); len(d.Families) > 0 {
					return []Derived{d}
				}
			}
			return nil
		}}
}

func (v *View) increase(families []string) Derived {
	var d Derived
	var counters Amount
	for _, family := range families {
		for _, g := range v.Series(family) {
			d.Families = append(d.Families, family)
			if isGauge(g) {
				d.Value += g.Last - g.First
				continue
			}
			d.Value += g.Total
			counters.note(g.Resets, g.Born)
		}
	}
	if d.Shown = max(0, d.Value); d.Value < 0 {
		d.Flag("negative")
	}
	return d.after(counters)
}
