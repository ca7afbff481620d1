package simulate

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tritonStat numbers the durations of the statistics extension in the order of
// its JSON.
type tritonStat int

const (
	statSuccess tritonStat = iota
	statFail
	statQueue
	statInput
	statInfer
	statOutput
	statHit
	statMiss
	tritonStatCount
)

func (s tritonStat) String() string {
	return [tritonStatCount]string{"success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"}[s]
}

// tritonStats are what the statistics extension tells of a model: the same as
// the counters, in nanoseconds, and the executions by the size of the batch.
type tritonStats struct {
	inferences, executions int
	last                   time.Duration // when the last batch ended
	durations              [tritonStatCount]tritonDuration
	batches                map[int]*[3]tritonDuration // input, infer, output
}

type tritonDuration struct{ count, ns int64 }

func (d *tritonDuration) add(took time.Duration) {
	d.count++
	d.ns += int64(took)
}

func (s *tritonStats) count(what tritonStat, took time.Duration) { s.durations[what].add(took) }

// batch notes the execution of a batch of that size, in which each request took
// what t did.
func (s *tritonStats) batch(size int, t *task, w *world) {
	if s.batches == nil {
		s.batches = map[int]*[3]tritonDuration{}
	}
	if s.batches[size] == nil {
		s.batches[size] = &[3]tritonDuration{}
	}
	for i, took := range [3]time.Duration{t.input, t.infer, t.give} {
		s.batches[size][i].add(took)
	}
	s.executions++
	s.last = w.now
}

// servedItems is the size of a batch without the requests that fail.
func servedItems(batch []*task) (n int) {
	for _, t := range batch {
		if t.Reason == "stop" {
			n += t.items
		}
	}
	return n
}

// route answers the paths of the inference port that tell of the server.
func (m *tritonModel) route(u *url.URL) *answer {
	const list = "/v2/models/stats"
	switch {
	case u.Path == "/v2":
		return jsonAnswer(http.StatusOK, `{"name":"triton","version":"2.50.0","extensions":["statistics","model_repository"]}`)
	case u.Path == list:
		return m.statistics("", "")
	case strings.HasPrefix(u.Path, "/v2/models/") && strings.HasSuffix(u.Path, "/stats"):
		model := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/v2/models/"), "/stats")
		model, version, _ := strings.Cut(model, "/versions/")
		return m.statistics(model, version)
	}
	return nil
}

// statistics tells of the loaded models, of one or of all.
func (m *tritonModel) statistics(model, version string) *answer {
	var entries []string
	for _, s := range append(m.models[:len(m.models):len(m.models)], m.canary) {
		if s != nil && (model == "" || model == s.name) && (version == "" || version == s.version) {
			entries = append(entries, s.statistics(m.w))
		}
	}
	if model != "" && len(entries) == 0 {
		return jsonAnswer(http.StatusBadRequest, `{"error":"requested model is not available"}`)
	}
	return jsonAnswer(http.StatusOK, `{"model_stats":[`+strings.Join(entries, ",")+`]}`)
}

func (s *tritonServed) statistics(w *world) string {
	t := &s.stats
	var last int64 // ms since 1970, 0 when nothing was executed
	if t.executions > 0 {
		last = w.origin.Add(t.last).UnixMilli()
	}
	b := []byte(`{"name":` + strconv.Quote(s.name) + `,"version":` + strconv.Quote(s.version) + `,`)
	number := func(name string, v int64) { b = append(strconv.AppendInt(append(b, `"`+name+`":`...), v, 10), ',') }
	duration := func(name string, d tritonDuration) {
		b = append(b, `"`+name+`":{`...)
		number("count", d.count)
		number("ns", d.ns)
		b[len(b)-1] = '}'
		b = append(b, ',')
	}
	number("last_inference", last)
	number("inference_count", int64(t.inferences))
	number("execution_count", int64(t.executions))
	b = append(b, `"inference_stats":{`...)
	for what, d := range t.durations {
		duration(tritonStat(what).String(), d)
	}
	b[len(b)-1] = '}'
	b = append(b, `,"response_stats":{},"batch_stats":[`...)
	for i, size := range slices.Sorted(maps.Keys(t.batches)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		number("batch_size", int64(size))
		for k, what := range []tritonStat{statInput, statInfer, statOutput} {
			duration(what.String(), t.batches[size][k])
		}
		b[len(b)-1] = '}'
	}
	return string(append(b, `],"memory_usage":[]}`...))
}
