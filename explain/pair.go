package explain

import (
	"math"
	"slices"
	"strings"
)

// Pair is what the mean times of two runs differ in, row by row.
type Pair struct {
	A, B *Result
	// Rows have the parts of both waterfalls, whose differences add up to that of the means; none where the mean of a run
	// is not known. What one run shows in fewer parts is taken together of both: "served" and "decode".
	Rows  []PairRow
	Notes []string
}

// PairRow is a part of the mean time of a request in two runs, in seconds.
type PairRow struct {
	ID   string
	A, B float64
}

// Difference is B less A.
func (r *PairRow) Difference() float64 { return r.B - r.A }

// Difference is the mean of B less that of A, not a number where either is not known.
func (p *Pair) Difference() float64 { return p.B.Mean - p.A.Mean }

// Largest is the part that differs most, those of decode together: their split is an estimate. It is "" where none
// differs by the share least of the mean of A.
func (p *Pair) Largest(least float64) (id string, difference float64) {
	decode := 0.0
	for i := range p.Rows {
		r := &p.Rows[i]
		if strings.HasPrefix(r.ID, "decode_") {
			decode += r.Difference()
		} else if math.Abs(r.Difference()) > math.Abs(difference) {
			id, difference = r.ID, r.Difference()
		}
	}
	if math.Abs(decode) > math.Abs(difference) {
		id, difference = "decode", decode
	}
	if math.Abs(difference) < least*p.A.Mean {
		return "", 0
	}
	return id, difference
}

// Decode is the row of decode that differs most, nil where rows of decode differ in both directions or are one.
func (p *Pair) Decode() (most *PairRow) {
	up, down := false, false
	for i := range p.Rows {
		r := &p.Rows[i]
		if !strings.HasPrefix(r.ID, "decode_") {
			continue
		}
		if d := r.Difference(); math.Abs(d) > 0.01*p.A.Mean {
			up, down = up || d > 0, down || d < 0
		}
		if most == nil || math.Abs(r.Difference()) > math.Abs(most.Difference()) {
			most = r
		}
	}
	if up && down {
		return nil
	}
	return most
}

// Pairs puts together what two runs tell of the same engine and part of it. Engines of other names are a pair where
// each run has one. Alone are the results that have no other.
func Pairs(a, b []*Result) (pairs []*Pair, alone []*Result) {
	left := slices.Clone(b)
	for _, r := range a {
		at := slices.IndexFunc(left, func(o *Result) bool { return o.Engine == r.Engine && o.Of == r.Of })
		if at < 0 && len(a) == 1 && len(b) == 1 {
			at = 0
		}
		if at < 0 {
			alone = append(alone, r)
			continue
		}
		pairs = append(pairs, newPair(r, left[at]))
		left = slices.Delete(left, at, at+1)
	}
	return pairs, append(alone, left...)
}

// folds are the parts that stand for others, where a run does not tell these: first those of decode, then all that is
// no queue.
var folds = []struct {
	into  string
	parts []string
}{
	{"decode", []string{"decode_base", "decode_batch", "decode_prefill"}},
	{"served", []string{"front", "prefill", "decode", "decode_base", "decode_batch", "decode_prefill"}},
}

func newPair(a, b *Result) *Pair {
	p := &Pair{A: a, B: b}
	if math.IsNaN(p.Difference()) {
		return p
	}
	rows := [2]map[string]float64{}
	var ids []string
	for n, r := range []*Result{a, b} {
		rows[n] = map[string]float64{}
		for _, row := range r.Waterfall {
			rows[n][row.ID] = row.Seconds
			if !slices.Contains(ids, row.ID) {
				ids = append(ids, row.ID)
			}
		}
	}
	ids = p.fold(rows, ids)
	slices.SortStableFunc(ids, func(x, y string) int { return slices.Index(pairOrder, x) - slices.Index(pairOrder, y) })
	for _, id := range ids {
		p.Rows = append(p.Rows, PairRow{id, rows[0][id], rows[1][id]})
	}
	for n, r := range []*Result{a, b} {
		if rows[n]["queue_unknown"] > 0 && rows[1-n]["queue_unknown"] == 0 {
			p.Notes = append(p.Notes, "what requests of "+"AB"[n:n+1]+" waited for is not shown: "+
				strings.Join(r.Missing, ", "))
		}
	}
	return p
}

// pairOrder is that of rows, those that stand for others in their place.
var pairOrder = append(slices.Clone(order), "decode", "served", unexplained)

// fold takes rows together that one of the runs does not tell apart. A row of the queue that is not there is 0: no
// request waited so.
func (p *Pair) fold(rows [2]map[string]float64, ids []string) []string {
	split := (p.A.Model == nil) == (p.B.Model == nil)
	for i, f := range folds {
		has := [2]bool{}
		same := true
		for _, id := range f.parts {
			_, a := rows[0][id]
			_, b := rows[1][id]
			has[0], has[1] = has[0] || a, has[1] || b
			same = same && a == b
		}
		if same && (split || i > 0) || !has[0] && !has[1] {
			continue
		}
		if i == 0 && (!has[0] || !has[1]) {
			continue // not told at all by one: served stands for it
		}
		for n := range rows {
			sum := 0.0
			for _, id := range f.parts {
				sum += rows[n][id]
				delete(rows[n], id)
			}
			rows[n][f.into] = sum
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(f.parts, id) })
		ids = append(ids, f.into)
		p.Notes = append(p.Notes, f.into+" is "+strings.Join(f.parts, ", ")+": one run does not tell them apart")
	}
	return ids
}
