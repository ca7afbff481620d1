package triton

import "github.com/scrapestat/scrapestat/metric"

// familyID is an index into familyTable.
type familyID uint8

const (
	inferences familyID = iota
	executions
	requests
	requestNS
	batchExecutions
	batchNS
	responses
	responseNS
	lastInference
	memoryBytes
	modelReady
	tornReads
	ensembleSteps
)

// familyTable has the families of section 3.1 of the design document triton.md,
// and two of our own: torn reads, and what an ensemble is made of. Names keep
// their _total: there is no exposition whose rules would take it off.
var familyTable = [...]struct {
	metric.Family
	labels [2]string // beyond model and version
}{
	inferences: {Family: counterOf("inferences_total", "inferences", "Inferences made, a batch of n counting n. "+
		"Cache hits are none.")},
	executions: {Family: counterOf("executions_total", "executions", "Batch executions of the model.")},
	requests: {Family: counterOf("requests_total", "requests", "Requests by statistic."),
		labels: [2]string{"stat"}},
	requestNS: {Family: counterOf("request_duration_nanoseconds_total", "nanoseconds",
		"Time of requests by statistic."), labels: [2]string{"stat"}},
	batchExecutions: {Family: counterOf("batch_executions_total", "executions", "Executions by batch size."),
		labels: [2]string{"batch_size", "stat"}},
	batchNS: {Family: counterOf("batch_duration_nanoseconds_total", "nanoseconds",
		"Wall time of executions by batch size."), labels: [2]string{"batch_size", "stat"}},
	responses: {Family: counterOf("responses_total", "responses", "Responses of decoupled models by index."),
		labels: [2]string{"response", "stat"}},
	responseNS: {Family: counterOf("response_duration_nanoseconds_total", "nanoseconds",
		"Time of responses of decoupled models by index."), labels: [2]string{"response", "stat"}},
	lastInference: {Family: gaugeOf("last_inference_timestamp_seconds", "seconds",
		"Time of the last inference since 1970.")},
	memoryBytes: {Family: gaugeOf("memory_usage_bytes", "bytes", "Memory that the model holds."),
		labels: [2]string{"memory_type", "memory_id"}},
	modelReady: {Family: gaugeOf("model_ready", "", "1 while the server lists the model, 0 at the first poll after "+
		"it vanished.")},
	tornReads: {Family: counterOf("torn_reads_total", "polls", "Polls that caught the server between two of its "+
		"counters.")},
	ensembleSteps: {Family: gaugeOf("ensemble_steps", "steps", "Steps of an ensemble that call the composing model."),
		labels: [2]string{"composing"}},
}

func counterOf(name, unit, help string) metric.Family {
	return metric.Family{Name: "triton_stats_" + name, Type: metric.Counter, Unit: unit, Help: help}
}

func gaugeOf(name, unit, help string) metric.Family {
	return metric.Family{Name: "triton_stats_" + name, Type: metric.Gauge, Unit: unit, Help: help}
}

// seriesKey names a series: x and y are the values of the further labels.
type seriesKey struct {
	family         familyID
	model, version string
	x, y           string
}

func (k seriesKey) labels() metric.Labels {
	pairs := make([]metric.Label, 0, 4)
	pairs = append(pairs, metric.Label{Name: "model", Value: k.model}, metric.Label{Name: "version", Value: k.version})
	for i, name := range familyTable[k.family].labels {
		if name != "" {
			pairs = append(pairs, metric.Label{Name: name, Value: [2]string{k.x, k.y}[i]})
		}
	}
	return metric.NewLabels(pairs...)
}
