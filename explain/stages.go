package explain

import "strings"

// The rows of a pipeline are its queue, the queue of each stage and the rest of the time in it, the hops between them,
// and by how much stages overlap, which is negative.
const (
	admission  = "queue_admission"
	stageQueue = "stage_queue"
	stageTime  = "stage"
	hops       = "hops"
	overlap    = "overlap"
)

// pipeline makes the rows of an engine of stages. A cause is a queue that holds enough of the time; the rest is the
// service of the stages. Each text is of the stage that it names: ids are stage_queue:1.
func (x *explanation) pipeline() (out []Finding) {
	x.rows[admission] = x.queue
	list, sum := []string{admission}, x.queue
	for _, s := range x.facts.Stages {
		if !finiteUp(s.Seconds) {
			x.Missing = append(x.Missing, "time of stage "+s.Name)
			continue
		}
		queued := s.Seconds * min(1, known(s.Queued))
		for _, row := range []Row{{ID: stageQueue, Seconds: queued}, {ID: stageTime, Seconds: s.Seconds - queued}} {
			id := row.ID + ":" + s.Name
			x.rows[id] = row.Seconds
			list = append(list, id)
		}
		sum += s.Seconds
	}
	x.rows[hops] = known(x.facts.Hops)
	if over := sum + x.rows[hops] - x.Mean; over > 0 {
		x.rows[overlap] = -over
	}
	x.list(append(list, hops, overlap))
	service := 0.0
	for _, row := range x.Waterfall {
		queue := row.ID == admission || strings.HasPrefix(row.ID, stageQueue+":")
		if queue && row.Share >= x.rules.Queue {
			out = append(out, Finding(row))
		} else if strings.HasPrefix(row.ID, stageTime+":") {
			service += row.Seconds
		}
	}
	return append(byWeight(out), Finding{"service", service, service / x.Mean})
}

// Bottleneck is the stage of a pipeline that waits longest by its time, if that is a share of least, else the one that
// takes longest; "" for none.
func (f *Facts) Bottleneck(least float64) (name string) {
	most := 0.0
	for _, s := range f.Stages {
		if share := known(s.Queued); share >= least && share > most {
			name, most = s.Name, share
		}
	}
	if name != "" {
		return name
	}
	for _, s := range f.Stages {
		if known(s.Seconds) > most {
			name, most = s.Name, s.Seconds
		}
	}
	return name
}
