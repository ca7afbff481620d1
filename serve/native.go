package serve

import (
	"cmp"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/metric"
)

// bucket is a populated bucket of a native histogram.
type bucket struct {
	lower, upper, count float64
	index               int32
}

// nativeHistogram makes a histogram of the engine of what the slots of a series show. Buckets whose bounds are no
// powers of a base become custom ones.
func nativeHistogram(d *metric.Schema, slots []int32, cursors []column.Cursor) *histogram.FloatHistogram {
	h := &histogram.FloatHistogram{}
	var positive, negative []bucket
	for i, n := range slots {
		c, s := &cursors[i], &d.Slots[n]
		if !c.Present {
			continue
		}
		v := c.Value()
		switch {
		case s.Role == metric.RoleSum:
			h.Sum = v
		case s.Role == metric.RoleCount:
			h.Count = v
		case s.Role != metric.RoleNative:
		case s.Lower <= 0 && s.Bound >= 0 && s.Lower == -s.Bound:
			h.ZeroThreshold, h.ZeroCount = s.Bound, v
		case s.Bound <= 0 && s.Lower < 0:
			negative = append(negative, bucket{lower: -s.Bound, upper: -s.Lower, count: v})
		default:
			positive = append(positive, bucket{lower: s.Lower, upper: s.Bound, count: v})
		}
	}
	schema, ok := schemaOf(append(slices.Clone(positive), negative...))
	if !ok {
		return customHistogram(h, positive)
	}
	h.Schema = schema
	h.PositiveSpans, h.PositiveBuckets = spansOf(positive, schema)
	h.NegativeSpans, h.NegativeBuckets = spansOf(negative, schema)
	return h
}

// schemaOf returns the exponential schema of buckets: each is 2^(2^-schema) times as high as it is low.
func schemaOf(all []bucket) (schema int32, ok bool) {
	for i, b := range all {
		if math.IsInf(b.upper, 1) {
			continue // beyond the largest bound
		}
		s := -math.Log2(math.Log2(b.upper / b.lower))
		n := int32(math.Round(s))
		if b.lower <= 0 || math.Abs(s-float64(n)) > 1e-6 || n < -4 || n > 8 || i > 0 && n != schema && schema != 0 {
			return 0, false
		}
		schema = n
	}
	return schema, true
}

// spansOf orders buckets by their index.
func spansOf(all []bucket, schema int32) (spans []histogram.Span, counts []float64) {
	for i := range all {
		b := &all[i]
		b.index = int32(math.Ceil(math.Log2(b.lower)*math.Exp2(float64(schema))-1e-6)) + 1
	}
	slices.SortFunc(all, func(a, b bucket) int { return cmp.Compare(a.index, b.index) })
	next := int32(0)
	for _, b := range all {
		if n := len(spans); n > 0 && b.index == next {
			spans[n-1].Length++
		} else {
			spans = append(spans, histogram.Span{Offset: b.index - next, Length: 1})
		}
		next = b.index + 1
		counts = append(counts, b.count)
	}
	return spans, counts
}

// customHistogram gives h the bounds that its buckets have.
func customHistogram(h *histogram.FloatHistogram, all []bucket) *histogram.FloatHistogram {
	slices.SortFunc(all, func(a, b bucket) int { return cmp.Compare(a.upper, b.upper) })
	h.Schema, h.ZeroCount, h.ZeroThreshold = histogram.CustomBucketsSchema, 0, 0
	add := func(upper, count float64) {
		if !math.IsInf(upper, 1) {
			h.CustomValues = append(h.CustomValues, upper)
		}
		h.PositiveBuckets = append(h.PositiveBuckets, count)
	}
	for _, b := range all {
		n := len(h.CustomValues)
		if !math.IsInf(b.lower, -1) && (n == 0 && b.lower != 0 || n > 0 && h.CustomValues[n-1] < b.lower) {
			add(b.lower, 0)
		}
		add(b.upper, b.count)
	}
	h.PositiveSpans = []histogram.Span{{Length: uint32(len(h.PositiveBuckets))}}
	return h
}
