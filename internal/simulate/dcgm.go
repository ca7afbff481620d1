package simulate

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// dcgmProfile is the DCGM exporter of a host with Options.Engines GPUs. It reads them every 30 s and repeats itself in
// between. Options.Rate is their load: ten requests per second and GPU keep it busy. FlagsOff leaves out the profiling
// fields (DCGM_FI_PROF_*).
func dcgmProfile() profile {
	return profile{name: "dcgm", model: "NVIDIA H100 80GB HBM3", flag: "DCGM_FI_PROF_*", start: startDCGM}
}

// dcgmInterval is the exporter's own (DCGM_EXPORTER_INTERVAL).
const dcgmInterval = 30 * time.Second

type dcgmModel struct {
	w    *world
	rng  *rand.Rand
	gpus []*dcgmGPU
	jobs int // since the last reading
	read bool
}

type dcgmGPU struct {
	*panel
	energy float64 // mJ
}

func startDCGM(w *world) (model, error) {
	w.reg.d = dcgmDialect()
	m := &dcgmModel{w: w, rng: w.stream(streamPipeline)}
	v := variant{labels: map[string][]string{
		"": {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"},
	}}
	if !w.opt.FlagsOff {
		v.with = []string{"profiling"}
	}
	t := w.table("dcgm", v)
	for i := range w.opt.Engines {
		n := strconv.Itoa(i)
		m.gpus = append(m.gpus, &dcgmGPU{panel: t.panel("", n, "GPU-5f1c2d3e-0b1a-4c9d-8e7f-00112233445"+n,
			"00000000:0"+n+":00.0", "nvidia"+n, w.opt.Model, "gpu-host-0", "570.86.15")})
	}
	m.poll()
	w.arrivals = newArrivals(w, func() { m.jobs++ })
	return m, nil
}

// poll reads the GPUs, and comes again.
func (m *dcgmModel) poll() {
	elapsed := seconds(dcgmInterval)
	share := math.Min(1, float64(m.jobs)/elapsed/10/float64(len(m.gpus)))
	if !m.read {
		share = math.Min(1, m.w.opt.Rate/10/float64(len(m.gpus)))
	}
	m.jobs = 0
	for _, g := range m.gpus {
		util := math.Max(0, math.Min(1, share*(1+0.05*m.rng.NormFloat64())))
		power := math.Round((70+560*util)*1e3) / 1e3
		if m.read {
			g.energy += power * elapsed * 1e3
		} else {
			g.energy = 128996013
		}
		g.show(util, power)
	}
	m.read = true
	m.w.at(m.w.now+dcgmInterval, m.poll)
}

// show sets what was read.
func (g *dcgmGPU) show(util, power float64) {
	fixed := func(v float64) float64 { return math.Round(v*1e6) / 1e6 }
	for name, v := range map[string]float64{
		"DEV_SM_CLOCK": 345 + 15*math.Round(109*util), "DEV_MEM_CLOCK": 2619, "DEV_GPU_TEMP": math.Round(31 + 38*util),
		// What this GPU does not have is not absent: it is a number that says so.
		"DEV_MEMORY_TEMP": dcgmBlank, "DEV_VGPU_LICENSE_STATUS": dcgmBlank,
		"DEV_POWER_USAGE": power, "DEV_TOTAL_ENERGY_CONSUMPTION": math.Round(g.energy),
		"DEV_GPU_UTIL":      math.Round(100 * util),
		"DEV_MEM_COPY_UTIL": math.Round(60 * util), "DEV_FB_FREE": 10342, "DEV_FB_USED": 70746,
		"PROF_GR_ENGINE_ACTIVE": fixed(util), "PROF_PIPE_TENSOR_ACTIVE": fixed(0.6 * util),
		"PROF_DRAM_ACTIVE":   fixed(0.7 * util),
		"PROF_PCIE_TX_BYTES": math.Round(3.1e8 * util),
	} {
		g.set(name, v)
	}
}

func (m *dcgmModel) refresh() {}
