package export

import (
	"bytes"
	"cmp"
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
	metric.Replay
	sets     int     // Replay.Sets that families are of
	integer  []bool  // by slot, of metric.SampleID: dense, as it is asked for each value
	seriesOf []int32 // by slot
	changed  []bool  // by series: its text is not that of the present values
	families []lineFamily
	others   []lineFamily        // of the types AIPerf does not know
	spans    normalize.Intervals // scratch
}

// lineFamily is the array of one family.
type lineFamily struct {
	head   []byte // "name":[, or "name":{"type":"summary","series":[
	series []lineSeries
}

// lineSeries is one series of a family. sum and count are -1 when absent.
type lineSeries struct {
	index      int
	text       []byte // with the values, and a comma; empty when one is not finite
	head       []byte // {"labels":{...}, or {
	value      int32  // slot; -1 for a histogram
	buckets    []lineBucket
	natives    []int32 // slots of native buckets, ascending by bound
	quoted     bool    // buckets are a server's quantiles; NaN is left out
	sum, count int32
}

type lineBucket struct {
	head []byte // ,"0.5": and the first without a comma
	slot int32
}

// apply takes over a poll.
func (l *lineState) apply(s *metric.Snapshot) error {
	if err := l.Step(s); err != nil {
		return err
	}
	for i := len(l.integer); i < len(l.Slots); i++ {
		l.integer = append(l.integer, l.Slots[i].Integer)
		l.seriesOf = append(l.seriesOf, int32(l.Slots[i].Series))
	}
	l.changed = append(l.changed, make([]bool, len(l.Series)-len(l.changed))...)
	if s.Outcome.Stored() {
		for _, slot := range s.Delta.Slots {
			l.changed[l.seriesOf[slot]] = true
		}
	}
	return nil
}

