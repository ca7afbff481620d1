package triton

import "github.com/scrapestat/scrapestat/metric"

// reloaded reports whether the counters of a model began again since it was last seen:
// it was away, one of them fell, or its last inference went back in time.
func (d *Decoder) reloaded(m *model, e *entry) bool {
	switch {
	case m.poll == 0:
		return false // not seen before
	case m.poll < d.stored:
		return true
	case e.last.has && e.last.v < m.last:
		return true
	}
	return d.fell(e)
}

// fell reports whether a counter of the entry is below what it was.
func (d *Decoder) fell(e *entry) bool {
	below := func(f familyID, x, y string, v whole) bool {
		s := d.known[seriesKey{f, e.name, e.version, x, y}]
		return v.has && s != nil && v.v < s.last
	}
	if below(inferences, "", "", e.inferences) || below(executions, "", "", e.executions) {
		return true
	}
	for i, v := range e.infer {
		if below(requests, inferNames[i], "", v.count) || below(requestNS, inferNames[i], "", v.ns) {
			return true
		}
	}
	return false
}

// counter gives the value of a counter and since when it counts. A creation time
// is that of the poll before which the counter was zero.
func (d *Decoder) counter(m *model, key seriesKey, v uint64) {
	s := d.series(key, true)
	if s == nil {
		return
	}
	if s.poll == d.polls {
		d.walk.losses.add(reasonDuplicate, 1, familyTable[key.family].Name+key.labels().String()+" occurs twice, the first "+
			"counts")
		return
	}
	switch {
	case key.family == tornReads: // ours: it goes on through all lives
	case v < s.last && s.poll != 0 && s.life == m.life:
		// A batch or response statistic fell while the rest did not.
		s.since = seconds(d.prevNS)
	case s.life != m.life:
		s.since, s.life = seconds(d.prevNS), m.life
	}
	if s.poll == 0 {
		s.life = m.life
		if s.since = seconds(d.atNS); d.stored != 0 {
			s.since = seconds(d.prevNS)
		}
	}
	s.last, s.poll = v, d.polls
	d.g.Set(s.created, s.since)
	d.g.SetInteger(s.value, v)
	d.values++
}

// seconds is how a creation time is written; readers that compare it with the
// time of a poll convert that in the same way.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func (d *Decoder) gauge(key seriesKey, v float64) {
	if s := d.series(key, false); s != nil {
		s.poll = d.polls
		d.g.Set(s.value, v)
		d.values++
	}
}

// integer gives a gauge that is an integer.
func (d *Decoder) integer(key seriesKey, v uint64) {
	s := d.series(key, true)
	if s == nil {
		return
	}
	s.poll = d.polls
	d.g.SetInteger(s.value, v)
	d.values++
}

// series returns the slots of a series, making them when it is new; nil when it
// is not wanted or one too many, which is counted.
func (d *Decoder) series(key seriesKey, integer bool) *slots {
	if s := d.known[key]; s != nil {
		return s
	}
	f := familyTable[key.family].Family
	if d.keep != nil && !d.keep(f.Name) {
		d.filtered++
		return nil
	}
	if len(d.known) >= d.limits.Series {
		d.walk.losses.add(reasonSeries, 1, f.Name+key.labels().String()+": too many series, see --max-series")
		return nil
	}
	series := d.g.Series(d.g.AddFamily(f), key.labels())
	s := &slots{}
	if f.Type == metric.Counter {
		s.created = d.g.Slot(series, metric.SampleID{Role: metric.RoleCreated})
	}
	s.value = d.g.Slot(series, metric.SampleID{Role: metric.RoleValue, Integer: integer})
	d.known[key] = s
	return s
}
