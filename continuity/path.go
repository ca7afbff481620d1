package continuity

// The path of a process holds some of its last bodies, of the units that gained first.
const (
	pathBodies = 64
	pathUnits  = 64
)

// path is the recent past of a process, in which an older copy of a body has its place: 64 bodies, the older half
// thinned to every second one when it is full.
type path struct {
	column []uint8   // by unit: one more than its place in a row; 0 for a unit that has not gained
	units  []int32   // by place
	keys   []int32   // by place: their key slots
	rows   []float64 // bodies of pathUnits values each
	bodies int
}

// note gives a unit that gains a place in the rows; so far it was what it was before.
func (p *path) note(u, key int32, before float64) {
	if p.column[u] != 0 || len(p.units) == pathUnits {
		return
	}
	p.begin()
	at := len(p.units)
	p.units, p.keys = append(p.units, u), append(p.keys, key)
	p.column[u] = uint8(at + 1)
	for i := range p.bodies {
		p.rows[i*pathUnits+at] = before
	}
}

func (p *path) begin() {
	if p.rows == nil {
		p.rows, p.bodies = make([]float64, pathBodies*pathUnits), 1
		p.units, p.keys = make([]int32, 0, pathUnits), make([]int32, 0, pathUnits)
	}
}

// keep appends what a process last showed to its path, as some unit gained.
func (t *Tracker) keep(p *process) {
	row := p.path.add()
	last := p.last
	if last == nil {
		last = t.body
	}
	for i, key := range p.path.keys {
		row[i] = t.slots[key].value(last[key])
	}
}

// add appends a row.
func (p *path) add() []float64 {
	p.begin()
	if p.bodies == pathBodies {
		half := pathBodies / 2
		for i := range half / 2 {
			copy(p.row(i), p.row(2*i))
		}
		copy(p.rows[half/2*pathUnits:], p.rows[half*pathUnits:])
		p.bodies = half/2 + half
	}
	p.bodies++
	return p.row(p.bodies - 1)
}

func (p *path) row(i int) []float64 { return p.rows[i*pathUnits : (i+1)*pathUnits] }

// fit is how a body lies on the path.
type fit uint8

const (
	offPath   fit = iota
	onPath        // between two consecutive bodies
	onLeap        // between two that are far apart, at the lower one: an older copy if the start times are equal
	offUpLeap     // anywhere else between such two, which proves nothing
)

// place finds a gap of the path that holds the present body in every unit. In targets of one or two units only a
// repeated body is one: any smaller value lies somewhere between two older ones.
func (t *Tracker) place(p *process, e *evidence) fit {
	for u := range t.units { // one that never gained can only be as it is
		if s := &t.sight[u]; s.in && p.known[u] && p.path.column[u] == 0 && t.below(p, u) && len(p.path.units) < pathUnits {
			return offPath
		}
	}
	for i := range p.path.bodies - 1 {
		low, high := p.path.row(i), p.path.row(i+1)
		inside, moved, far, equal := true, 0, 0, 0
		for c, u := range p.path.units {
			s := &t.sight[u]
			if !s.in || !p.known[u] {
				continue
			}
			if inside = low[c] <= s.value && s.value <= high[c]; !inside {
				break
			}
			if high[c] <= low[c] {
				continue
			}
			moved++
			if p.leaps(int(u), high[c]-low[c], t.shortest) {
				far++
			}
			if s.value == low[c] {
				equal++
			}
		}
		switch {
		case !inside, e.weighed < few && equal < moved:
		case moved < 2 || 2*far < moved:
			return onPath
		case 2*equal < moved:
			return offUpLeap
		default:
			return onLeap
		}
	}
	return offPath
}
