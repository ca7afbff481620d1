package scrape

import (
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// The bounds on exemplars: how many slots of a target may have one, and how long
// the labels of one are, twice what OpenMetrics allows.
const (
	maxExemplars      = 20_000
	maxExemplarLabels = 256
)

// exemplarOf notes the exemplar of the sample that was stored in slot.
func (l *slowDecoder) exemplarOf(slot int32) {
	if slot == noSlot {
		return
	}
	if x, ok := l.parser.exemplar(); ok {
		x.slot = slot
		l.exemplars = append(l.exemplars, x)
	}
}

// newExemplars returns the exemplars of a body that its target has not shown before. The last one of a slot counts.
func (d *Decoder) newExemplars(l *slowDecoder, nowNS int64) []metric.Exemplar {
	if len(l.exemplars) == 0 {
		return nil
	}
	if d.exemplars == nil {
		d.exemplars = map[int32]metric.Exemplar{}
	}
	at := map[int32]int{}
	var out []metric.Exemplar
	for i := range l.exemplars {
		raw := &l.exemplars[i]
		size := 0
		for _, p := range raw.labels {
			size += len(p.Name) + len(p.Value)
		}
		old, known := d.exemplars[raw.slot]
		if size > maxExemplarLabels || math.IsNaN(raw.value) || !known && len(d.exemplars) >= maxExemplars {
			continue
		}
		x := metric.Exemplar{Slot: int(raw.slot), Labels: metric.NewLabels(raw.labels...), Value: raw.value,
			AtNS: raw.atNS, SeenNS: old.SeenNS}
		if x == old {
			continue
		}
		x.SeenNS = nowNS
		d.exemplars[raw.slot] = x
		if k, ok := at[raw.slot]; ok {
			out[k] = x
			continue
		}
		at[raw.slot] = len(out)
		out = append(out, x)
	}
	clear(l.exemplars) // their labels are those of the body
	l.exemplars = l.exemplars[:0]
	return out
}
