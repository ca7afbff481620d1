package metric_test

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
)

type label = metric.Label

// TestJoin: of a name that both sets have the value of the second counts.
func TestJoin(t *testing.T) {
	a := metric.NewLabels(label{Name: "x", Value: "1"}, label{Name: "y", Value: "2"})
	b := metric.NewLabels(label{Name: "y", Value: "3"}, label{Name: "z", Value: "4"})
	if got := a.Join(b).String(); got != `{x="1",y="3",z="4"}` {
		t.Errorf("got %s", got)
	}
}

// collect returns the pairs of a set in its order.
func collect(l metric.Labels) []label {
	var pairs []label
	for n, v := range l.All() {
		pairs = append(pairs, label{Name: n, Value: v})
	}
	return pairs
}

// encode writes pairs in the binary form as they come, canonical or not.
func encode(texts ...string) []byte {
	var b []byte
	for _, s := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

func TestNewLabels(t *testing.T) {
	check := func(want string, pairs ...label) {
		t.Helper()
		if got := metric.NewLabels(pairs...).String(); got != want {
			t.Errorf("NewLabels(%q): got %s, want %s", pairs, got, want)
		}
	}
	check("")
	check(`{a="1"}`, label{"a", "1"})
	check(`{a="1",b="2"}`, label{"b", "2"}, label{"a", "1"})
	check(`{a="3",b="2"}`, label{"a", "1"}, label{"b", "2"}, label{"a", "3"})
	check(`{a=""}`, label{"a", ""})
	check(`{""="x"}`, label{"", "x"})
	check(`{a="\"\\\n\x1b"}`, label{"a", "\"\\\n\x1b"})
	check(`{A_z9="日本"}`, label{"A_z9", "日本"})
	check(`{"\x1b[2J"="3","9a"="1","a b"="2"}`, label{"9a", "1"}, label{"a b", "2"}, label{"\x1b[2J", "3"})
}

func TestNewLabelsKeepsItsArgument(t *testing.T) {
	pairs := []label{{"b", "2"}, {"a", "1"}}
	l := metric.NewLabels(pairs...)
	if !slices.Equal(pairs, []label{{"b", "2"}, {"a", "1"}}) {
		t.Errorf("the caller's pairs were changed to %v", pairs)
	}
	pairs[0].Value = "changed"
	if got, _ := l.Get("b"); got != "2" {
		t.Errorf("the set follows the caller's slice: b is %q", got)
	}
}

func TestLabelsZeroValue(t *testing.T) {
	var l metric.Labels
	if l != metric.NewLabels() || l != metric.LabelsFromMap(nil) || l != metric.NewLabels(label{"a", "1"}).Without("a") {
		t.Error("empty sets differ")
	}
	if l == metric.NewLabels(label{"a", ""}) {
		t.Error("an empty value equals an absent label")
	}
	if _, ok := l.Get(""); ok || l.Len() != 0 || len(l.Map()) != 0 {
		t.Error("the empty set holds something")
	}
}

func TestLabelsGet(t *testing.T) {
	l := metric.NewLabels(label{"b", "2"}, label{"a", ""})
	check := func(name, want string, has bool) {
		t.Helper()
		if got, ok := l.Get(name); got != want || ok != has {
			t.Errorf("Get(%q): got %q, %v, want %q, %v", name, got, ok, want, has)
		}
	}
	check("a", "", true)
	check("b", "2", true)
	check("c", "", false)
	check("", "", false)
}

func TestLabelsAllStops(t *testing.T) {
	n := 0
	for range metric.NewLabels(label{"a", "1"}, label{"b", "2"}).All() {
		n++
		break
	}
	if n != 1 {
		t.Errorf("got %d pairs after the loop ended at the first", n)
	}
}

func TestLabelsUnmarshal(t *testing.T) {
	before := metric.NewLabels(label{"kept", "1"})
	check := func(name string, data []byte, good bool) {
		t.Helper()
		l := before
		err := l.UnmarshalBinary(data)
		if (err == nil) != good {
			t.Errorf("%s: got error %v for %q, want good %v", name, err, data, good)
		}
		if err != nil && l != before {
			t.Errorf("%s: the set changed to %v with error %v", name, l, err)
		}
	}
	check("empty", nil, true)
	check("one", encode("a", "1"), true)
	check("long value", encode("a", strings.Repeat("x", 300)), true)
	check("unsorted", encode("b", "1", "a", "2"), false)
	check("duplicate", encode("a", "1", "a", "1"), false)
	check("name only", encode("a"), false)
	check("cut in a text", encode("a", "1")[:3], false)
	check("length beyond the end", []byte{5, 'a', 0}, false)
	check("length of 2^63", binary.AppendUvarint([]byte{0}, 1<<63), false)
	check("length of 2^64-1", binary.AppendUvarint(nil, 1<<64-1), false)
	check("length without an end", []byte(strings.Repeat("\xff", 20)), false)
	check("length cut", []byte{1, 'a', 0x80}, false)
	check("length not minimal", []byte{0x81, 0x00, 'a', 0}, false)
	check("length beyond 64 bits", append([]byte(strings.Repeat("\x80", 9)), 0x7e, 0), false)
}

// anyPairs draws pairs of few names, so that duplicates and shared prefixes occur.
func anyPairs() *rapid.Generator[[]label] {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "aa", "engine", "\xff", "\x00"}), rapid.String())
	pair := rapid.Custom(func(t *rapid.T) label {
		return label{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")}
	})
	return rapid.SliceOfN(pair, 0, 6)
}

