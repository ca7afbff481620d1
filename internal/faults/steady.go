package faults

import (
	"errors"
	"fmt"
	"slices"
)

// Reading is what a process holds at one instant of a long run.
type Reading struct {
	Memory      int64 // bytes
	Descriptors int
	Goroutines  int
}

// Drift compares the first quarter of the readings after the warm-up with the last one: the memory by its medians;
// descriptors and goroutines by the number that was seen most often, as connections come and go with the faults.
type Drift struct{ First, Last Reading }

// maxDrift is the part by which the memory of a long run may grow.
const maxDrift = 0.05

// Growth is by what part the memory has grown; negative, it has shrunk.
func (d Drift) Growth() float64 {
	return float64(d.Last.Memory)/float64(d.First.Memory) - 1
}

// String says how the memory went, and what stayed.
func (d Drift) String() string {
	return fmt.Sprintf("memory %.1f MB after the warm-up, %.1f MB at the end (%+.1f %%), descriptors %d and %d, "+
		"goroutines %d and %d",
		float64(d.First.Memory)/1e6, float64(d.Last.Memory)/1e6, 100*d.Growth(),
		d.First.Descriptors, d.Last.Descriptors, d.First.Goroutines, d.Last.Goroutines)
}

// Check returns what has grown: the memory by more than 5 %, descriptors and goroutines at all.
func (d Drift) Check() error {
	var errs []error
	if g := d.Growth(); g > maxDrift {
		errs = append(errs, fmt.Errorf("memory grew by %.1f %%, from %d to %d bytes", 100*g, d.First.Memory, d.Last.Memory))
	}
	if d.Last.Descriptors > d.First.Descriptors {
		errs = append(errs, fmt.Errorf("open descriptors grew from %d to %d", d.First.Descriptors, d.Last.Descriptors))
	}
	if d.Last.Goroutines > d.First.Goroutines {
		errs = append(errs, fmt.Errorf("goroutines grew from %d to %d", d.First.Goroutines, d.Last.Goroutines))
	}
	return errors.Join(errs...)
}

// leastReadings is how many readings after the warm-up a verdict takes: three in each quarter.
const leastReadings = 12

// Steady makes the verdict on readings taken at even intervals, of which the first warm ones are the warm-up.
func Steady(readings []Reading, warm int) (Drift, error) {
	after := readings[min(max(warm, 0), len(readings)):]
	if len(after) < leastReadings {
		return Drift{}, fmt.Errorf("judge a long run: %d readings after the warm-up, want %d", len(after), leastReadings)
	}
	quarter := len(after) / 4
	return Drift{summarise(after[:quarter]), summarise(after[len(after)-quarter:])}, nil
}

func summarise(readings []Reading) Reading {
	var memory []int64
	var descriptors, goroutines []int
	for _, r := range readings {
		memory = append(memory, r.Memory)
		descriptors, goroutines = append(descriptors, r.Descriptors), append(goroutines, r.Goroutines)
	}
	slices.Sort(memory)
	return Reading{memory[len(memory)/2], mostOften(descriptors), mostOften(goroutines)}
}

// mostOften returns the number that is there most often, the smallest of several.
func mostOften(numbers []int) (most int) {
	count := map[int]int{}
	for _, n := range numbers {
		count[n]++
	}
	best := 0
	for n, c := range count {
		if c > best || c == best && n < most {
			most, best = n, c
		}
	}
	return most
}
