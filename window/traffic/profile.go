package traffic

import "slices"

// maxPoints is how many polls of a load are kept to tell its ends from its middle.
const maxPoints = 256

// point is how many requests were there at a poll, and how many had begun.
type point struct {
	at           int64
	level, began float64
}

// profile is the course of a load, thinned out as it goes on.
type profile struct {
	points      []point
	every, left int // every so many-th poll is kept, after so many more
}

func (p *profile) add(at int64, level, began float64) {
	if p.left--; p.left > 0 {
		return
	}
	if len(p.points) == maxPoints {
		for i := range maxPoints / 2 {
			p.points[i] = p.points[2*i+1]
		}
		p.points, p.every = p.points[:maxPoints/2], 2*p.every
	}
	p.every = max(p.every, 1)
	p.points, p.left = append(p.points, point{at, level, began}), p.every
}

// slopes returns when the load from an instant to another one first and last was at 0.9 of the median of its middle
// half: by the requests that were there, else by those that began each second. 0 is where it always was.
func (p *profile) slopes(from, to int64) (ramp, drain int64) {
	var points []point
	present := false
	for _, x := range p.points {
		if x.at >= from && x.at <= to {
			points, present = append(points, x), present || x.level > 0
		}
	}
	if !present { // how fast they began up to each poll
		for i := len(points) - 1; i > 0; i-- {
			points[i].level = mean(points[i].began-points[i-1].began, seconds(points[i].at-points[i-1].at))
		}
		points = points[min(1, len(points)):]
	}
	if len(points) < 8 {
		return 0, 0
	}
	var middle []float64
	for _, x := range points {
		if x.at >= from+(to-from)/4 && x.at <= to-(to-from)/4 {
			middle = append(middle, x.level)
		}
	}
	slices.Sort(middle)
	if len(middle) == 0 || middle[len(middle)/2] <= 0 {
		return 0, 0
	}
	full := func(x point) bool { return x.level >= .9*middle[len(middle)/2] }
	if first := slices.IndexFunc(points, full); first > 0 {
		ramp = points[first].at
	}
	slices.Reverse(points)
	if last := slices.IndexFunc(points, full); last > 0 {
		drain = points[last].at
	}
	return ramp, drain
}

// slopes finds where the load of a run without gaps is not what it is in the middle, by the target with most requests.
func (t *Traffic) slopes(detectors []*Detector, known bool) {
	var most *track
	for _, d := range detectors {
		if d == nil {
			continue
		}
		tr := &d.guess
		if known {
			tr = &d.sure
		}
		if most == nil || tr.ended > most.ended {
			most = tr
		}
	}
	if most != nil && len(t.Segments) == 1 {
		t.RampNS, t.DrainNS = most.whole.slopes(t.Segments[0].Start.AtNS, t.Segments[0].End.AtNS)
	}
}
