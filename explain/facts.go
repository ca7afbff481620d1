package explain

import "github.com/scrapestat/scrapestat/metric"

// Facts are what an engine showed over the window. A time is in seconds. What the engine does not show is missing: a
// nil slice, a key that is not there, NaN within a slice; it is never zero.
type Facts struct {
	Engine string
	// Of is what part of the engine, a model or a stage; it has no labels where there is one part.
	Of metric.Labels
	// Sums are times of requests by their name: e2e, queue, prefill, decode, inference, ttft and itl (of gaps between
	// tokens).
	Sums     map[string]Total
	Replicas []Replica // at most one value a timeslice each, all of the same timeslices
	Losses   Losses
	Restarts int
	// Slice is the width of a timeslice in seconds.
	Slice float64
	// Gaps are the cumulative counts of gaps between tokens by the upper bounds of their buckets, the last one +Inf; Gap
	// is the median of them. Both are of the whole window; nil and 0 where the engine does not show them.
	Gaps []Bucket
	Gap  float64
	// Drafts is how many drafts of speculative decoding there were, whose gaps are uneven by design.
	Drafts float64
	// Stages are those of a pipeline, in their order, and Hops the time between them; nil for another engine.
	Stages []Stage
	Hops   float64
	// ClientCPU and ClientThread are by timeslice the shares of time in which the load generator used the CPUs that it
	// may use, and in which its busiest thread ran or waited for one; nil where it was not recorded.
	ClientCPU, ClientThread []float64
	Quantities              []Quantity
	Beside                  []Quantity // of other servers of the run, and of our own polls
	// Uncertain are times that the engine shows and that cannot be told, with why.
	Uncertain []string
	Unseen    []string // losses that it would not show, with why
	Notes     []string // what else is to be told
}

// Stage is a stage of a pipeline: the mean time of a request in it, and the share of that in its queue.
type Stage struct {
	Name            string
	Seconds, Queued float64
}

// Quantity is what an engine derives of its families: its canonical id, its name there, what of, and what it was made
// of.
type Quantity struct {
	ID, Name string
	Labels   metric.Labels
	Value    float64
	Unit     string // as package units names it
	Families []string
}

// Total is the sum of observations and their number.
type Total struct{ Sum, Count float64 }

// Bucket is how many observations are at most Upper.
type Bucket struct{ Upper, Count float64 }

// Replica is a scheduler of an engine: an endpoint, or what a replica label tells apart in it. Each line has a value a
// timeslice: the mean of a gauge, the increase of a counter.
type Replica struct {
	ID string
	// Waiting and Running are requests, KV the share of the KV cache in use.
	Waiting, Running, KV []float64
	Preemptions, Ended   []float64
	// Steps are iterations of the scheduler, StepTokens the tokens that they computed, Generated those of answers.
	Steps, StepTokens, Generated []float64
	// GapCount and GapSum are the gaps between tokens.
	GapCount, GapSum []float64
}

// Losses are the requests of the window that did not end well, beside all that ended. Ended has those that an engine
// took; Refused are those that it did not; Answers and Answers5xx are those of its HTTP server.
type Losses struct{ Ended, Errors, Aborts, Refused, Answers, Answers5xx float64 }

// shown returns the value of a timeslice and reports whether there is one: what is not a number from 0 up is none.
func shown(line []float64, j int) (float64, bool) {
	if j >= len(line) || !finiteUp(line[j]) {
		return 0, false
	}
	return line[j], true
}

// at returns the value of a timeslice, 0 where it is not shown.
func at(line []float64, j int) float64 {
	v, _ := shown(line, j)
	return v
}

// finiteUp reports whether a value is a number from 0 up to those that are no longer counted one by one: sums of larger
// ones would overflow.
func finiteUp(v float64) bool { return v >= 0 && v <= 1<<53 }

// slices is how many timeslices all replicas with a queue have.
func (f *Facts) slices() int {
	n := 0
	for i := range f.Replicas {
		if l := len(f.Replicas[i].Waiting); l > 0 && (n == 0 || l < n) {
			n = l
		}
	}
	return n
}

// mean is the sum of a time by the requests that ended.
func (f *Facts) mean(name string) float64 { return f.Sums[name].Sum / f.Sums["e2e"].Count }

// own is the sum of a time by how often it was observed, not a number for none.
func (f *Facts) own(name string) float64 { return f.Sums[name].Sum / f.Sums[name].Count }

// has reports whether an engine shows a time.
func (f *Facts) has(name string) bool {
	_, ok := f.Sums[name]
	return ok
}
