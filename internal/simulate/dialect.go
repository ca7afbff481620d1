package simulate

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dialect is how a client library writes an exposition.
type dialect struct {
	contentType string
	open        bool   // it can write OpenMetrics too
	total       string // the suffix that it gives to counters
	created     bool   // it writes _created samples
	bare        bool   // a family without series leaves no trace
	blank       bool   // an empty line ends a family
	declared    bool   // labels stand as declared, le last, else sorted
	comma       bool   // one more comma ends the labels
	order       [3]part
	value       func(b []byte, v float64) []byte
	bound       func(b []byte, v float64) []byte // of le and quantile
}

// part is a part of a histogram or summary.
type part uint8

const (
	partInner part = iota // buckets or quantiles
	partCount
	partSum
)

const contentTypePlain = "text/plain; version=0.0.4"

// pythonDialect is prometheus_client in one process.
func pythonDialect() *dialect {
	return &dialect{contentType: contentTypeText, open: true, total: "_total", created: true,
		order: [3]part{partInner, partCount, partSum}, value: appendFloat, bound: appendFloat}
}

// bareDialect is pythonDialect behind something that takes _total off.
func bareDialect() *dialect {
	d := pythonDialect()
	d.total, d.open = "", false
	return d
}

// multiprocDialect is prometheus_client collecting the files of several
// processes: nothing is known of creation times and of families without samples.
func multiprocDialect() *dialect {
	d := pythonDialect()
	d.created, d.bare, d.order = false, true, [3]part{partSum, partInner, partCount}
	return d
}

// rustDialect is the crate prometheus, as Dynamo uses it.
func rustDialect() *dialect {
	return &dialect{contentType: contentTypePlain, bare: true, declared: true,
		order: [3]part{partInner, partSum, partCount}, value: appendDecimal, bound: appendDecimal}
}

// exporterDialect is the crate metrics-exporter-prometheus, as TGI uses it.
func exporterDialect() *dialect {
	d := rustDialect()
	d.blank, d.contentType = true, contentTypePlain
	return d
}

// cppDialect is prometheus-cpp, as Triton uses it.
func cppDialect() *dialect {
	return &dialect{contentType: contentTypePlain, declared: true,
		order: [3]part{partCount, partSum, partInner}, value: appendCPP, bound: appendCPP}
}

// javaDialect is the Java simpleclient, as TorchServe uses it.
func javaDialect() *dialect {
	return &dialect{contentType: contentTypePlain + "; charset=utf-8", declared: true, comma: true,
		order: [3]part{partInner, partCount, partSum}, value: appendJava, bound: appendJava}
}

// llamaDialect is what llama-server writes by hand.
func llamaDialect() *dialect {
	return &dialect{contentType: contentTypePlain, declared: true, value: appendPercentG}
}

// dcgmDialect is the template of the DCGM exporter.
func dcgmDialect() *dialect {
	return &dialect{contentType: contentTypePlain + "; charset=utf-8", bare: true, declared: true, value: appendDCGM}
}

// appendDecimal appends v as Rust displays it: never with an exponent.
func appendDecimal(b []byte, v float64) []byte {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return appendFloat(b, v)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// appendCPP appends v as prometheus-cpp does, NaN as "Nan".
func appendCPP(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "Nan"...)
	case math.IsInf(v, 0):
		return appendFloat(b, v)
	}
	return strconv.AppendFloat(b, v, 'g', 15, 64)
}

// appendJava appends v as Double.toString: with a fraction, and from 1e7 on with
// an exponent without sign, as in 4.9299189976E7.
func appendJava(b []byte, v float64) []byte {
	a := math.Abs(v)
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return appendFloat(b, v)
	}
	format, exponent := strconv.FormatFloat(v, 'f', -1, 64), ""
	if a != 0 && (a < 1e-3 || a >= 1e7) {
		format, exponent, _ = strings.Cut(strconv.FormatFloat(v, 'E', -1, 64), "E")
		n, _ := strconv.Atoi(exponent) // FormatFloat wrote a number
		exponent = "E" + strconv.Itoa(n)
	}
	b = append(b, format...)
	if !strings.Contains(format, ".") {
		b = append(b, ".0"...)
	}
	return append(b, exponent...)
}

// appendPercentG appends whole numbers as they are and others with six digits.
func appendPercentG(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "nan"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e18:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', 6, 64)
}

// dcgmBlank is the value of a field that a GPU does not support. No float64
// holds it; a gauge that is set to the nearest one is written as it.
const dcgmBlank = 0x7ffffffffffffff2

// appendDCGM appends whole numbers as they are and others with six decimals.
func appendDCGM(b []byte, v float64) []byte {
	switch {
	case v == float64(uint64(dcgmBlank)):
		return strconv.AppendInt(b, dcgmBlank, 10)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'f', 6, 64)
}

// What a summary looks back on for its quantiles.
const (
	recentMost = 512
	recentAge  = time.Minute
)

func (s *series) remember(at time.Duration, v float64) {
	if s.family.quantiles == nil {
		return
	}
	if len(s.recent) < recentMost {
		s.recent = append(s.recent, Observation{At: at, Value: v})
		return
	}
	s.recent[int(s.count)%recentMost] = Observation{At: at, Value: v}
}

// quantiles returns the quantiles of what a summary saw of late, NaN when it saw nothing.
func (s *series) quantiles() []float64 {
	var values []float64
	for _, o := range s.recent {
		if s.family.reg.now-o.At <= recentAge {
			values = append(values, o.Value)
		}
	}
	slices.Sort(values)
	out := make([]float64, len(s.family.quantiles))
	for i, q := range s.family.quantiles {
		out[i] = math.NaN()
		if n := len(values); n > 0 {
			out[i] = values[min(n-1, int(q*float64(n)))]
		}
	}
	return out
}
