package export_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/metric"
)

// The oracle turns tapes into the rows of the AIPerf layout in the plainest way:
// it expands every poll, goes through the samples of a series one by one, and
// prints each row as text.

// tapeSample is what a series showed in one poll: value by slot index.
type tapeSample struct {
	atNS   int64
	values map[int]uint64
}

// samplesOf expands the polls of a tape for one series.
func samplesOf(t *tape, series int) []tapeSample {
	var all []tapeSample
	state := map[int]uint64{}
	for _, p := range t.polls {
		if !p.Outcome.Stored() {
			continue
		}
		if p.Delta.Full {
			clear(state)
		}
		for i, slot := range p.Delta.Slots {
			state[int(slot)] = p.Delta.Bits[i]
		}
		s := tapeSample{p.AtNS(), map[int]uint64{}}
		for slot, bits := range state {
			if t.dict.Slots[slot].Series == series {
				s.values[slot] = bits
			}
		}
		if len(s.values) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// finiteSlots reports whether none of the slots with one of the roles is NaN or infinite.
func (s tapeSample) finiteSlots(t *tape) bool {
	for slot, bits := range s.values {
		v := math.Float64frombits(bits)
		if role := t.dict.Slots[slot].Role; role != metric.RoleCreated && !t.dict.Slots[slot].Integer &&
			(math.IsNaN(v) || math.IsInf(v, 0)) {
			return false
		}
	}
	return true
}

// sortedSlots returns the slots of a series with a role, by bound.
func sortedSlots(t *tape, series int, role metric.Role) []int {
	var slots []int
	for i, s := range t.dict.Slots {
		if s.Series == series && s.Role == role {
			slots = append(slots, i)
		}
	}
	slices.SortFunc(slots, func(a, b int) int { return cmp.Compare(t.dict.Slots[a].Bound, t.dict.Slots[b].Bound) })
	return slots
}

func floatOf(t *tape, slot int, bits uint64) float64 {
	if t.dict.Slots[slot].Integer {
		return float64(bits)
	}
	return math.Float64frombits(bits)
}

// oracle returns the rows of the AIPerf layout for the window [start, end].
func oracle(start, end int64, tapes ...*tape) []string {
	var rows []string
	for _, t := range tapes {
		for series := range t.dict.Series {
			rows = append(rows, oracleSeries(t, series, start, end)...)
		}
	}
	return rows
}

func oracleSeries(t *tape, series int, start, end int64) []string {
	family := t.dict.FamilyOf(series)
	if family.Type == metric.Summary {
		return nil
	}
	roles := []metric.Role{metric.RoleValue}
	if family.Type == metric.Histogram {
		roles = []metric.Role{metric.RoleBucket, metric.RoleSum, metric.RoleCount}
	}
	var slots []int
	for _, role := range roles {
		slots = append(slots, sortedSlots(t, series, role)...)
	}
	var rows []string
	var ref map[int]uint64
	for _, s := range samplesOf(t, series) {
		if !s.finiteSlots(t) || s.atNS > end || !slices.ContainsFunc(slots, func(i int) bool {
			_,
				ok := s.values[i]
			return ok
		}) {
			continue
		}
		if ref == nil || s.atNS < start {
			ref = s.values
		}
		if s.atNS < start {
			continue
		}
		since := func(slot int) float64 {
			bits, ok := s.values[slot]
			if !ok {
				return 0
			}
			if _, known := ref[slot]; !known {
				ref[slot] = bits
			}
			if t.dict.Slots[slot].Integer {
				return float64(max(bits, ref[slot]) - ref[slot])
			}
			return max(0, math.Float64frombits(bits)-math.Float64frombits(ref[slot]))
		}
		head := fmt.Sprintf("%s %s %s %v %d", t.target.URL, family.Name, family.Type, t.dict.Series[series].Labels, s.atNS)
		switch family.Type {
		case metric.Histogram:
			var sum, count float64
			for _, slot := range slots {
				switch t.dict.Slots[slot].Role {
				case metric.RoleSum:
					sum = since(slot)
				case metric.RoleCount:
					count = since(slot)
				}
			}
			for _, slot := range slots {
				if _, ok := s.values[slot]; ok && t.dict.Slots[slot].Role == metric.RoleBucket {
					rows = append(rows, fmt.Sprintf("%s sum=%x count=%x le=%s n=%x", head,
						math.Float64bits(sum), math.Float64bits(count), t.dict.Slots[slot].Text, math.Float64bits(since(slot))))
				}
			}
		case metric.Counter:
			rows = append(rows, fmt.Sprintf("%s value=%x", head, math.Float64bits(since(slots[0]))))
		default:
			rows = append(rows, fmt.Sprintf("%s value=%x", head, math.Float64bits(floatOf(t, slots[0], s.values[slots[0]]))))
		}
	}
	return rows
}

// readTable opens a file and returns its columns and rows.
func readTable(tb testing.TB, data []byte) (*parquet.File, []parquet.Row) {
	tb.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		tb.Fatal(err)
	}
	var rows []parquet.Row
	for _, g := range f.RowGroups() {
		r := g.Rows()
		for {
			buf := make([]parquet.Row, 64)
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				rows = append(rows, row.Clone())
			}
			if err != nil {
				break
			}
		}
		if err := r.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	if int64(len(rows)) != f.NumRows() {
		tb.Fatalf("read %d rows, the footer says %d", len(rows), f.NumRows())
	}
	return f, rows
}

// columnsOf returns the names of the leaves, with dots between their parts.
func columnsOf(f *parquet.File) []string {
	var names []string
	for _, path := range f.Schema().Columns() {
		names = append(names, strings.Join(path, "."))
	}
	return names
}

// aiperfRows prints the rows of a file in the AIPerf layout as the oracle does.
func aiperfRows(tb testing.TB, data []byte) []string {
	tb.Helper()
	f, table := readTable(tb, data)
	names := columnsOf(f)
	var rows []string
	for _, row := range table {
		cells := map[string]parquet.Value{}
		var labels []metric.Label
		for i, v := range row {
			cells[names[i]] = v
			if i > 5 && i < len(names)-5 && !v.IsNull() {
				labels = append(labels, metric.Label{Name: names[i], Value: string(v.ByteArray())})
			}
		}
		text := func(name string) string { return string(cells[name].ByteArray()) }
		s := fmt.Sprintf("%s %s %s %v %d", text("endpoint_url"), text("metric_name"), text("metric_type"),
			metric.NewLabels(labels...), cells["timestamp_ns"].Int64())
		if v := cells["value"]; !v.IsNull() {
			s += fmt.Sprintf(" value=%x", math.Float64bits(v.Double()))
		} else {
			s += fmt.Sprintf(" sum=%x count=%x le=%s n=%x", math.Float64bits(cells["sum"].Double()),
				math.Float64bits(cells["count"].Double()),
				text("bucket_le"), math.Float64bits(cells["bucket_count"].Double()))
		}
		rows = append(rows, s)
	}
	return rows
}

// compareRows fails at the first row that differs.
func compareRows(tb interface {
	Helper()
	Fatalf(string, ...any)
}, got, want []string) {
	tb.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			tb.Fatalf("row %d:\ngot  %s\nwant %s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		tb.Fatalf("got %d rows, want %d", len(got), len(want))
	}
}
