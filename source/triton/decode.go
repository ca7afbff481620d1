package triton

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// Decoder turns answers of one server, one after the other, into samples. It
// holds the dictionary of the target. It is not safe for concurrent use.
type Decoder struct {
	limits    Limits
	keep      func(family string) bool // nil: all
	ensembles map[string][]string      // by ensemble what each step calls: Options.Ensembles
	server    string                   // its version, "" for not known

	g        metric.SnapshotBuilder
	known    map[seriesKey]*slots
	models   map[modelKey]*model
	polls    uint64 // so far, and this one
	stored   uint64 // the last of them that was stored, 0 before the first
	prevNS   int64  // its time
	prevBody []byte

	// Of the present poll:
	atNS     int64
	values   int // given to g, creation times not counted
	filtered int
	walk     walker
	order    []modelKey // the models listed
}

type modelKey struct{ name, version string }

// slots are those of a series. The slot of the creation time comes first, so that
// who reads a frame knows it before the value.
type slots struct {
	created, value int
	since          float64 // creation time
	life           uint64  // of the model, at which since was set
	last           uint64  // of a counter
	poll           uint64  // the last that had it
}

// model is what is remembered of one version of a model.
type model struct {
	poll uint64    // the last that listed it
	life uint64    // counts reloads
	last uint64    // last_inference
	off  [4]uint64 // how large its discrepancies were at the last poll
	torn uint64
	gone bool // told that it vanished
}

// NewDecoder returns a decoder with an empty dictionary. Of the options it uses Limits, Keep and Ensembles.
func NewDecoder(o Options) (*Decoder, error) {
	if err := o.Limits.check(); err != nil {
		return nil, fmt.Errorf("make decoder: %w", err)
	}
	d := &Decoder{limits: o.Limits.withDefaults(), keep: o.Keep, ensembles: map[string][]string{},
		known: map[seriesKey]*slots{}, models: map[modelKey]*model{}}
	maps.Copy(d.ensembles, o.Ensembles)
	return d, nil
}

// JSON decodes a JSON answer into s, whose times are set: outcome, lines, drops, growth, frame, and the body, which s
// refers to and the decoder keeps a copy of. What s receives stays valid until the next call. It never fails: a body
// that is no answer ends in the outcome NotPrometheus.
func (d *Decoder) JSON(body []byte, s *metric.Snapshot) {
	d.decode(body, s, func(w *walker) error { return w.readJSON(body) })
}

// Protobuf is JSON for a message ModelStatisticsResponse.
func (d *Decoder) Protobuf(body []byte, s *metric.Snapshot) {
	d.decode(body, s, func(w *walker) error { return w.readProto(body) })
}

// errSamples ends a poll that has too many values.
var errSamples = errors.New("answer has too many values, see --max-samples")

func (d *Decoder) decode(body []byte, s *metric.Snapshot, read func(*walker) error) {
	s.Body, s.BodyBytes = body, int64(len(body))
	s.Outcome, s.Err, s.Drops, s.Lines, s.Duplicate = metric.OK, "", nil, 0, false
	s.DictDelta, s.Delta = metric.DictDelta{}, metric.Delta{}
	if int64(len(body)) > d.limits.Body {
		s.Outcome, s.Err = metric.TooLarge, tooLong(d.limits.Body)
		return
	}
	d.atNS, d.values, d.filtered, d.order = s.AtNS(), 0, 0, d.order[:0]
	d.polls++
	w := &d.walk
	*w = walker{limits: d.limits, entry: w.entry, each: d.take}
	if err := read(w); err != nil {
		d.g.Abandon()
		s.Outcome, s.Err = metric.NotPrometheus, metric.Clean(err.Error(), maxText)
		if errors.Is(err, errSamples) {
			s.Outcome = metric.TooLarge
		}
		return
	}
	d.vanished()
	d.compositions()
	if d.server != "" {
		d.gauge(seriesKey{family: serverInfo, x: d.server}, 1)
	}
	d.finish(s, &w.losses)
	s.Duplicate = d.stored != 0 && bytes.Equal(body, d.prevBody)
	d.prevBody = append(d.prevBody[:0], body...)
	d.prevNS, d.stored = d.atNS, d.polls
}