// arrange prepares the text around the values of what is present. Families of
// one name, which differ by type, share an array.
func (l *lineState) arrange() {
	l.sets = l.Sets
	l.families, l.others = l.families[:0], l.others[:0]
	at := map[string]int{}
	for i := range l.Series {
		f := l.FamilyOf(i)
		if exportedType(f.Type) && strings.HasSuffix(f.Name, "_info") {
			continue
		}
		l.changed[i] = true
		s, ok := l.series(i, f.Type)
		if !ok {
			continue
		}
		if !exportedType(f.Type) {
			l.addOther(f, s)
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

// addOther adds a series of a type AIPerf does not know.
func (l *lineState) addOther(f *metric.Family, s lineSeries) {
	head := append(appendString(nil, f.Name), `:{"type":"`+f.Type.String()+`","series":[`...)
	for i := range l.others {
		if string(l.others[i].head) == string(head) {
			l.others[i].series = append(l.others[i].series, s)
			return
		}
	}
	l.others = append(l.others, lineFamily{head, []lineSeries{s}})
}

// series prepares one series; ok is false when none of its slots is present.
func (l *lineState) series(index int, typ metric.Type) (s lineSeries, ok bool) {
	s = lineSeries{index: index, head: []byte{'{'}, value: -1, sum: -1, count: -1}
	type bound struct {
		upper float64
		lineBucket
	}
	var bounds []bound
	for _, slot := range l.SlotsOf(index) {
		if !l.Present[slot] {
			continue
		}
		switch sl := &l.Slots[slot]; sl.Role {
		case metric.RoleValue:
			s.value, ok = slot, true
		case metric.RoleSum:
			s.sum, ok = slot, true
		case metric.RoleCount:
			s.count, ok = slot, true
		case metric.RoleQuantile:
			if typ == metric.Summary {
				text := string(appendFloat(nil, sl.Bound))
				if sl.Text != "" {
					text = sl.Text
				}
				bounds = append(bounds, bound{sl.Bound, lineBucket{append(appendString([]byte{','}, text), ':'), slot}})
				ok = true
			}
		case metric.RoleNative:
			s.natives, ok = append(s.natives, slot), true
		case metric.RoleBucket:
			text := boundText(&normalize.Bucket{Text: sl.Text, Upper: sl.Bound})
			bounds = append(bounds, bound{sl.Bound, lineBucket{append(appendString([]byte{','}, text), ':'), slot}})
			ok = true
		}
	}
	whole := typ == metric.Histogram || typ == metric.GaugeHistogram || typ == metric.Summary
	if !whole && s.value < 0 {
		return s, false
	}
	slices.SortFunc(s.natives, func(a, b int32) int { return cmp.Compare(l.Slots[a].Bound, l.Slots[b].Bound) })
	s.quoted = typ == metric.Summary
	if whole {
		s.value = -1
	}
	slices.SortStableFunc(bounds, func(a, b bound) int { return cmp.Compare(a.upper, b.upper) })
	for i, b := range bounds {
		if i == 0 {
			b.head = b.head[1:]
		}
		s.buckets = append(s.buckets, b.lineBucket)
	}
	s.begin(l.Series[index].Labels, typ)
	return s, ok
}

// begin writes the text in front of the first value of a series.
func (s *lineSeries) begin(labels metric.Labels, typ metric.Type) {
	if labels != (metric.Labels{}) {
		s.head = append(s.head, `"labels":{`...)
		for name, value := range labels.All() {
			s.head = append(appendString(s.head, name), ':')
			s.head = append(appendString(s.head, value), ',')
		}
		s.head[len(s.head)-1] = '}'
		s.head = append(s.head, ',')
	}
	switch {
	case typ == metric.Summary:
		s.head = append(s.head, `"quantiles":{`...)
	case s.value < 0:
		s.head = append(s.head, `"buckets":{`...)
	default:
		s.head = append(s.head, `"value":`...)
	}
}

// appendFamilies appends the members of "metrics" with the present values.
func (l *lineState) appendFamilies(b []byte) []byte {
	if l.sets != l.Sets {
		l.arrange()
	}
	return l.appendList(b, l.families, "]")
}

// appendOthers appends those of the types AIPerf does not know.
func (l *lineState) appendOthers(b []byte) []byte { return l.appendList(b, l.others, "]}") }

func (l *lineState) appendList(b []byte, families []lineFamily, end string) []byte {
	first := len(b)
	for i := range families {
		f := &families[i]
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
		b = append(b[:len(b)-1], end...)
		b = append(b, ',')
	}
	if n := len(b); n > first && b[n-1] == ',' {
		b = b[:n-1]
	}
	return b
}

// appendSeries appends a series and a comma; nothing when a value of it is not
// finite. What did not change since the last line keeps its text.
func (l *lineState) appendSeries(b []byte, s *lineSeries) []byte {
	if l.changed[s.index] {
		s.text = l.render(s.text[:0], s)
		l.changed[s.index] = false
	}
	return append(b, s.text...)
}

func (l *lineState) render(b []byte, s *lineSeries) []byte {
	if !l.finite(s) {
		return b
	}
	b = append(b, s.head...)
	if s.value >= 0 {
		return append(l.appendValue(b, s.value), '}', ',')
	}
	before := len(b)
	for i := range s.buckets {
		head := s.buckets[i].head
		if s.quoted {
			if !l.isFinite(s.buckets[i].slot) {
				continue // the server has no data
			}
			head = bytes.TrimPrefix(head, []byte{','})
			if len(b) > before {
				b = append(b, ',')
			}
		}
		b = l.appendValue(append(b, head...), s.buckets[i].slot)
	}
	if len(s.natives) > 0 {
		b = l.appendNatives(b, s)
	}
	b = append(b, '}')
	if s.sum >= 0 {
		b = l.appendValue(append(b, `,"sum":`...), s.sum)
	}
	if s.count >= 0 {
		b = l.appendValue(append(b, `,"count":`...), s.count)
	}
	return append(b, '}', ',')
}

// appendNatives appends the buckets of a native histogram as a classic one of the
// populated ones would have them: cumulative, with +Inf.
func (l *lineState) appendNatives(b []byte, s *lineSeries) []byte {
	l.spans = l.spans[:0]
	for _, slot := range s.natives {
		if v := math.Float64frombits(l.Bits[slot]); l.Present[slot] && v > 0 {
			l.spans = append(l.spans, normalize.Interval{Lower: l.Slots[slot].Lower, Upper: l.Slots[slot].Bound, Count: v})
		}
	}
	l.spans.Sort()
	edges := l.spans.Edges()
	all := 0.0
	for i, n := range l.spans.Below(edges) {
		b = append(appendString(b, boundText(&normalize.Bucket{Upper: edges[i]})), ':')
		b = append(appendFloat(b, n), ',')
	}
	for i := range l.spans {
		all += l.spans[i].Count
	}
	return appendFloat(append(b, `"+Inf":`...), all)
}

// finite reports whether no value of a series is NaN or infinite.
func (l *lineState) finite(s *lineSeries) bool {
	for _, slot := range [...]int32{s.value, s.sum, s.count} {
		if slot >= 0 && !l.isFinite(slot) {
			return false
		}
	}
	for i := range s.buckets {
		if !s.quoted && !l.isFinite(s.buckets[i].slot) {
			return false
		}
	}
	for _, slot := range s.natives {
		if !l.isFinite(slot) {
			return false
		}
	}
	return true
}

func (l *lineState) isFinite(slot int32) bool {
	return l.integer[slot] || l.Bits[slot]>>52&0x7ff != 0x7ff
}

// appendValue appends the value of a slot as a float; integers with all digits.
func (l *lineState) appendValue(b []byte, slot int32) []byte {
	if l.integer[slot] {
		return append(strconv.AppendUint(b, l.Bits[slot], 10), '.', '0')
	}
	return appendFloat(b, math.Float64frombits(l.Bits[slot]))
}
