package simulate

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// dcgmProfile is the DCGM exporter of a host with Options.Engines GPUs. It reads
// them every 30 s and repeats itself in between. Options.Rate is their load: ten
// requests per second and GPU keep it busy. FlagsOff leaves out the profiling
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
	field  map[string]*series
	energy float64 // mJ
}

type dcgmField struct{ name, typ, help string }

// dcgmFields are those of the default list of the exporter.
func dcgmFields(profiling bool) []dcgmField {
	fields := []dcgmField{
		{"DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."}, {"DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz)."},
		{"DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C)."}, {"DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."},
		{"DEV_POWER_USAGE", "gauge", "Power draw (in W)."},
		{"DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Total energy consumption since boot (in mJ)."},
		{"DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries."},
		{"DEV_GPU_UTIL", "gauge", "GPU utilization (in %)."}, {"DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %)."},
		{"DEV_ENC_UTIL", "gauge", "Encoder utilization (in %)."}, {"DEV_DEC_UTIL", "gauge", "Decoder utilization (in %)."},
		{"DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered."},
		{"DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB)."}, {"DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB)."},
		{"DEV_POWER_VIOLATION", "counter", "Throttling duration due to power constraints (in ns)."},
		{"DEV_VGPU_LICENSE_STATUS", "gauge", "vGPU License status"},
	}
	if profiling {
		fields = append(fields, dcgmField{"PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active."},
			dcgmField{"PROF_PIPE_TENSOR_ACTIVE", "gauge", "Ratio of cycles the tensor (HMMA) pipe is active."},
			dcgmField{"PROF_DRAM_ACTIVE", "gauge", "Ratio of cycles the device memory interface is active sending or receiving data."},
			dcgmField{"PROF_PCIE_TX_BYTES", "gauge", "The rate of data transmitted over the PCIe bus (in bytes per second)."})
	}
	return fields
}

func startDCGM(w *world) (model, error) {
	w.reg.d = dcgmDialect()
	m := &dcgmModel{w: w, rng: w.stream(streamPipeline)}
	for range w.opt.Engines {
		m.gpus = append(m.gpus, &dcgmGPU{field: map[string]*series{}})
	}
	for _, f := range dcgmFields(!w.opt.FlagsOff) {
		l := []string{"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"}
		of := w.reg.gauge
		if f.typ == "counter" {
			of = w.reg.counter
		}
		family := of("DCGM_FI_"+f.name, f.help, l...)
		for i, g := range m.gpus {
			n := strconv.Itoa(i)
			g.field[f.name] = family.with(0, n, "GPU-5f1c2d3e-0b1a-4c9d-8e7f-00112233445"+n, "00000000:0"+n+":00.0", "nvidia"+n,
				w.opt.Model, "gpu-host-0", "570.86.15")
		}
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
		m.set(g, util, power)
	}
	m.read = true
	m.w.at(m.w.now+dcgmInterval, m.poll)
}

func (m *dcgmModel) set(g *dcgmGPU, util, power float64) {
	fixed := func(v float64) float64 { return math.Round(v*1e6) / 1e6 }
	for name, v := range map[string]float64{
		"DEV_SM_CLOCK": 345 + 15*math.Round(109*util), "DEV_MEM_CLOCK": 2619, "DEV_GPU_TEMP": math.Round(31 + 38*util),
		// What this GPU does not have is not absent: it is a number that says so.
		"DEV_MEMORY_TEMP": dcgmBlank, "DEV_VGPU_LICENSE_STATUS": dcgmBlank,
		"DEV_POWER_USAGE": power, "DEV_TOTAL_ENERGY_CONSUMPTION": math.Round(g.energy),
		"DEV_GPU_UTIL": math.Round(100 * util), "DEV_MEM_COPY_UTIL": math.Round(60 * util), "DEV_FB_FREE": 10342, "DEV_FB_USED": 70746,
		"PROF_GR_ENGINE_ACTIVE": fixed(util), "PROF_PIPE_TENSOR_ACTIVE": fixed(0.6 * util), "PROF_DRAM_ACTIVE": fixed(0.7 * util),
		"PROF_PCIE_TX_BYTES": math.Round(3.1e8 * util),
	} {
		if s := g.field[name]; s != nil {
			s.set(v)
		}
	}
}

func (m *dcgmModel) refresh() {}
