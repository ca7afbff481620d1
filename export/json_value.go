package export

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// scalar is a number or a boolean; the zero value is none, null in JSON.
type scalar struct {
	bits uint64
	kind uint8
}

const (
	isFloat = 1 + iota
	isInteger
	isBool
)

// float makes a scalar; none of what is not finite, for which JSON has no text.
func float(v float64) scalar {
	if !metric.Finite(v) {
		return scalar{}
	}
	return scalar{math.Float64bits(v), isFloat}
}

func integer[T int | int64](v T) scalar { return scalar{uint64(v), isInteger} }

func boolean(v bool) scalar {
	if v {
		return scalar{1, isBool}
	}
	return scalar{0, isBool}
}

// when is s if ok, else none.
func (s scalar) when(ok bool) scalar {
	if ok {
		return s
	}
	return scalar{}
}

// given reports whether there is a number.
func (s scalar) given() bool { return s.kind == isFloat || s.kind == isInteger }

// float is the number as such, 0 when there is none.
func (s scalar) float() float64 {
	switch s.kind {
	case isInteger:
		return float64(int64(s.bits))
	case isFloat:
		return math.Float64frombits(s.bits)
	}
	return 0
}

// or is the number, or v when there is none.
func (s scalar) or(v float64) float64 {
	if s.given() {
		return s.float()
	}
	return v
}

// whole is a count as an integer, 0 when there is none; false when it is no whole number.
func (s scalar) whole() (int64, bool) {
	if s.kind == isInteger {
		return int64(s.bits), true
	}
	v := s.float()
	if !(math.Abs(v) < maxWhole) {
		return 0, false
	}
	return int64(v), math.Trunc(v) == v
}

// maxWhole bounds what counts as a whole number when it is read.
const maxWhole = 1 << 62

func (s *scalar) encode(e *encoder) {
	switch s.kind {
	case isFloat:
		e.buf = appendFloat(e.buf, s.float())
	case isInteger:
		e.buf = strconv.AppendInt(e.buf, int64(s.bits), 10)
	case isBool:
		e.buf = strconv.AppendBool(e.buf, s.bits != 0)
	default:
		e.buf = append(e.buf, "null"...)
	}
}

// UnmarshalJSONFrom reads a scalar.
func (s *scalar) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*s = scalar{}
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch t.Kind() {
	case 'n':
	case 't', 'f':
		*s = boolean(t.Bool())
	case '0':
		text := t.String()
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n < maxWhole && n > -maxWhole {
			*s = integer(n)
			return nil
		}
		v, err := strconv.ParseFloat(text, 64)
		*s = float(v)
		return err
	default:
		return fmt.Errorf("%v where a number belongs", t.Kind())
	}
	return nil
}

// list is an array. What is written is made element by element, so that a document is never held as a whole.
type list[T any] iter.Seq[T]

// listOf is the list of what convert makes of the elements of from.
func listOf[S, T any](from []S, convert func(*S) T) list[T] {
	return func(yield func(T) bool) {
		for i := range from {
			if !yield(convert(&from[i])) {
				return
			}
		}
	}
}

// orNone is l, or nil when it has no elements.
func (l list[T]) orNone() list[T] {
	for range l.all() {
		return l
	}
	return nil
}

func (l list[T]) all() iter.Seq[T] {
	if l == nil {
		return func(func(T) bool) {}
	}
	return iter.Seq[T](l)
}

func (l *list[T]) encode(e *encoder) {
	line := e.lines
	e.open('[')
	for v := range l.all() {
		if e.err != nil {
			return
		}
		e.next()
		e.line, e.lines = line, false
		e.value(reflect.ValueOf(&v).Elem())
	}
	e.close(']')
}

