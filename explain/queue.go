package explain

// class is what bound the queue of a replica in a timeslice.
type class int

// The classes in the order in which they are tried: the first that fits takes the timeslice.
const (
	coldStart class = iota
	imbalance
	kv
	slots
	unknown
	budget
	classes
)

// queueRows are the rows of the waterfall that classes make.
var queueRows = [classes]string{"cold_start", "queue_imbalance", "queue_kv", "queue_slots", "queue_unknown",
	"queue_budget"}

// deal is how the area under the waiting gauges is dealt out.
type deal struct {
	facts *Facts
	rules *Thresholds
	n     int // timeslices
	// area is by class; total is that of all replicas by timeslice.
	area  [classes]float64
	total []float64
	peak  []float64 // of running requests, by replica
	taken []float64 // from how many on its places are
	until []int     // the last timeslice of each replica whose queue belongs to the cold start
	names []string  // of the class that held most of the queue, by timeslice
	// uncounted reports whether running requests were not shown where nothing else tells why others waited.
	uncounted bool
}

// missing is what would tell what requests waited for.
func (d *deal) missing() []string {
	switch {
	case d.area[unknown] == 0:
		return nil
	case d.uncounted:
		return []string{"running requests"}
	}
	return []string{"KV cache usage"}
}

// dealQueue deals out the queue of timeslices; cold is the last one of a slow lead, -1 for none.
func dealQueue(f *Facts, t *Thresholds, cold int) *deal {
	d := &deal{facts: f, rules: t, n: f.slices(), peak: make([]float64, len(f.Replicas)),
		taken: make([]float64, len(f.Replicas)), until: make([]int, len(f.Replicas))}
	d.total, d.names = make([]float64, d.n), make([]string, d.n)
	for i := range f.Replicas {
		r := &f.Replicas[i]
		for j := range r.Running {
			d.peak[i] = max(d.peak[i], at(r.Running, j))
		}
		d.taken[i] = d.takenFrom(r, d.peak[i])
		d.until[i] = d.emptyAfter(r, cold)
	}
	for j := range d.n {
		idle := d.idle(j)
		var here [classes]float64
		for i := range f.Replicas {
			if w := at(f.Replicas[i].Waiting, j); w > 0 {
				here[d.class(i, j, idle)] += w
			}
		}
		most := 0.0
		for c, v := range here {
			d.area[c] += v
			d.total[j] += v
			if v > most {
				most, d.names[j] = v, queueRows[c]
			}
		}
	}
	return d
}

// emptyAfter returns the timeslice up to which the queue of a replica is that of its cold start: the first after it
// that is empty. A queue that never empties is judged by what binds it later.
func (d *deal) emptyAfter(r *Replica, cold int) int {
	for j := cold + 1; cold >= 0 && j < d.n; j++ {
		if at(r.Waiting, j) <= 0 {
			return j
		}
	}
	return cold
}

// idle reports whether a replica could take more in a timeslice: none waits there, and fewer run than it had.
func (d *deal) idle(j int) bool {
	for i := range d.facts.Replicas {
		r := &d.facts.Replicas[i]
		if len(r.Waiting) > 0 && len(r.Running) > 0 && at(r.Waiting, j) == 0 &&
			at(r.Running, j) <= d.rules.Idle*max(d.peak[i], 1) {
			return true
		}
	}
	return false
}

// Of few places one that is empty for a step or two between two requests is more than a share of many: a real vLLM with
// 3 places and answers of 50 tokens showed 2.82 while 88 waited.
const (
	fewPlaces = 10
	halfPlace = 0.5
	mostly    = 0.8 // of those that waited did so while no more was free
)

