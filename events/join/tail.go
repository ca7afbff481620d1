package join

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Tail is the slowest requests against the rest: which part of their time is what they have more, and what else they
// have in common. It tells of no cause.
type Tail struct {
	K      int      `json:"k"`
	IDs    []string `json:"ids"`      // the slowest first
	Excess float64  `json:"excess_s"` // mean of the slow - mean of the rest
	// Shares of Excess by part, which sum to 1.
	Outside float64  `json:"outside"`
	Front   float64  `json:"front"`
	Queue   float64  `json:"queue"`
	Prefill float64  `json:"prefill"`
	Common  []Common `json:"in_common"` // the surest first
}

// Common is a value that half of the slow requests and more share, and that is rarer among the rest than chance has it.
type Common struct {
	Attribute string  `json:"attribute"`
	Value     string  `json:"value"`
	Slow      int     `json:"slow"` // requests that have it
	Rest      int     `json:"rest"`
	P         float64 `json:"p"` // one-sided, of all values that were looked at (Holm)
}

const (
	maxTailIDs   = 100
	tailP        = 0.01
	tailDeciles  = 10
	fewestOfTail = 5
)

// tail compares the k = max(5, 1 %) slowest with the rest; nil where there are too few.
func (m *matches) tail() *Tail {
	var all []int32
	for i := range m.of {
		if p := m.ttft(i); p.queue != unknownNS && !m.contradicts(i) {
			all = append(all, int32(i))
		}
	}
	k := max(fewestOfTail, len(all)/100)
	if len(all) < 2*k {
		return nil
	}
	slices.SortStableFunc(all, func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.ttft(int(b)).client, m.ttft(int(a)).client), cmp.Compare(a, b))
	})
	t := &Tail{K: k}
	slow, rest := m.means(all[:k]), m.means(all[k:])
	if t.Excess = slow[0] - rest[0]; !(t.Excess > 0) {
		return nil
	}
	for i, to := range []*float64{&t.Outside, &t.Front, &t.Queue, &t.Prefill} {
		*to = (slow[i+1] - rest[i+1]) / t.Excess
	}
	for _, i := range all[:min(k, maxTailIDs)] {
		t.IDs = append(t.IDs, m.clients[i].ID)
	}
	t.Common = m.common(all, k)
	return t
}

// means are those of the client's time and its parts, in seconds.
func (m *matches) means(list []int32) (out [5]float64) {
	for _, i := range list {
		p := m.ttft(int(i))
		for j, v := range [5]int64{p.client, p.outside, p.front, p.queue, p.prefill} {
			out[j] += float64(v) / 1e9 / float64(len(list))
		}
	}
	return out
}

// attribute is something of a request that others may share.
type attribute struct{ name, value string }

// common finds the values that the first k of a list share.
func (m *matches) common(all []int32, k int) (out []Common) {
	slow, rest := map[attribute]int{}, map[attribute]int{}
	deciles := m.promptDeciles(all)
	for n, i := range all {
		to := rest
		if n < k {
			to = slow
		}
		for _, a := range m.attributes(int(i), deciles) {
			to[a]++
		}
	}
	for a, n := range slow {
		if a.value != "" && n+rest[a] < len(all) {
			out = append(out, Common{Attribute: a.name, Value: a.value, Slow: n, Rest: rest[a],
				P: hypergeometric(len(all), n+rest[a], k, n)})
		}
	}
	looked := len(out)
	for a := range rest {
		if _, both := slow[a]; !both && a.value != "" {
			looked++ // its p is 1, and it was looked at all the same
		}
	}
	slices.SortFunc(out, func(a, b Common) int {
		return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(a.Attribute, b.Attribute), cmp.Compare(a.Value, b.Value))
	})
	highest := 0.0
	for i := range out {
		highest = max(highest, min(1, out[i].P*float64(looked-i)))
		out[i].P = highest
	}
	return slices.DeleteFunc(out, func(c Common) bool { return !(c.P < tailP) || 2*c.Slow < k })
}

// attributes are those of a request that are known.
func (m *matches) attributes(i int, deciles []int32) []attribute {
	s, q := &m.of[i], &m.clients[i]
	p := m.places[s.place]
	out := []attribute{{"worker", p.Worker}, {"replica", p.Replica}, {"stage", p.Stage}, {"endpoint", q.Endpoint},
		{"phase", q.Phase}, {"second of arrival", time.Unix(0, q.IssuedNS).UTC().Format("15:04:05")}}
	flag := func(name string, known int32, is bool) {
		if known >= 0 {
			out = append(out, attribute{name, strconv.FormatBool(is)})
		}
	}
	flag("nothing cached", s.cached, s.cached == 0)
	flag("preempted", s.preempted, s.preempted > 0)
	if s.prompt >= 0 && len(deciles) > 0 {
		d, _ := slices.BinarySearch(deciles, s.prompt)
		out = append(out, attribute{"prompt decile", fmt.Sprint(d + 1)})
	}
	return out
}

// promptDeciles are the lengths of prompts that end the first nine tenths; nil where they are not known.
func (m *matches) promptDeciles(all []int32) (out []int32) {
	var tokens []int32
	for _, i := range all {
		if n := m.of[i].prompt; n >= 0 {
			tokens = append(tokens, n)
		}
	}
	slices.Sort(tokens)
	for d := 1; d < tailDeciles && len(tokens) >= tailDeciles; d++ {
		out = append(out, tokens[d*len(tokens)/tailDeciles-1])
	}
	return slices.Compact(out)
}

// hypergeometric is the chance that x or more of k that are drawn from n have what have of n have.
func hypergeometric(n, have, k, x int) float64 {
	choose := func(n, k int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	p, all := 0.0, choose(n, k)
	for ; x <= min(k, have); x++ {
		if k-x <= n-have {
			p += math.Exp(choose(have, x) + choose(n-have, k-x) - all)
		}
	}
	return min(p, 1)
}
