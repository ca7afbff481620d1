package triton

import (
	"net/http"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

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
	serverInfo
)

// familyTable has the families of section 3.1 of the design document triton.md, and three of our own: torn reads, what
// an ensemble is made of, the server's version. Names keep their _total: no exposition has a rule that would take it
// off.
var familyTable = [...]family{
	inferences: counterOf("inferences_total", "inferences", "Inferences made, a batch of n counting n. Cache hits "+
		"are none."),
	executions: counterOf("executions_total", "executions", "Batch executions of the model."),
	requests:   counterOf("requests_total", "requests", "Requests by statistic.", "stat"),
	requestNS: counterOf("request_duration_nanoseconds_total", "nanoseconds", "Time of requests by statistic.",
		"stat"),
	batchExecutions: counterOf("batch_executions_total", "executions", "Executions by batch size.", "batch_size", "stat"),
	batchNS: counterOf("batch_duration_nanoseconds_total", "nanoseconds", "Wall time of executions by batch size.",
		"batch_size", "stat"),
	responses: counterOf("responses_total", "responses", "Responses of decoupled models by index.", "response", "stat"),
	responseNS: counterOf("response_duration_nanoseconds_total", "nanoseconds",
		"Time of responses of decoupled models by index.", "response", "stat"),
	lastInference: gaugeOf("last_inference_timestamp_seconds", "seconds", "Time of the last inference since 1970."),
	memoryBytes:   gaugeOf("memory_usage_bytes", "bytes", "Memory that the model holds.", "memory_type", "memory_id"),
	modelReady: gaugeOf("model_ready", "",
		"1 while the server lists the model, 0 at the first poll after it vanished."),
	tornReads: counterOf("torn_reads_total", "polls", "Polls that caught the server between two of its counters."),
	ensembleSteps: gaugeOf("ensemble_steps", "steps", "Steps of an ensemble that call the composing model, in that "+
		"version; -1 is the newest that is ready.", "composing", "composing_version"),
	serverInfo: gaugeOf("server_info", "", "1, with the version of the server.", "server_version"),
}

// newestReady is the version that steps call which name none.
const newestReady = "-1"

// family is a family and the labels of its series beyond model and version.
type family struct {
	metric.Family
	labels []string
}

func counterOf(name, unit, help string, labels ...string) family {
	return family{metric.Family{Name: "triton_stats_" + name, Type: metric.Counter, Unit: unit, Help: help}, labels}
}

func gaugeOf(name, unit, help string, labels ...string) family {
	return family{metric.Family{Name: "triton_stats_" + name, Type: metric.Gauge, Unit: unit, Help: help}, labels}
}

// seriesKey names a series: x and y are the values of the further labels.
type seriesKey struct {
	family         familyID
	model, version string
	x, y           string
}

func (k seriesKey) labels() metric.Labels {
	pairs := make([]metric.Label, 0, 4)
	if k.family != serverInfo {
		pairs = append(pairs, metric.Label{Name: "model", Value: k.model}, metric.Label{Name: "version", Value: k.version})
	}
	for i, name := range familyTable[k.family].labels {
		pairs = append(pairs, metric.Label{Name: name, Value: [2]string{k.x, k.y}[i]})
	}
	return metric.NewLabels(pairs...)
}

// maxText bounds the text of an error.
const maxText = 400

// censor replaces what no message may show: the values of the headers and the userinfo that are sent.
func censor(header http.Header, a *address) *strings.Replacer {
	var pairs []string
	add := func(s string) {
		if len(s) >= 4 {
			pairs = append(pairs, s, "xxxxx")
		}
	}
	for _, values := range header {
		for _, v := range values {
			add(v)
			if _, token, ok := strings.Cut(v, " "); ok {
				add(token)
			}
		}
	}
	if a.user != nil {
		password, _ := a.user.Password()
		add(password)
		add(a.user.Username())
	}
	return strings.NewReplacer(pairs...)
}

// redact takes the secrets of an address and its options out of a text.
func redact(o *Options, secrets *strings.Replacer, text string) string {
	if o.Redact != nil {
		text = o.Redact(text)
	}
	return secrets.Replace(text)
}
