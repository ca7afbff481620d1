package histest_test

import (
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/histest"
)

// brute is AIPerf's algorithm done the long way, observation by observation: the
// oracle of the closed form. It shares no code with the package.
type brute struct {
	means  map[int][]float64
	weight map[int][]float64
}

func (b *brute) interval(d *histest.Delta) {
	dc := math.Trunc(d.Count)
	if dc <= 0 {
		return
	}
	cum := append(slices.Clone(d.Cum), d.Inf)
	var active []int
	prev := 0.0
	for i, c := range cum {
		c = math.Max(c, 0)
		if math.Max(c-prev, 0) > 0 && (i < len(d.Cum) || d.HasInf) {
			active = append(active, i)
		}
		prev = c
	}
	if len(active) == 1 && active[0] < len(d.Cum) {
		b.means[active[0]] = append(b.means[active[0]], d.Sum/dc)
		b.weight[active[0]] = append(b.weight[active[0]], dc)
	}
}

func (b *brute) stats(i int, l, u float64) (mean, variance float64, ok bool) {
	m := b.means[i]
	if len(m) == 0 {
		return 0, 0, false
	}
	num, den := 0.0, 0.0
	for k := range m {
		num += m[k] * b.weight[i][k]
		den += b.weight[i][k]
	}
	mean = num / den
	if len(m) >= 3 {
		avg := 0.0
		for _, x := range m {
			avg += x
		}
		avg /= float64(len(m))
		for _, x := range m {
			variance += (x - avg) * (x - avg) / float64(len(m)-1)
		}
	}
	return mean, variance, l < mean && mean < u
}

// quantiles returns the nine quantiles, nil for none. sorted reports whether
// the generated array was in order.
func (b *brute) quantiles(d *histest.Delta) (out []float64, sorted bool) {
	s := d.Sum
	if math.Trunc(d.Count) <= 0 || math.IsNaN(s) || math.IsInf(s, 0) || s < 0 {
		return nil, true
	}
	if s == 0 {
		return make([]float64, 9), true
	}
	k := len(d.Bounds)
	n, ratio := bruteCounts(d)
	s *= ratio
	lower := append([]float64{0}, d.Bounds...)
	last := d.Bounds[k-1]
	expected := 0.0
	for i, u := range d.Bounds {
		if n[i] > 0 {
			mean, _, ok := b.stats(i, lower[i], u)
			if !ok {
				mean = (lower[i] + u) / 2
			}
			expected += n[i] * mean
		}
	}
	over := bruteOverflow(n[k], s-expected, last)
	overSum := 0.0
	for _, x := range over {
		overSum += x
	}
	s -= overSum
	array := append(b.finite(n[:k], lower, d.Bounds, s), over...)
	if len(array) == 0 {
		return nil, true
	}
	sorted = slices.IsSorted(array)
	slices.Sort(array)
	for _, q := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99} {
		v := float64(len(array)-1) * (q / 100)
		i := int(math.Floor(v))
		g := v - float64(i)
		lo, hi := array[i], array[min(i+1, len(array)-1)]
		if g < 0.5 {
			out = append(out, lo+(hi-lo)*g)
		} else {
			out = append(out, hi-(hi-lo)*(1-g))
		}
	}
	return out, sorted
}

// bruteCounts returns the observations per bucket, +Inf last, scaled down to
// 100,000, and the scale.
func bruteCounts(d *histest.Delta) (n []float64, ratio float64) {
	prev, total := 0.0, 0.0
	cum := slices.Clone(d.Cum)
	if d.HasInf {
		cum = append(cum, d.Inf)
	}
	for _, c := range cum {
		n = append(n, math.Trunc(c)-prev)
		prev = math.Trunc(c)
		total += n[len(n)-1]
	}
	if !d.HasInf {
		n = append(n, 0)
	}
	ratio = 1
	if total > 100000 {
		ratio = 100000 / total
	}
	for i := range n {
		n[i] *= ratio
	}
	return n, ratio
}

