package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// familyID is an index into families.
type familyID uint8

const (
	cpuSeconds familyID = iota
	cpuUtilization
	threadUtilization
	cpuLimit
	residentMemory
	threads
	openFiles
	processes
	hostCPU
	hostMemory
	hostAvailable
	hostReceived
	hostSent
)

// families have the words of node_exporter and of the process collectors of clients for Prometheus, under a prefix of
// their own: a server's process_ and node_ families are another's.
var families = [...]metric.Family{
	cpuSeconds: {Name: "client_process_cpu_seconds", Type: metric.Counter, Unit: "seconds",
		Help: "CPU time of the load generator's processes."},
	cpuUtilization: {Name: "client_process_cpu_utilization", Type: metric.Gauge, Unit: "ratio",
		Help: "Share of the CPUs in use that it may use, since the poll before."},
	threadUtilization: {Name: "client_process_thread_utilization", Type: metric.Gauge, Unit: "ratio",
		Help: "Share of the time in which its busiest thread ran or waited for a CPU, since the poll before."},
	cpuLimit: {Name: "client_process_cpu_limit", Type: metric.Gauge, Unit: "cores",
		Help: "CPUs that it may use: affinity and control groups."},
	residentMemory: {Name: "client_process_resident_memory_bytes", Type: metric.Gauge, Unit: "bytes",
		Help: "Memory of its processes; shared pages count for each."},
	threads:   {Name: "client_process_threads", Type: metric.Gauge, Help: "Threads of its processes."},
	openFiles: {Name: "client_process_open_fds", Type: metric.Gauge, Help: "Descriptors that they hold."},
	processes: {Name: "client_processes", Type: metric.Gauge, Help: "Processes of the load generator."},
	hostCPU: {Name: "client_host_cpu_seconds", Type: metric.Counter, Unit: "seconds",
		Help: "Time of all CPUs by mode."},
	hostMemory:    {Name: "client_host_memory_total_bytes", Type: metric.Gauge, Unit: "bytes", Help: "Memory."},
	hostAvailable: {Name: "client_host_memory_available_bytes", Type: metric.Gauge, Unit: "bytes", Help: "Memory free."},
	hostReceived: {Name: "client_host_network_receive_bytes", Type: metric.Counter, Unit: "bytes",
		Help: "Bytes received by interface."},
	hostSent: {Name: "client_host_network_transmit_bytes", Type: metric.Counter, Unit: "bytes",
		Help: "Bytes sent by interface."},
}

func (s *Source) counter(id familyID, v float64, labels ...metric.Label) { s.set(id, v, labels) }
func (s *Source) gauge(id familyID, v float64)                           { s.set(id, v, nil) }

func (s *Source) set(id familyID, v float64, labels []metric.Label) {
	f := &families[id]
	if s.o.Keep != nil && !s.o.Keep(f.Name) {
		return
	}
	series := s.g.Series(s.g.Family(f.Name, f.Type, f.Help, f.Unit), metric.NewLabels(labels...))
	s.g.Set(s.g.Slot(series, metric.SampleID{Role: metric.RoleValue}), v)
}

// host gives CPU, memory and network of the machine.
func (s *Source) host() {
	s.hostTimes(s.text("stat"))
	s.hostMemory(s.text("meminfo"))
	s.hostNetwork(s.text(filepath.Join("net", "dev")))
}

func (s *Source) text(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.o.Proc, name)) // what is not there is not told
	return string(text)
}

// modes are the columns of the first line of /proc/stat; what guests take is within user.
var modes = [...]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

func (s *Source) hostTimes(text string) {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) == 0 || f[0] != "cpu" {
		return
	}
	for i, mode := range modes[:min(len(modes), len(f)-1)] {
		if v, err := strconv.ParseUint(f[i+1], 10, 64); err == nil {
			s.counter(hostCPU, float64(v)/ticksPerSecond, metric.Label{Name: "mode", Value: mode})
		}
	}
}

func (s *Source) hostMemory(text string) {
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		id, ok := map[string]familyID{"MemTotal": hostMemory, "MemAvailable": hostAvailable}[name]
		if f := strings.Fields(rest); ok && len(f) == 2 && f[1] == "kB" {
			if v, err := strconv.ParseUint(f[0], 10, 64); err == nil {
				s.gauge(id, float64(v)*1024)
			}
		}
	}
}

// maxDevices bounds the interfaces of which traffic is told.
const maxDevices = 32

// hostNetwork tells of interfaces that ever had traffic.
func (s *Source) hostNetwork(text string) {
	told := 0
	for line := range strings.Lines(text) {
		device, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !ok || len(f) < 9 || told == maxDevices {
			continue
		}
		in, err := strconv.ParseUint(f[0], 10, 64)
		out, err2 := strconv.ParseUint(f[8], 10, 64)
		if err != nil || err2 != nil || in+out == 0 {
			continue
		}
		told++
		label := metric.Label{Name: "device", Value: metric.Clean(strings.TrimSpace(device), 64)}
		s.counter(hostReceived, float64(in), label)
		s.counter(hostSent, float64(out), label)
	}
}
