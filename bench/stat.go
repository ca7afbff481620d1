package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// stat is what several rounds gave.
type stat struct{ values []float64 }

func (s stat) sorted() []float64 {
	v := slices.Clone(s.values)
	slices.Sort(v)
	return v
}

func (s stat) median() float64 {
	v := s.sorted()
	if len(v) == 0 {
		return 0
	}
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

func (s stat) String() string {
	v := s.sorted()
	switch len(v) {
	case 0:
		return "-"
	case 1:
		return short(v[0])
	}
	return fmt.Sprintf("%s (%s to %s)", short(s.median()), short(v[0]), short(v[len(v)-1]))
}

// short formats v with three digits.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	case v >= 0.01 || v == 0:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.5f", v)
}

// over returns the ratio s/t of each round.
func (s stat) over(t stat) stat {
	var r stat
	for i := range min(len(s.values), len(t.values)) {
		r.values = append(r.values, s.values[i]/t.values[i])
	}
	return r
}

func one(v float64) stat { return stat{[]float64{v}} }

// candidate is one way to do the work. run does n units of it and returns the
// time they took.
type candidate struct {
	name string
	run  func(n int) (time.Duration, error)
	n    int // units of a round; 0 is found so that a round takes about 200 ms
}

// inTurn runs the candidates A B A B and returns nanoseconds per unit of each.
func inTurn(ctx context.Context, rounds int, cs []candidate) ([]stat, error) {
	stats := make([]stat, len(cs))
	for i := range cs {
		if err := cs[i].calibrate(); err != nil {
			return nil, fmt.Errorf("run %s: %w", cs[i].name, err)
		}
	}
	for range rounds {
		for i, c := range cs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			took, err := c.run(c.n)
			if err != nil {
				return nil, fmt.Errorf("run %s: %w", c.name, err)
			}
			stats[i].values = append(stats[i].values, float64(took.Nanoseconds())/float64(c.n))
		}
	}
	return stats, nil
}

// calibrate warms the candidate up and finds n.
func (c *candidate) calibrate() error {
	if c.n > 0 {
		_, err := c.run(1)
		return err
	}
	for n := 1; ; n *= 4 {
		took, err := c.run(n)
		if err != nil {
			return err
		}
		if took > 40*time.Millisecond || n > 1<<24 {
			c.n = max(1, int(float64(n)*float64(200*time.Millisecond)/float64(max(took, 1))))
			return nil
		}
	}
}

// timed makes a candidate of a function that does one unit. It counts the
// processor time of this process, garbage collection included: on a shared machine
// that says more than the clock on the wall.
func timed(name string, unit func() error) candidate {
	return candidate{name: name, run: func(n int) (time.Duration, error) {
		start := processorTime()
		for range n {
			if err := unit(); err != nil {
				return 0, err
			}
		}
		return processorTime() - start, nil
	}}
}

// processorTime is the user and system time of this process so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are constants
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