// mapOf is the oracle of a set: the last pair of a name wins.
func mapOf(pairs []label) map[string]string {
	m := map[string]string{}
	for _, p := range pairs {
		m[p.Name] = p.Value
	}
	return m
}

// TestLabelsCanonical holds Labels against a map: equal maps make sets that
// are ==, different ones make different sets, whatever the order of pairs.
func TestLabelsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs, others := anyPairs().Draw(t, "pairs"), anyPairs().Draw(t, "others")
		l, want := metric.NewLabels(pairs...), mapOf(pairs)
		if !maps.Equal(l.Map(), want) || l.Len() != len(want) {
			t.Fatalf("got %v, want %q", l, want)
		}
		if names := slices.Collect(maps.Keys(want)); !slices.EqualFunc(collect(l), slices.Sorted(slices.Values(names)),
			func(p label, n string) bool { return p.Name == n }) {
			t.Fatalf("pairs of %v are not in the order of names", l)
		}
		if l != metric.LabelsFromMap(want) || l != metric.NewLabels(collect(l)...) {
			t.Fatalf("%v made another way is another set", l)
		}
		if m := metric.NewLabels(others...); (l == m) != maps.Equal(want, mapOf(others)) {
			t.Fatalf("%v == %v is %v", l, m, l == m)
		}
	})
}

func TestLabelsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := metric.NewLabels(anyPairs().Draw(t, "pairs")...)
		data, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var back metric.Labels
		if err := back.UnmarshalBinary(data); err != nil || back != l {
			t.Fatalf("got %v, %v, want %v", back, err, l)
		}
	})
}

// TestLabelsFilter checks that Only and Without split a set.
func TestLabelsFilter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := anyPairs().Draw(t, "pairs")
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "aa", "engine", "absent"}), 0, 4).Draw(t, "names")
		l := metric.NewLabels(pairs...)
		only, without := l.Only(names...), l.Without(names...)
		in, out := map[string]string{}, map[string]string{}
		for n, v := range l.All() {
			if slices.Contains(names, n) {
				in[n] = v
			} else {
				out[n] = v
			}
		}
		if only != metric.LabelsFromMap(in) || without != metric.LabelsFromMap(out) {
			t.Fatalf("%v by %q: got %v and %v, want %q and %q", l, names, only, without, in, out)
		}
	})
}

// TestLabelsCompare holds Compare against the order of the flat lists of names
// and values.
func TestLabelsCompare(t *testing.T) {
	flat := func(l metric.Labels) []string {
		var texts []string
		for n, v := range l.All() {
			texts = append(texts, n, v)
		}
		return texts
	}
	rapid.Check(t, func(t *rapid.T) {
		a := metric.NewLabels(anyPairs().Draw(t, "a")...)
		b := metric.NewLabels(anyPairs().Draw(t, "b")...)
		if got, want := cmp.Compare(a.Compare(b), 0), slices.Compare(flat(a), flat(b)); got != want {
			t.Fatalf("%v.Compare(%v): got sign %d, want %d", a, b, got, want)
		}
	})
}

func FuzzLabelsUnmarshal(f *testing.F) {
	f.Add([]byte{})
	f.Add(encode("a", "1", "b", ""))
	f.Add(encode("b", "1", "a", "2"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l metric.Labels
		if err := l.UnmarshalBinary(data); err != nil {
			if l.Len() != 0 {
				t.Errorf("the set changed to %v with error %v", l, err)
			}
			return
		}
		if again, _ := l.MarshalBinary(); string(again) != string(data) {
			t.Errorf("accepted %q and wrote %q", data, again)
		}
		if l != metric.NewLabels(collect(l)...) {
			t.Errorf("accepted %q, which is not canonical", data)
		}
	})
}