// takenFrom is how many requests run at least while all places of a replica are taken.
func (d *deal) takenFrom(r *Replica, peak float64) float64 {
	taken := d.rules.Pinned * peak
	if peak >= fewPlaces {
		return taken
	}
	all, full := 0.0, 0.0
	for j := range d.n {
		w := at(r.Waiting, j)
		if all += w; at(r.Running, j) >= peak-halfPlace {
			full += w
		}
	}
	if all > 0 && full >= mostly*all {
		return min(taken, peak-halfPlace)
	}
	return taken
}

// class is what bound the queue of a replica.
func (d *deal) class(i, j int, idle bool) class {
	r := &d.facts.Replicas[i]
	usage, known := shown(r.KV, j)
	running, counted := shown(r.Running, j)
	switch {
	case j <= d.until[i]:
		return coldStart
	case idle:
		return imbalance
	case known && usage >= d.rules.KVFull, at(r.Preemptions, j) > 0:
		return kv
	case d.peak[i] >= 2 && running >= d.taken[i]:
		return slots
	case !known:
		return unknown
	case !counted: // whether places were free
		d.uncounted = true
		return unknown
	}
	return budget
}

// rows are the shares of the queue by row; nil when no poll saw anyone wait.
func (d *deal) rows(queue float64) map[string]float64 {
	all := 0.0
	for _, v := range d.area {
		all += v
	}
	if all <= 0 {
		return nil
	}
	rows := map[string]float64{}
	for c, v := range d.area {
		if class(c) != coldStart || v > 0 {
			rows[queueRows[c]] = queue * v / all
		}
	}
	if rows["cold_start"] < queue/2 && d.burst() {
		for _, c := range []class{slots, kv, budget, unknown} {
			rows["queue_burst"] += rows[queueRows[c]]
			rows[queueRows[c]] = 0
		}
	}
	return rows
}

// burst reports whether nearly all that waited did so in one stretch within the window, which a burst of arrivals
// made.
func (d *deal) burst() bool {
	peak, sum := 0.0, 0.0
	for _, v := range d.total {
		peak, sum = max(peak, v), sum+v
	}
	from, to := -1, -1
	for j, v := range d.total {
		if v > max(1, 0.05*peak) {
			if from < 0 {
				from = j
			}
			to = j
		}
	}
	if peak < 5 || from < 1 || to >= d.n-max(1, d.n/20) || float64(to-from+1) > d.rules.BurstSpan*float64(d.n) {
		return false
	}
	within, top := 0.0, from
	for j := from; j <= to; j++ {
		within += d.total[j]
		if d.total[j] > d.total[top] {
			top = j
		}
	}
	return within > 0.9*sum && d.rose(from-1, top, to)
}

// rose reports whether more requests came from one timeslice to the top of the queue than outside of the stretch.
func (d *deal) rose(from, top, to int) bool {
	came := arrivals(d.facts, d.n)
	in, out, rest := 0.0, 0.0, 0
	for j, v := range came {
		switch {
		case j < from || j > to:
			out, rest = out+v, rest+1
		case j <= top:
			in += v
		}
	}
	return in/float64(top+1-from) >= d.rules.BurstRate*out/float64(max(rest, 1))
}

// Arrivals are the requests that came in each timeslice, by the balance of flow; nil where a replica does not show what
// waits, runs or ends.
func (f *Facts) Arrivals() []float64 {
	for i := range f.Replicas {
		if r := &f.Replicas[i]; r.Waiting == nil || r.Running == nil || r.Ended == nil {
			return nil
		}
	}
	return arrivals(f, f.slices())
}

// arrivals are the requests that came in each timeslice, by the balance of flow: those that ended and what more are in
// the server.
func arrivals(f *Facts, n int) []float64 {
	came := make([]float64, n)
	before := 0.0
	for j := range n {
		in := 0.0
		for i := range f.Replicas {
			r := &f.Replicas[i]
			in += at(r.Waiting, j) + at(r.Running, j)
			came[j] += at(r.Ended, j)
		}
		if j > 0 {
			came[j] += in - before
		}
		before = in
	}
	return came
}
