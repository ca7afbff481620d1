package metric

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
)

var errDamagedLabels = errors.New("decode labels: damaged or not canonical")

// Label is one name and value of a label set.
type Label struct{ Name, Value string }

// Labels is a canonical, immutable label set: sorted by name, each name once. Two sets are equal exactly when
// they compare equal with ==, so Labels works as a map key. The zero value is the empty set. Names and values
// may hold any bytes; empty values are kept, as they are different from an absent label in an exposition.
type Labels struct {
	// enc holds uvarint(len) name uvarint(len) value ..., sorted by name.
	enc string
}

// NewLabels makes a set of the given pairs, in any order. Where a name occurs twice the last pair wins; a
// caller that must refuse duplicates checks before. The slice is neither kept nor changed.
func NewLabels(pairs ...Label) Labels {
	if len(pairs) == 0 {
		return Labels{}
	}
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	n := 0
	for _, p := range sorted {
		n += len(p.Name) + len(p.Value) + 2*binary.MaxVarintLen32
	}
	enc := make([]byte, 0, n)
	for i, p := range sorted {
		if i+1 < len(sorted) && sorted[i+1].Name == p.Name {
			continue
		}
		enc = appendText(appendText(enc, p.Name), p.Value)
	}
	return Labels{string(enc)}
}

// LabelsFromMap makes a set of a map.
func LabelsFromMap(m map[string]string) Labels {
	pairs := make([]Label, 0, len(m))
	for name, value := range m {
		pairs = append(pairs, Label{name, value})
	}
	return NewLabels(pairs...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// cutText splits one length-prefixed text off s; ok is false when s is damaged.
func cutText(s string) (text, rest string, ok bool) {
	var n uint64
	for i := 0; i < len(s) && i < binary.MaxVarintLen64; i++ {
		n |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			s = s[i+1:]
			if n > uint64(len(s)) {
				return "", "", false
			}
			return s[:n], s[n:], true
		}
	}
	return "", "", false
}

// All yields the pairs in the order of their names.
func (l Labels) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for rest := l.enc; rest != ""; {
			var name, value string
			name, rest, _ = cutText(rest)
			value, rest, _ = cutText(rest)
			if !yield(name, value) {
				return
			}
		}
	}
}

// Size is the bytes of the names and values, with what tells them apart.
func (l Labels) Size() int { return len(l.enc) }

// Len returns the number of pairs.
func (l Labels) Len() int {
	n := 0
	for range l.All() {
		n++
	}
	return n
}

// Get returns the value of a label and whether the set has it.
func (l Labels) Get(name string) (string, bool) {
	for n, v := range l.All() {
		if n == name {
			return v, true
		}
	}
	return "", false
}

// Map returns the pairs as a new map.
func (l Labels) Map() map[string]string {
	m := make(map[string]string, l.Len())
	for n, v := range l.All() {
		m[n] = v
	}
	return m
}

// Without returns the set less the named labels.
func (l Labels) Without(names ...string) Labels {
	return l.filter(func(n string) bool { return !slices.Contains(names, n) })
}

// Only returns the set of the named labels that l has.
func (l Labels) Only(names ...string) Labels {
	return l.filter(func(n string) bool { return slices.Contains(names, n) })
}

func (l Labels) filter(keep func(name string) bool) Labels {
	var enc []byte
	for n, v := range l.All() {
		if keep(n) {
			enc = appendText(appendText(enc, n), v)
		}
	}
	return Labels{string(enc)}
}

// Join returns the pairs of both sets; those of m win.
func (l Labels) Join(m Labels) Labels {
	pairs := make([]Label, 0, 8)
	for _, set := range [...]Labels{l, m} {
		for name, value := range set.All() {
			pairs = append(pairs, Label{name, value})
		}
	}
	return NewLabels(pairs...)
}

// Compare orders sets by their first differing name, then value, then length:
// negative when l is before m, 0 when they are equal.
func (l Labels) Compare(m Labels) int {
	a, b := l.enc, m.enc
	for a != "" && b != "" {
		var x, y string
		x, a, _ = cutText(a)
		y, b, _ = cutText(b)
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// String returns the set as an exposition writes it, {a="1","odd name"="2"}; values, and names that need it,
// are quoted in Go syntax so that no control byte reaches a terminal. "" for the empty set.
func (l Labels) String() string {
	if l.enc == "" {
		return ""
	}
	b := []byte{'{'}
	for n, v := range l.All() {
		if len(b) > 1 {
			b = append(b, ',')
		}
		if isLegacyName(n) {
			b = append(b, n...)
		} else {
			b = strconv.AppendQuote(b, n)
		}
		b = strconv.AppendQuote(append(b, '='), v)
	}
	return string(append(b, '}'))
}

// isLegacyName reports whether a name is of the letters, digits and underscores that expositions write without quotes.
func isLegacyName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// MarshalBinary returns a compact form of the set, the inverse of [Labels.UnmarshalBinary]. It never fails.
func (l Labels) MarshalBinary() ([]byte, error) { return []byte(l.enc), nil }

// UnmarshalBinary restores a set from the form of MarshalBinary. It refuses
// damaged, unsorted and duplicate input, so a set that was read is canonical.
func (l *Labels) UnmarshalBinary(data []byte) error {
	enc := string(data)
	var pairs []Label
	for rest := enc; rest != ""; {
		var p Label
		var ok bool
		if p.Name, rest, ok = cutText(rest); !ok {
			return errDamagedLabels
		}
		if p.Value, rest, ok = cutText(rest); !ok {
			return errDamagedLabels
		}
		pairs = append(pairs, p)
	}
	if NewLabels(pairs...).enc != enc {
		return errDamagedLabels
	}
	l.enc = enc
	return nil
}