// UnmarshalJSONFrom reads an array.
func (l *list[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var values []T
	err := json.UnmarshalDecode(d, &values)
	*l = list[T](slices.Values(values))
	return err
}

// object is a JSON object whose names are data, in order. Like a list it is written member by member.
type object[T any] iter.Seq2[string, T]

func (o object[T]) orNone() object[T] {
	for range o.all() {
		return o
	}
	return nil
}

func (o object[T]) all() iter.Seq2[string, T] {
	if o == nil {
		return func(func(string, T) bool) {}
	}
	return iter.Seq2[string, T](o)
}

// get returns the value of a name, the zero value when there is none.
func (o object[T]) get(name string) (v T, ok bool) {
	for k, v := range o.all() {
		if k == name {
			return v, true
		}
	}
	return v, false
}

func (o *object[T]) encode(e *encoder) {
	e.open('{')
	for k, v := range o.all() {
		if e.err != nil {
			return
		}
		e.key(k)
		e.value(reflect.ValueOf(&v).Elem())
	}
	e.close('}')
}

// UnmarshalJSONFrom reads an object; of a name that comes twice the last value.
func (o *object[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var names []string
	values := map[string]T{}
	err := readObject(d, func(name string) error {
		var v T
		err := json.UnmarshalDecode(d, &v)
		if _, again := values[name]; !again {
			names = append(names, name)
		}
		values[name] = v
		return err
	})
	*o = func(yield func(string, T) bool) {
		for _, name := range names {
			if !yield(name, values[name]) {
				return
			}
		}
	}
	return err
}

// readObject calls member for each name of the next object, whose value it reads. Null is an object without members.
func readObject(d *jsontext.Decoder, member func(name string) error) error {
	t, err := d.ReadToken()
	if err != nil || t.Kind() == 'n' {
		return err
	}
	if t.Kind() != '{' {
		return fmt.Errorf("%v where an object belongs", t.Kind())
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := member(t.String()); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// stats are the statistics of a series, by name. Those without a value are not written.
type stats []stat

type stat struct {
	name  string
	value scalar
}

func (s stats) get(name string) scalar {
	for i := range s {
		if s[i].name == name {
			return s[i].value
		}
	}
	return scalar{}
}

func (s *stats) encode(e *encoder) {
	e.line = e.line || len(*s) > 0 && (*s)[0].name == stateShare // a state set's are on one line
	e.open('{')
	for i := range *s {
		if x := &(*s)[i]; x.value.kind != 0 {
			e.key(x.name)
			x.value.encode(e)
		}
	}
	e.close('}')
}

// UnmarshalJSONFrom reads statistics.
func (s *stats) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var o object[scalar]
	err := o.UnmarshalJSONFrom(d)
	*s = stats{}
	for name, v := range o.all() {
		*s = append(*s, stat{name, v})
	}
	return err
}

// labels are a set of labels as an object.
type labels struct{ metric.Labels }

func (l *labels) encode(e *encoder) {
	e.open('{')
	for name, value := range l.All() {
		e.key(name)
		e.buf = appendString(e.buf, value)
	}
	e.close('}')
}

// UnmarshalJSONFrom reads labels.
func (l *labels) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var m map[string]string
	err := json.UnmarshalDecode(d, &m)
	l.Labels = metric.LabelsFromMap(m)
	return err
}

// buckets are cumulative counts by upper bound. Most of a document with slices
// comes from here, so slices share the keys of their series.
type buckets struct {
	keys   [][]byte // when written: the quoted bound with what follows it
	counts []int64
	read   []normalize.Bucket
	broken bool // what was read contradicts itself
}

// bucketsOf are buckets to be written; none of nil.
func bucketsOf(from []normalize.Bucket) buckets {
	if from == nil {
		return buckets{}
	}
	b := buckets{bucketKeys(from), make([]int64, len(from)), nil, false}
	for i := range from {
		b.counts[i] = from[i].Count
	}
	return b
}

func bucketKeys(from []normalize.Bucket) [][]byte {
	keys := make([][]byte, len(from))
	for i := range from {
		keys[i] = append(appendString(nil, boundText(&from[i])), ':', ' ')
	}
	return keys
}

// boundText is the bound as AIPerf keys it: the server's text, but one spelling of infinity.
func boundText(b *normalize.Bucket) string {
	if math.IsInf(b.Upper, 1) {
		return "+Inf"
	}
	return cmp.Or(b.Text, string(appendFloat(nil, b.Upper)))
}

// encode writes each bucket on a line of its own.
func (b *buckets) encode(e *encoder) {
	e.open('{')
	buf, start := e.buf, lineStart[:1+2*e.depth]
	for i, key := range b.keys {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(buf, start...), key...)
		buf = strconv.AppendInt(buf, b.counts[i], 10)
	}
	e.buf, e.first = buf, len(b.keys) == 0
	e.close('}')
}

// UnmarshalJSONFrom reads cumulative buckets and puts them in ascending order.
func (b *buckets) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var o object[scalar]
	err := o.UnmarshalJSONFrom(d)
	*b = buckets{}
	for text, v := range o.all() {
		upper, err := strconv.ParseFloat(text, 64)
		n, ok := v.whole()
		if err != nil || !ok || math.IsNaN(upper) || math.IsInf(upper, -1) {
			b.broken = true
		}
		b.read = append(b.read, normalize.Bucket{Text: text, Upper: upper, Count: n})
	}
	slices.SortFunc(b.read, func(a, b normalize.Bucket) int { return cmp.Compare(a.Upper, b.Upper) })
	for i := 1; i < len(b.read); i++ {
		b.broken = b.broken || b.read[i].Count < b.read[i-1].Count || b.read[i].Upper == b.read[i-1].Upper
	}
	if n := len(b.read); n > 0 {
		b.broken = b.broken || !math.IsInf(b.read[n-1].Upper, 1) || b.read[0].Count < 0
	}
	if b.broken {
		b.read = nil
	}
	return err
}
