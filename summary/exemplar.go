package summary

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// Exemplar is one observation that a server showed beside a bucket or a counter.
type Exemplar struct {
	Role metric.Role // of what it stands beside
	// Lower and Upper are the bounds of a bucket; Lower is 0 for one that holds all
	// below Upper. Text is the bound as the server writes it, if it does.
	Lower, Upper float64
	Text         string
	metric.Exemplar
}

// exemplarSource is a recording that keeps exemplars.
type exemplarSource interface {
	Exemplars(ctx context.Context, target int) ([]metric.Exemplar, error)
}

// readExemplars takes over the exemplars of a recorded target, whose polls were read before.
func (t *target) readExemplars(ctx context.Context, rec Recording, index int) error {
	src, ok := rec.(exemplarSource)
	if !ok {
		return nil
	}
	list, err := src.Exemplars(ctx, index)
	if err != nil {
		return fmt.Errorf("%s: %w", t.URL, err)
	}
	t.ledger.exemplar(list)
	return nil
}

// exemplar keeps the last exemplar of each slot.
func (l *ledger) exemplar(list []metric.Exemplar) {
	for _, x := range list {
		if x.Slot < 0 || x.Slot >= len(l.dict.Slots) {
			continue // its poll was lost to damage
		}
		if l.exemplars == nil {
			l.exemplars = map[int]metric.Exemplar{}
		}
		l.exemplars[x.Slot] = x
	}
}

// exemplarsOf returns the exemplars by series, ascending by bound.
func (l *ledger) exemplarsOf() map[int][]Exemplar {
	out := map[int][]Exemplar{}
	for slot, x := range l.exemplars {
		s := &l.dict.Slots[slot]
		out[s.Series] = append(out[s.Series], Exemplar{s.Role, s.Lower, s.Bound, s.Text, x})
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Exemplar) int {
			return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Lower, b.Lower), cmp.Compare(a.Upper, b.Upper),
				cmp.Compare(a.Slot, b.Slot))
		})
	}
	return out
}