func bruteOverflow(count, sum, last float64) []float64 {
	if count <= 0 {
		return nil
	}
	n := int(math.Ceil(count))
	a := sum / float64(n)
	if sum <= 0 || a <= last {
		a = 1.5 * last
	}
	if n == 1 {
		return []float64{a}
	}
	u := 2*a - last
	if u <= last {
		u = 2 * last
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = last + float64(i)*((u-last)/float64(n-1))
	}
	return out
}

func (b *brute) finite(n, lower, upper []float64, target float64) []float64 {
	sum := 0.0
	for _, x := range n {
		sum += x
	}
	if sum > 100000 {
		r := 100000 / sum
		sum = 0
		for i := range n {
			n[i] *= r
			sum += n[i]
		}
		target *= r
	}
	avg, dominant := 0.0, -1
	if sum > 0 {
		avg = target / sum
		if most := slices.Max(n); most/sum >= 0.95 {
			dominant = slices.Index(n, most)
		}
	}
	size := 0
	for _, x := range n {
		size += int(x)
	}
	if size <= 0 {
		return nil
	}
	var out []float64
	var ends []int
	var at []int
	for i, x := range n {
		c := min(int(x), size-len(out))
		if c <= 0 {
			continue
		}
		mean, variance, ok := b.stats(i, lower[i], upper[i])
		out = append(out, bruteBucket(c, lower[i], upper[i], mean, variance, ok, i == dominant, avg)...)
		ends, at = append(ends, len(out)), append(at, i)
	}
	bruteAdjust(out, ends, at, lower, upper, target)
	return out
}

func bruteClip(x, l, u float64) float64 { return math.Min(math.Max(x, l), u) }

func bruteBucket(c int, l, u, mean, variance float64, valid, dominant bool, avg float64) []float64 {
	out := make([]float64, c)
	w, mid := u-l, (l+u)/2
	sd := math.Sqrt(variance)
	kl, ku := math.Min((mean-l)/sd, 3), math.Min((u-mean)/sd, 3)
	for i := range out {
		f := (float64(i) + 0.5) / float64(c)
		va := mean - kl*sd*(1-2*f)
		if f >= 0.5 {
			va = mean + ku*sd*(2*f-1)
		}
		va = bruteClip(va, l, u)
		switch {
		case valid && variance > 0 && 4*sd/w < 0.01:
			p := variance / (variance + (mean-l)*(mean-l))
			if out[i] = l; i >= int(float64(c)*p) {
				out[i] = bruteClip(mean+variance/(mean-l), l, u)
			}
		case valid && variance > 0 && 4*sd/w < 0.2 && math.Abs(mean-mid)/w < 0.3:
			out[i] = bruteClip(0.5*bruteClip(l+w*f+(mean-mid), l, u)+0.5*va, l, u)
		case valid && variance > 0:
			out[i] = va
		default:
			centre := mid
			if valid {
				centre = mean
			}
			if dominant && l < avg && avg < u {
				centre = avg
			}
			out[i] = bruteClip(l+w*f+(centre-mid), l, u)
		}
	}
	return out
}

func bruteAdjust(out []float64, ends, at []int, lower, upper []float64, target float64) {
	g := 0.0
	for _, x := range out {
		g += x
	}
	if g <= 0 || target <= 0 || math.Abs(target-g)/target < 0.001 {
		return
	}
	from := 0
	for k, end := range ends {
		l, u := lower[at[k]], upper[at[k]]
		s := 0.0
		for _, x := range out[from:end] {
			s += x
		}
		m := 0.4 * (u - l)
		shift := bruteClip((target-g)*(s/g)/float64(end-from), -m, m)
		for i := from; i < end; i++ {
			out[i] = bruteClip(out[i]+shift, l, u)
		}
		from = end
	}
}