func (d *Decoder) finish(s *metric.Snapshot, l *losses) {
	d.g.Finish(s)
	if d.filtered > 0 {
		l.drops = append(l.drops, metric.Drop{Reason: metric.DropFiltered, Lines: d.filtered})
	}
	s.Lines = d.values
	s.Lose(l.drops)
	if lost := s.Lost(); lost > 0 {
		first := l.drops[0]
		s.Err = metric.Clean(fmt.Sprintf("%d of %d values were not stored; %s: %s", lost, s.Lines, first.Reason,
			first.First), maxText)
	}
}

// take gives the values of one model to the gatherer.
func (d *Decoder) take(e *entry) error {
	key := modelKey{e.name, e.version}
	m := d.models[key]
	switch {
	case m != nil && m.poll == d.polls:
		d.walk.losses.add(reasonDuplicate, 1, "model "+e.name+" version "+e.version+" is listed twice")
		return nil
	case m == nil && len(d.models) >= d.limits.Series:
		d.walk.losses.add(reasonSeries, 1, "model "+e.name+": too many series, see --max-series")
		return nil
	case m == nil:
		m = &model{}
		d.models[key] = m
	}
	d.order = append(d.order, key)
	off := e.discrepancies()
	switch {
	case d.reloaded(m, e):
		m.life++
	case settled(off, m.off):
		m.torn++
	}
	m.poll, m.gone, m.off = d.polls, false, off
	if e.last.has {
		m.last = e.last.v
	}
	d.emit(m, e)
	if d.values > d.limits.Samples {
		return errSamples
	}
	return nil
}

// settled reports whether the poll before was torn: it caught the server between two of its counters when a discrepancy
// is smaller now. What stays or grows is how the server counts: a failure, an empty slot of a batch.
func settled(now, before [4]uint64) bool {
	for i, v := range now {
		if v < before[i] {
			return true
		}
	}
	return false
}

// emit gives all values of an entry.
func (d *Decoder) emit(m *model, e *entry) {
	key := func(f familyID, x, y string) seriesKey { return seriesKey{f, e.name, e.version, x, y} }
	count := func(f familyID, x, y string, v whole) {
		if v.has {
			d.counter(m, key(f, x, y), v.v)
		}
	}
	count(inferences, "", "", e.inferences)
	count(executions, "", "", e.executions)
	for i, v := range e.infer {
		count(requests, inferNames[i], "", v.count)
		count(requestNS, inferNames[i], "", v.ns)
	}
	for i := range e.batches {
		b := &e.batches[i]
		if !b.size.has {
			d.walk.losses.add(reasonParse, 1, "batch statistics of model "+e.name+" have no batch_size")
			continue
		}
		size := strconv.FormatUint(b.size.v, 10)
		for j, v := range b.stats {
			count(batchExecutions, size, batchNames[j], v.count)
			count(batchNS, size, batchNames[j], v.ns)
		}
	}
	for i := range e.responses {
		r := &e.responses[i]
		for j, v := range r.stats {
			count(responses, r.key, responseNames[j], v.count)
			count(responseNS, r.key, responseNames[j], v.ns)
		}
	}
	if e.last.has && e.last.v != 0 {
		d.gauge(key(lastInference, "", ""), float64(e.last.v)/1000)
	}
	for _, v := range e.memory {
		if v.bytes.has {
			d.integer(key(memoryBytes, v.kind, strconv.FormatInt(v.id, 10)), v.bytes.v)
		}
	}
	d.gauge(key(modelReady, "", ""), 1)
	d.counter(m, key(tornReads, "", ""), m.torn)
}

// vanished tells once that a model is listed no more.
func (d *Decoder) vanished() {
	for key, m := range d.models {
		if m.poll == d.polls || m.gone {
			continue
		}
		m.gone = true
		d.gauge(seriesKey{family: modelReady, model: key.name, version: key.version}, 0)
	}
}

// compositions tells what the listed ensembles are made of.
func (d *Decoder) compositions() {
	if len(d.ensembles) == 0 {
		return
	}
	for _, key := range d.order {
		steps := map[string]int{}
		for _, call := range d.ensembles[key.name] {
			steps[call]++
		}
		for _, call := range d.ensembles[key.name] {
			if n := steps[call]; n > 0 {
				composing, version, named := strings.Cut(call, "/")
				if !named {
					version = newestReady
				}
				d.gauge(seriesKey{ensembleSteps, key.name, key.version, composing, version}, float64(n))
				delete(steps, call)
			}
		}
	}
}
