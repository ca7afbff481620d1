package triton

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// The names of the statistics, in the order of their field numbers in the
// messages InferStatistics, InferBatchStatistics and InferResponseStatistics.
var (
	inferNames = [...]string{"success", "fail", "queue", "compute_input", "compute_infer", "compute_output",
		"cache_hit", "cache_miss"}
	batchNames    = [...]string{"compute_input", "compute_infer", "compute_output"}
	responseNames = [...]string{"compute_infer", "compute_output", "success", "fail", "empty_response", "cancel"}
)

// Indices into inferNames.
const (
	success = iota
	fail
	queue
	computeInput
	computeInfer
	computeOutput
	cacheHit
	cacheMiss
)

// whole is an unsigned integer that may be missing.
type whole struct {
	v   uint64
	has bool
}

func (w *whole) set(v uint64) { w.v, w.has = v, true }

// or is w, or 0 where it is missing and zeros are left out.
func (w whole) or(zeros bool) whole { return whole{w.v, w.has || zeros} }

// duration is a StatisticDuration. has is set when it is there, be it empty.
type duration struct {
	count, ns whole
	has       bool
}

// entry is what a poll says of one version of a model. It is used again for the
// next, so that a poll takes the memory of one.
type entry struct {
	name, version string
	last          whole // ms since 1970
	inferences    whole
	executions    whole
	infer         [len(inferNames)]duration
	batches       []batch
	responses     []response
	memory        []memory
	// zeros is set when numbers that are 0 are left out: it is a protobuf message or its JSON form.
	zeros bool
}

type batch struct {
	size  whole
	stats [len(batchNames)]duration
}

type response struct {
	key   string
	stats [len(responseNames)]duration
}

type memory struct {
	kind  string
	id    int64
	bytes whole
}

func (e *entry) reset() {
	*e = entry{batches: e.batches[:0], responses: e.responses[:0], memory: e.memory[:0]}
}

// settle puts the parts into order and, where zeros are left out, puts them in.
func (e *entry) settle(l *losses) {
	if e.zeros {
		e.inferences, e.executions = e.inferences.or(true), e.executions.or(true)
	}
	fill := func(stats []duration) {
		for i := range stats {
			if d := &stats[i]; d.has {
				d.count, d.ns = d.count.or(e.zeros), d.ns.or(e.zeros)
			}
		}
	}
	fill(e.infer[:])
	for i := range e.batches {
		e.batches[i].size = e.batches[i].size.or(e.zeros)
		fill(e.batches[i].stats[:])
	}
	for i := range e.responses {
		fill(e.responses[i].stats[:])
	}
	slices.SortStableFunc(e.responses, compareResponses)
	e.sumMemory(l)
}

// compareResponses orders indices as numbers; a server sends them as text, "10"
// before "2". Keys that are no numbers come last.
func compareResponses(a, b response) int {
	return cmp.Or(cmp.Compare(index(a.key), index(b.key)), cmp.Compare(a.key, b.key))
}

func index(key string) uint64 {
	n, err := strconv.ParseUint(key, 10, 64)
	if err != nil {
		return math.MaxUint64
	}
	return n
}

// sumMemory adds up entries of the same type and id.
func (e *entry) sumMemory(l *losses) {
	if len(e.memory) < 2 {
		for i := range e.memory {
			e.memory[i].bytes = e.memory[i].bytes.or(e.zeros)
		}
		return
	}
	slices.SortStableFunc(e.memory,
		func(a, b memory) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) })
	kept := e.memory[:0]
	for _, m := range e.memory {
		m.bytes = m.bytes.or(e.zeros)
		last := len(kept) - 1
		if last < 0 || kept[last].kind != m.kind || kept[last].id != m.id {
			kept = append(kept, m)
			continue
		}
		sum, carry := bits.Add64(kept[last].bytes.v, m.bytes.v, 0)
		if carry != 0 {
			l.add(reasonOverflow, 1, "memory of model "+e.name+" is beyond 64 bits")
			continue
		}
		kept[last].bytes = whole{sum, kept[last].bytes.has || m.bytes.has}
	}
	e.memory = kept
}

// discrepancies are how far counters are apart that are the same unless a poll is torn or the server counts otherwise:
// section 1.3 of the design document triton.md.
func (e *entry) discrepancies() [4]uint64 {
	var d [4]uint64
	diff := func(a, b whole) uint64 {
		if !a.has || !b.has {
			return 0
		}
		return max(a.v, b.v) - min(a.v, b.v)
	}
	d[0] = diff(e.infer[success].count, e.infer[queue].count)
	computed := e.infer[success].count
	computed.v -= e.infer[cacheHit].count.v
	d[1] = diff(computed, e.infer[computeInfer].count)
	if len(e.batches) == 0 {
		return d
	}
	var executions, inferences whole
	executions.has, inferences.has = true, true
	for i := range e.batches {
		n := e.batches[i].stats[1].count.v
		executions.v += n
		inferences.v += n * e.batches[i].size.v
	}
	d[2], d[3] = diff(e.executions, executions), diff(e.inferences, inferences)
	return d
}
