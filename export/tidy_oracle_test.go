package export_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/metric"
)

// tidyOracle returns the rows of the tidy layout as texts.
func tidyOracle(start, end int64, tapes ...*tape) []string {
	var rows []string
	id := 0
	for _, t := range tapes {
		for series := range t.dict.Series {
			rows = append(rows, tidyOracleSeries(t, series, id, start, end)...)
			id++
		}
	}
	return rows
}

func tidyOracleSeries(t *tape, series, id int, start, end int64) []string {
	var slots []int
	for _, role := range []metric.Role{metric.RoleValue, metric.RoleBucket, metric.RoleQuantile, metric.RoleSum,
		metric.RoleCount} {
		slots = append(slots, sortedSlots(t, series, role)...)
	}
	family := t.dict.FamilyOf(series)
	samples := samplesOf(t, series)
	gains := gainsOf(t, family.Type, samples, start, end)
	var rows []string
	for i, s := range samples {
		phase := "none"
		switch {
		case s.atNS < start:
			phase = metric.PhaseWarmup
		case s.atNS <= end:
			phase = metric.PhaseProfiling
		}
		for _, slot := range slots {
			bits, ok := s.values[slot]
			if !ok {
				continue
			}
			def := t.dict.Slots[slot]
			row := fmt.Sprintf("%d %s %s %s %v %d %s %v %s %q value=%x", id, t.target.URL, family.Name, family.Type,
				t.dict.Series[series].Labels,
				s.atNS, phase, s.atNS >= start && s.atNS <= end, def.Role, def.Text, math.Float64bits(floatOf(t, slot, bits)))
			if def.Integer {
				row += fmt.Sprintf(" exact=%d", bits)
			}
			if g, ok := gains[i][slot]; ok {
				row += fmt.Sprintf(" gain=%x", math.Float64bits(g))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// gainsOf returns, by sample and slot, the increase since the last sample before the window, or the first one, of
// targets of which nothing happened.
func gainsOf(t *tape, typ metric.Type, samples []tapeSample, start, end int64) []map[int]float64 {
	gains := make([]map[int]float64, len(samples))
	if typ != metric.Counter && typ != metric.Histogram && typ != metric.Summary {
		return gains
	}
	before := map[int]uint64{} // last values of each slot
	var ref map[int]uint64
	for i, s := range samples {
		if !s.finiteSlots(t) || s.atNS > end {
			continue
		}
		if s.atNS >= start && ref == nil {
			ref = maps.Clone(before)
		}
		gains[i] = map[int]float64{}
		for slot, bits := range s.values {
			def := t.dict.Slots[slot]
			if def.Role == metric.RoleCreated || def.Role == metric.RoleQuantile {
				continue
			}
			if before[slot] = bits; ref == nil {
				continue
			}
			if _, known := ref[slot]; !known {
				ref[slot] = bits
			}
			if def.Integer {
				gains[i][slot] = float64(bits - ref[slot])
			} else if g := math.Float64frombits(bits) - math.Float64frombits(ref[slot]); !math.IsInf(g, 0) {
				gains[i][slot] = g
			}
		}
	}
	return gains
}

// tidyRows prints the rows of a file in the tidy layout as tidyOracle does.
func tidyRows(tb testing.TB, data []byte) []string {
	tb.Helper()
	f, table := readTable(tb, data)
	names := columnsOf(f)
	var rows []string
	for _, row := range table {
		cells := map[string]parquet.Value{}
		var keys, values []string
		for _, v := range row {
			name := names[v.Column()]
			cells[name] = v
			if name == "labels.key_value.key" && !v.IsNull() {
				keys = append(keys, string(v.ByteArray()))
			}
			if name == "labels.key_value.value" && !v.IsNull() {
				values = append(values, string(v.ByteArray()))
			}
		}
		var labels []metric.Label
		for i := range keys {
			labels = append(labels, metric.Label{Name: keys[i], Value: values[i]})
		}
		if !slices.IsSorted(keys) {
			tb.Fatalf("label names %q are not sorted", keys)
		}
		text := func(name string) string { return string(cells[name].ByteArray()) }
		phase := "none"
		if !cells["phase"].IsNull() {
			phase = text("phase")
		}
		if cells["timestamp"].Int64() != cells["timestamp_ns"].Int64() {
			tb.Fatalf("timestamp %d, timestamp_ns %d", cells["timestamp"].Int64(), cells["timestamp_ns"].Int64())
		}
		s := fmt.Sprintf("%d %s %s %s %v %d %s %v %s %q value=%x", cells["series_id"].Int64(), text("endpoint_url"),
			text("metric_name"), text("metric_type"),
			metric.NewLabels(labels...), cells["timestamp_ns"].Int64(), phase, cells["in_window"].Boolean(), text("component"),
			text("le_text"),
			math.Float64bits(cells["value"].Double()))
		if v := cells["value_uint64"]; !v.IsNull() {
			s += fmt.Sprintf(" exact=%d", v.Uint64())
		}
		if v := cells["gain"]; !v.IsNull() {
			s += fmt.Sprintf(" gain=%x", math.Float64bits(v.Double()))
		}
		rows = append(rows, s)
	}
	return rows
}
