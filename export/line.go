package export

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// lineState knows the values that a target shows at a poll, and the text around
// them, which stays the same for as long as the same series are there.
type lineState struct {
	dict     metric.Dict
	bits     []uint64 // by slot
	present  []bool   // by slot
	families []lineFamily
	stale    bool // families is not that of what is present
}

// lineFamily is the array of one family.
type lineFamily struct {
	head   []byte // "name":[
	series []lineSeries
}

// lineSeries is one series of a family. sum and count are -1 when absent.
type lineSeries struct {
	head       []byte // {"labels":{...}, or {
	value      int32  // slot; -1 for a histogram
	buckets    []lineBucket
	sum, count int32
}

type lineBucket struct {
	head []byte // "0.5":
	slot int32
}

// apply takes over a poll.
func (l *lineState) apply(s *metric.Snapshot) error {
	if err := l.dict.Grow(&s.Growth); err != nil {
		return err
	}
	if n := len(l.dict.Slots) - len(l.bits); n > 0 {
		l.bits = append(l.bits, make([]uint64, n)...)
		l.present = append(l.present, make([]bool, n)...)
	}
	if !s.Outcome.Stored() {
		return nil
	}
	if len(s.Frame.Slots) != len(s.Frame.Bits) {
		return fmt.Errorf("damaged frame: %d slots with %d values", len(s.Frame.Slots), len(s.Frame.Bits))
	}
	if s.Frame.Full {
		clear(l.present)
		l.stale = true
	}
	for i, slot := range s.Frame.Slots {
		if int(slot) >= len(l.bits) {
			return fmt.Errorf("damaged frame: slot %d of %d", slot, len(l.bits))
		}
		l.bits[slot] = s.Frame.Bits[i]
		if !l.present[slot] {
			l.present[slot], l.stale = true, true
		}
	}
	return nil
}

// arrange prepares the text around the values of what is present. Families of
// one name, which differ by type, share an array.
func (l *lineState) arrange() {
	l.stale = false
	l.families = l.families[:0]
	at := map[string]int{}
	for i := range l.dict.Series {
		f := l.dict.FamilyOf(i)
		if !exportedType(f.Type) || strings.HasSuffix(f.Name, "_info") {
			continue
		}
		s, ok := l.series(i, f.Type)
		if !ok {
			continue
		}
		k, known := at[f.Name]
		if !known {
			k = len(l.families)
			at[f.Name] = k
			l.families = append(l.families, lineFamily{head: append(appendString(nil, f.Name), ':', '[')})
		}
		l.families[k].series = append(l.families[k].series, s)
	}
}

// series prepares one series; ok is false when none of its slots is present.
func (l *lineState) series(index int, typ metric.Type) (s lineSeries, ok bool) {
	s = lineSeries{head: []byte{'{'}, value: -1, sum: -1, count: -1}
	type bound struct {
		upper float64
		lineBucket
	}
	var bounds []bound
	for _, slot := range l.dict.SlotsOf(index) {
		if !l.present[slot] {
			continue
		}
		switch sl := &l.dict.Slots[slot]; sl.Role {
		case metric.RoleValue:
			s.value, ok = slot, true
		case metric.RoleSum:
			s.sum, ok = slot, true
		case metric.RoleCount:
			s.count, ok = slot, true
		case metric.RoleBucket:
			text := boundText(&normalize.Bucket{Text: sl.Text, Upper: sl.Bound})
			bounds = append(bounds, bound{sl.Bound, lineBucket{append(appendString(nil, text), ':'), slot}})
			ok = true
		}
	}
	if typ != metric.Histogram && s.value < 0 {
		return s, false
	}
	slices.SortStableFunc(bounds, func(a, b bound) int { return cmp.Compare(a.upper, b.upper) })
	for _, b := range bounds {
		s.buckets = append(s.buckets, b.lineBucket)
	}
	if labels := l.dict.Series[index].Labels; labels != (metric.Labels{}) {
		s.head = append(s.head, `"labels":{`...)
		for name, value := range labels.All() {
			s.head = append(appendString(s.head, name), ':')
			s.head = append(appendString(s.head, value), ',')
		}
		s.head[len(s.head)-1] = '}'
		s.head = append(s.head, ',')
	}
	if typ == metric.Histogram {
		s.head = append(s.head, `"buckets":{`...)
	} else {
		s.head = append(s.head, `"value":`...)
	}
	return s, ok
}

// appendFamilies appends the members of "metrics" with the present values.
func (l *lineState) appendFamilies(b []byte) []byte {
	if l.stale {
		l.arrange()
	}
	for i := range l.families {
		f := &l.families[i]
		start := len(b)
		b = append(b, f.head...)
		none := len(b)
		for j := range f.series {
			b = l.appendSeries(b, &f.series[j])
		}
		if len(b) == none {
			b = b[:start]
			continue
		}
		b[len(b)-1] = ']'
		b = append(b, ',')
	}
	if n := len(b); n > 0 && b[n-1] == ',' {
		b = b[:n-1]
	}
	return b
}

// appendSeries appends a series and a comma; nothing when a value of it is not
// finite.
func (l *lineState) appendSeries(b []byte, s *lineSeries) []byte {
	if s.value >= 0 {
		if !l.finite(s.value) {
			return b
		}
		return append(l.appendValue(append(b, s.head...), s.value), '}', ',')
	}
	start := len(b)
	b = append(b, s.head...)
	for i := range s.buckets {
		if !l.finite(s.buckets[i].slot) {
			return b[:start]
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = l.appendValue(append(b, s.buckets[i].head...), s.buckets[i].slot)
	}
	b = append(b, '}')
	if s.sum >= 0 {
		if !l.finite(s.sum) {
			return b[:start]
		}
		b = l.appendValue(append(b, `,"sum":`...), s.sum)
	}
	if s.count >= 0 {
		if !l.finite(s.count) {
			return b[:start]
		}
		b = l.appendValue(append(b, `,"count":`...), s.count)
	}
	return append(b, '}', ',')
}

func (l *lineState) finite(slot int32) bool {
	return l.dict.Slots[slot].Integer || l.bits[slot]>>52&0x7ff != 0x7ff
}

// appendValue appends the value of a slot as a float; integers with all digits.
func (l *lineState) appendValue(b []byte, slot int32) []byte {
	if l.dict.Slots[slot].Integer {
		return append(strconv.AppendUint(b, l.bits[slot], 10), '.', '0')
	}
	return appendFloat(b, math.Float64frombits(l.bits[slot]))
}
