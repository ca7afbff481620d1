package export

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

func (s *sheet) flush() {
	if s.err == nil && len(s.buf) > 0 {
		_, s.err = s.w.Write(s.buf)
	}
	s.buf = s.buf[:0]
}

// cell goes to the place of the next cell.
func (s *sheet) cell() {
	if s.cells++; s.cells > 1 {
		s.buf = append(s.buf, ',')
	}
}

func (s *sheet) endRow() {
	s.buf = append(s.buf, '\r', '\n')
	s.cells = 0
	if len(s.buf) > flushSize {
		s.flush()
	}
}

func (s *sheet) texts(cells ...string) {
	for _, c := range cells {
		s.text(c)
	}
}

// text writes a cell.
func (s *sheet) text(v string) {
	s.cell()
	s.buf = texttab.AppendCSV(s.buf, v, s.o.CSVRaw)
}

func (s *sheet) numbers(values ...float64) {
	for _, v := range values {
		s.number(v)
	}
}

// total writes the total of a counter, of integers with all their digits.
func (s *sheet) total(c *normalize.Counter) {
	if !c.HasExact {
		s.number(c.Total)
		return
	}
	s.cell()
	s.buf = append(strconv.AppendUint(s.buf, c.Exact, 10), ".0000"...)
}

// number writes four decimals; an empty cell for what is not finite.
func (s *sheet) number(v float64) { s.numberIf(true, v) }

func (s *sheet) numberIf(there bool, v float64) {
	s.cell()
	if there && metric.Finite(v) {
		s.buf = strconv.AppendFloat(s.buf, v, 'f', 4, 64)
	}
}

// labelColumns orders the labels of a section as AIPerf does: labels that occur
// together in a series form a group, groups follow each other by their smallest
// label, and within a group the labels of a single series come before the others.
func labelColumns(rows []row) []string {
	group := map[string]string{} // union-find: a label to another of its group
	find := func(name string) string {
		for group[name] != name {
			group[name] = group[group[name]]
			name = group[name]
		}
		return name
	}
	uses := map[string]int{}
	var names []string
	for _, r := range rows {
		if isInfo(r.metric) {
			continue
		}
		first := ""
		for name := range r.series.Labels.All() {
			if uses[name]++; uses[name] == 1 {
				names = append(names, name)
				group[name] = name
			}
			first = cmp.Or(first, name)
			a, b := find(first), find(name)
			group[max(a, b)] = min(a, b) // the smallest label stands for the group
		}
	}
	shared := func(name string) int { return min(uses[name], 2) }
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(find(a), find(b)), cmp.Compare(shared(a), shared(b)), cmp.Compare(a, b))
	})
	return names
}
