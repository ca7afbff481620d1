package simulate

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// tritonStat numbers the durations of the statistics extension in the order of its JSON.
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
	return [tritonStatCount]string{"success", "fail", "queue", "compute_input", "compute_infer", "compute_output",
		"cache_hit", "cache_miss"}[s]
}

// tritonStats are what the statistics extension tells of a model: the same as
// the counters, in nanoseconds, and the executions by the size of the batch.
type tritonStats struct {
	inferences, executions int
	last                   time.Duration // when the last batch ended
	durations              [tritonStatCount]tritonDuration
	batches                map[int]*[3]tritonDuration // input, infer, output

	// What the last request to end added, and when: a torn read misses its time.
	ended time.Duration
	tear  [tritonStatCount]int64
}

// begin starts the account of a request that ends now.
func (s *tritonStats) begin(now time.Duration) { s.ended, s.tear = now, [tritonStatCount]int64{} }

// shown returns the durations as a poll reads them: within tear of the end of a
// request its success has moved on, and neither its queue nor any time has.
func (s *tritonStats) shown(now, tear time.Duration) [tritonStatCount]tritonDuration {
	out := s.durations
	if tear <= 0 || now-s.ended >= tear || out[statQueue].count == 0 {
		return out
	}
	for i := range out {
		out[i].ns -= s.tear[i]
	}
	out[statQueue].count--
	return out
}

type tritonDuration struct{ count, ns int64 }

func (d *tritonDuration) add(took time.Duration) {
	d.count++
	d.ns += int64(took)
}

func (s *tritonStats) count(what tritonStat, took time.Duration) {
	s.durations[what].add(took)
	s.tear[what] += int64(took)
}

// batch notes the execution of a batch of that size, in which each request took what t did.
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

// memory is what the model holds of the GPU, in bytes; the ensemble holds nothing.
func (s *tritonServed) memory() uint64 {
	if s.batcher == nil {
		return 0
	}
	return uint64(256+s.batcher.largest) << 20
}

// lastInference is in ms since 1970, 0 when nothing was executed.
func (s *tritonServed) lastInference(w *world) int64 {
	if s.stats.executions == 0 {
		return 0
	}
	return w.origin.Add(s.stats.last).UnixMilli()
}

// statistics is the entry of a model as the server writes it.
func (s *tritonServed) statistics(w *world) string {
	t := &s.stats
	b := []byte(`{"name":` + strconv.Quote(s.name) + `,"version":` + strconv.Quote(s.version) + `,`)
	number := func(name string, v int64) { b = append(strconv.AppendInt(append(b, `"`+name+`":`...), v, 10), ',') }
	duration := func(name string, d tritonDuration) {
		b = append(b, `"`+name+`":{`...)
		number("count", d.count)
		number("ns", d.ns)
		b[len(b)-1] = '}'
		b = append(b, ',')
	}
	number("last_inference", s.lastInference(w))
	number("inference_count", int64(t.inferences))
	number("execution_count", int64(t.executions))
	b = append(b, `"inference_stats":{`...)
	for what, d := range t.shown(w.now, w.opt.Tear) {
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
	b = append(b, `],"memory_usage":[`...)
	if n := s.memory(); n > 0 {
		b = append(strconv.AppendUint(append(b, `{"type":"GPU","id":0,"byte_size":`...), n, 10), '}')
	}
	return string(append(b, "]}"...))
}
