package serve

import (
	"encoding/json"
	"io"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// encoder writes the JSON of Prometheus' API, piece by piece.
type encoder struct {
	w   io.Writer
	buf []byte
	err error
}

const flushAt = 32 << 10

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }

func (e *encoder) text(s string) {
	b, _ := json.Marshal(s) // a string has no error
	e.buf = append(e.buf, b...)
}

func (e *encoder) flush() error {
	if e.err == nil {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
	return e.err
}

// each writes an array of n things.
func (e *encoder) each(n int, one func(i int)) {
	e.raw("[")
	for i := range n {
		if i > 0 {
			e.raw(",")
		}
		one(i)
		if len(e.buf) > flushAt && e.flush() != nil {
			return
		}
	}
	e.raw("]")
}

// time writes milliseconds as seconds.
func (e *encoder) time(ms int64) {
	if ms < 0 {
		e.raw("-")
		ms = -ms
	}
	e.buf = strconv.AppendInt(e.buf, ms/1000, 10)
	if f := ms % 1000; f != 0 {
		e.raw("." + strconv.FormatInt(1000+f, 10)[1:])
	}
}

func (e *encoder) float(v float64) {
	e.raw(`"`)
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	if math.IsInf(v, 0) || math.IsNaN(v) {
		format = 'g'
	}
	e.buf = strconv.AppendFloat(e.buf, v, format, -1, 64)
	e.raw(`"`)
}

func (e *encoder) labels(l labels.Labels) {
	e.raw("{")
	first := true
	l.Range(func(x labels.Label) {
		if !first {
			e.raw(",")
		}
		first = false
		e.text(x.Name)
		e.raw(":")
		e.text(x.Value)
	})
	e.raw("}")
}

func (e *encoder) point(ms int64, v float64) {
	e.raw("[")
	e.time(ms)
	e.raw(",")
	e.float(v)
	e.raw("]")
}

func (e *encoder) histogram(ms int64, h *histogram.FloatHistogram) {
	e.raw("[")
	e.time(ms)
	e.raw(`,{"count":`)
	e.float(h.Count)
	e.raw(`,"sum":`)
	e.float(h.Sum)
	first := true
	for it := h.AllBucketIterator(); it.Next(); {
		b := it.At()
		if b.Count == 0 {
			continue
		}
		if first {
			e.raw(`,"buckets":[[`)
		} else {
			e.raw(",[")
		}
		first = false
		kind := 2 // which bounds belong to it, as in the API
		if b.LowerInclusive {
			if kind = 1; b.UpperInclusive {
				kind = 3
			}
		} else if b.UpperInclusive {
			kind = 0
		}
		e.raw(strconv.Itoa(kind) + ",")
		e.float(b.Lower)
		e.raw(",")
		e.float(b.Upper)
		e.raw(",")
		e.float(b.Count)
		e.raw("]")
	}
	if !first {
		e.raw("]")
	}
	e.raw("}]")
}

// data writes a result as the data of the API.
func (e *encoder) data(r *Result) {
	e.raw(`{"resultType":`)
	e.text(string(r.value.Type()))
	e.raw(`,"result":`)
	switch v := r.value.(type) {
	case promql.Scalar:
		e.point(v.T, v.V)
	case promql.String:
		e.raw("[")
		e.time(v.T)
		e.raw(",")
		e.text(v.V)
		e.raw("]")
	case promql.Vector:
		e.each(len(v), func(i int) {
			e.raw(`{"metric":`)
			e.labels(v[i].Metric)
			if v[i].H != nil {
				e.raw(`,"histogram":`)
				e.histogram(v[i].T, v[i].H)
			} else {
				e.raw(`,"value":`)
				e.point(v[i].T, v[i].F)
			}
			e.raw("}")
		})
	case promql.Matrix:
		e.each(len(v), func(i int) { e.series(&v[i]) })
	}
	e.raw("}")
}

func (e *encoder) series(s *promql.Series) {
	e.raw(`{"metric":`)
	e.labels(s.Metric)
	if len(s.Floats) > 0 {
		e.raw(`,"values":`)
		e.each(len(s.Floats), func(k int) { e.point(s.Floats[k].T, s.Floats[k].F) })
	}
	if len(s.Histograms) > 0 {
		e.raw(`,"histograms":`)
		e.each(len(s.Histograms), func(k int) { e.histogram(s.Histograms[k].T, s.Histograms[k].H) })
	}
	e.raw("}")
}

// WriteJSON writes the result as the data of Prometheus' API, numbers as strings.
func (r *Result) WriteJSON(w io.Writer) error {
	e := &encoder{w: w}
	e.data(r)
	e.raw("\n")
	return e.flush()
}

// Row is one value of a result: of a range one for each point.
type Row struct {
	Labels string // as an expression spells them, the name before
	TimeMS int64
	Value  string
}

// Rows calls yield for each value, in the order of the result.
func (r *Result) Rows(yield func(Row) bool) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	switch v := r.value.(type) {
	case promql.Scalar:
		yield(Row{TimeMS: v.T, Value: number(v.V)})
	case promql.String:
		yield(Row{TimeMS: v.T, Value: v.V})
	case promql.Vector:
		for _, x := range v {
			row := Row{x.Metric.String(), x.T, number(x.F)}
			if x.H != nil {
				row.Value = x.H.String()
			}
			if !yield(row) {
				return
			}
		}
	case promql.Matrix:
		for _, x := range v {
			name := x.Metric.String()
			for _, p := range x.Floats {
				if !yield(Row{name, p.T, number(p.F)}) {
					return
				}
			}
			for _, p := range x.Histograms {
				if !yield(Row{name, p.T, p.H.String()}) {
					return
				}
			}
		}
	}
}
