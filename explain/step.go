package explain

import "math"

// StepModel is what a gap between two tokens follows: Base, Batch for each request that is decoded in the same step,
// Prefill for each token of a prompt in it. All in seconds.
type StepModel struct{ Base, Batch, Prefill float64 }

// steps are the timeslices from which a model of the step is made.
type steps struct {
	batch, prefill, time []float64
}

// steps returns those with enough steps and tokens that lie after the cold start.
func (f *Facts) steps(cold int) (s steps) {
	for i := range f.Replicas {
		r := &f.Replicas[i]
		for j := range r.Steps {
			n, c := at(r.Steps, j), at(r.GapCount, j)
			if n < 5 || c < 20 || j <= cold {
				continue
			}
			s.batch = append(s.batch, c/n)
			s.prefill = append(s.prefill, max(0, at(r.StepTokens, j)-at(r.Generated, j))/n)
			s.time = append(s.time, at(r.GapSum, j)/c)
		}
	}
	return s
}

// fit returns the model by least squares. It is none where times cannot be negative but terms are, and where the batch
// hardly varies. A regression on the batch leaves of the time and of the prompts what it does not explain, and one of
// the first rest on the second is the term of the prompts: gonum/mat would be 3 MB of the program.
func (s *steps) fit() (m StepModel, ok bool) {
	n := len(s.time)
	if n < 20 {
		return m, false
	}
	rest := func(y []float64) []float64 {
		base, slope := line(s.batch, y)
		out := make([]float64, n)
		for i := range out {
			out[i] = y[i] - base - slope*s.batch[i]
		}
		return out
	}
	_, m.Prefill = line(rest(s.prefill), rest(s.time))
	decode := make([]float64, n)
	for i := range decode {
		decode[i] = s.time[i] - m.Prefill*s.prefill[i]
	}
	m.Base, m.Batch = line(s.batch, decode)
	mean, square := meanOf(s.batch), 0.0
	for _, v := range s.batch {
		square += (v - mean) * (v - mean)
	}
	varies := math.Sqrt(square/float64(n)) >= 0.1*mean
	return m, m.Base > 0 && m.Batch >= -1e-5 && m.Prefill >= -1e-6 && varies
}

// line is the straight line y = base + slope*x by least squares, NaN where x does not vary.
func line(x, y []float64) (base, slope float64) {
	mx, my := meanOf(x), meanOf(y)
	xx, xy := 0.0, 0.0
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	slope = xy / xx
	return my - slope*mx, slope
}

// split deals out a time of decode by the shares that the terms of a model have of the mean gap.
func (s *steps) split(m StepModel, decode float64) (base, batch, prefill float64) {
	time := meanOf(s.time)
	b := min(1, max(0, m.Batch)*meanOf(s.batch)/time)
	p := min(1-b, max(0, m.Prefill)*meanOf(s.prefill)/time)
	return decode * (1 - b - p), decode * b, decode * p
}

// coldShare is the share of the time of all gaps that those of the cold start took beyond what is usual.
func coldShare(gaps []gap, cold int) float64 {
	cut := 0
	for cut < len(gaps) && gaps[cut].slice <= cold {
		cut++
	}
	usual := usualGaps(gaps[:cut], gaps[cut:])
	excess, all := 0.0, 0.0
	for i, g := range gaps {
		all += g.time * g.batch
		if i < cut {
			excess += max(0, g.time-usual[i]) * g.batch
		}
	}
	return min(1, excess/max(all, 1e-9))
}

func meanOf(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}
