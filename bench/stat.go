package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// stat is what the rounds gave.
type stat []float64

func (s stat) median() float64 {
	v := slices.Sorted(slices.Values(s))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// String is the median and the range.
func (s stat) String() string {
	switch len(s) {
	case 0:
		return "-"
	case 1:
		return short(s[0])
	}
	return fmt.Sprintf("%s (%s to %s)", short(s.median()), short(slices.Min(s)), short(slices.Max(s)))
}

// over is s/t of each round; a t that was measured once counts for all.
func (s stat) over(t stat) stat {
	var out stat
	for i := range min(len(s), len(s)*len(t)) {
		out = append(out, s[i]/t[min(i, len(t)-1)])
	}
	return out
}

// times is s with each value multiplied.
func (s stat) times(by float64) stat {
	var out stat
	for _, v := range s {
		out = append(out, v*by)
	}
	return out
}

// short formats v with four digits.
func short(v float64) string { return fmt.Sprintf("%.4g", v) }

// turn is work of a round, and gives what it took.
type turn func() (float64, error)

// turns runs fs A B A B and returns what each gave in the rounds.
func (b *bench) turns(fs ...turn) ([]stat, error) {
	stats := make([]stat, len(fs))
	for range b.rounds {
		for i, f := range fs {
			v, err := f()
			if err != nil {
				return nil, err
			}
			stats[i] = append(stats[i], v)
		}
	}
	return stats, nil
}

// timed warms up a function that does one unit of work, and makes a turn of many that
// gives nanoseconds of processor time per unit, garbage collection included.
func timed(unit func() error) (turn, error) {
	work := func(n int) (time.Duration, error) {
		start := processorTime()
		for range n {
			if err := unit(); err != nil {
				return 0, err
			}
		}
		return processorTime() - start, nil
	}
	n, took := 1, time.Duration(0)
	for took < 40*time.Millisecond && n < 1<<26 {
		var err error
		if took, err = work(n); err != nil {
			return nil, err
		}
		n *= 4
	}
	return func() (float64, error) {
		took, err := work(n)
		return float64(took) / float64(n), err
	}, nil
}

// processorTime is the user and system time of this process so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are constants
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
