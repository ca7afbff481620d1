package torchserve

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/metric"
)

// Spec is what a metrics.yaml says of one metric.
type Spec struct {
	Name, Unit string
	Type       metric.Type
	Dimensions []string // the last one of a frontend metric is the host
}

// maxSpecs is how large a metrics.yaml may be, in bytes.
const maxSpecs = 1 << 20

// ReadSpecs reads a metrics.yaml. As in TorchServe a file with an empty name or
// unit is refused as a whole. Keys it does not know are left alone.
func ReadSpecs(r io.Reader) ([]Spec, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSpecs+1))
	if err != nil {
		return nil, fmt.Errorf("read metrics.yaml: %w", err)
	}
	if len(data) > maxSpecs {
		return nil, fmt.Errorf("read metrics.yaml: it is larger than %d bytes", maxSpecs)
	}
	var file struct {
		Frontend group `yaml:"ts_metrics"`
		Model    group `yaml:"model_metrics"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read metrics.yaml: %w", err)
	}
	specs, err := file.Frontend.specs(nil, "")
	if err == nil {
		specs, err = file.Model.specs(specs, "Hostname") // TorchServe appends it
	}
	if err != nil {
		return nil, err
	}
	if len(specs) == 0 {
		return nil, errors.New("read metrics.yaml: it has no ts_metrics and no model_metrics")
	}
	return specs, nil
}

// group is one half of a metrics.yaml.
type group struct {
	Counter, Gauge, Histogram []entry
}

type entry struct {
	Name, Unit string
	Dimensions []string
}

func (g *group) specs(out []Spec, host string) ([]Spec, error) {
	var errs []error
	add := func(t metric.Type, list []entry) {
		for _, m := range list {
			if m.Name == "" || m.Unit == "" {
				errs = append(errs, fmt.Errorf("read metrics.yaml: metric %q has unit %q: neither may be empty, "+
					"TorchServe refuses such a file", m.Name, m.Unit))
			}
			if host != "" {
				m.Dimensions = append(slices.Clone(m.Dimensions), host)
			}
			out = append(out, Spec{m.Name, m.Unit, t, m.Dimensions})
		}
	}
	add(metric.Counter, g.Counter)
	add(metric.Gauge, g.Gauge)
	add(metric.Histogram, g.Histogram)
	return out, errors.Join(errs...)
}

// Defaults returns the metrics of TorchServe's own metrics.yaml, release 0.12.0.
func Defaults() []Spec {
	var out []Spec
	add := func(t metric.Type, unit, dimensions, names string) {
		for name := range strings.FieldsSeq(names) {
			out = append(out, Spec{name, unit, t, strings.Fields(dimensions)})
		}
	}
	const host, gpu = "Level Hostname", "Level DeviceId Hostname"
	add(metric.Counter, "Count", host, "Requests2XX Requests4XX Requests5XX")
	add(metric.Counter, "Count", "model_name model_version hostname", "ts_inference_requests_total")
	add(metric.Counter, "Microseconds", "model_name model_version hostname",
		"ts_inference_latency_microseconds ts_queue_latency_microseconds")
	add(metric.Gauge, "Milliseconds", host, "QueueTime WorkerThreadTime")
	add(metric.Gauge, "Milliseconds", "WorkerName Level Hostname", "WorkerLoadTime")
	add(metric.Gauge, "Percent", host, "CPUUtilization MemoryUtilization DiskUtilization")
	add(metric.Gauge, "Megabytes", host, "MemoryUsed MemoryAvailable")
	add(metric.Gauge, "Gigabytes", host, "DiskUsage DiskAvailable")
	add(metric.Gauge, "Percent", gpu, "GPUUtilization GPUMemoryUtilization")
	add(metric.Gauge, "Megabytes", gpu, "GPUMemoryUsed")
	add(metric.Gauge, "ms", "ModelName Level Hostname", "HandlerTime PredictionTime")
	return out
}

// unitNames are the units that TorchServe and handlers write, by the name used
// here. What psutil calls megabytes is divided by 1024 twice.
var unitNames = map[string]string{
	"ms": "milliseconds", "milliseconds": "milliseconds", "millisecond": "milliseconds",
	"us": "microseconds", "microseconds": "microseconds", "microsecond": "microseconds",
	"ns": "nanoseconds", "nanoseconds": "nanoseconds",
	"s": "seconds", "seconds": "seconds", "second": "seconds",
	"bytes": "bytes", "kilobytes": "kibibytes", "megabytes": "mebibytes", "gigabytes": "gibibytes",
	"terabytes": "tebibytes",
	"percent":   "percent", "count": "", "ratio": "ratio",
}

// unitFactors turn a unit into the one that sums and comparisons are made in.
var unitFactors = map[string]float64{
	"milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9,
	"kibibytes": 1 << 10, "mebibytes": 1 << 20, "gibibytes": 1 << 30, "tebibytes": 1 << 40,
}

// Unit returns the name used here for a unit as TorchServe writes it, and the factor that makes seconds or bytes of it;
// 1 for other units. An unknown unit keeps its name. Recorded values are never rescaled.
func Unit(written string) (name string, factor float64) {
	name, ok := unitNames[strings.ToLower(written)]
	if !ok {
		name = written
	}
	factor, ok = unitFactors[name]
	if !ok {
		factor = 1
	}
	return name, factor
}

// guess is the type of a metric nobody declares: increments of a count are whole and not negative.
func guess(l *Line) metric.Type {
	if strings.EqualFold(l.Unit, "count") && l.Value >= 0 && l.Value == math.Trunc(l.Value) {
		return metric.Counter
	}
	return metric.Gauge
}

// hostLabel is the name under which prometheus mode shows the host.
func hostLabel(name string, s *Spec) string {
	switch {
	case s != nil && len(s.Dimensions) > 0:
		return s.Dimensions[len(s.Dimensions)-1]
	case strings.HasPrefix(name, "ts_"):
		return "hostname"
	}
	return "Hostname"
}
