package histest_test

import (
	"fmt"

	"github.com/scrapestat/scrapestat/histest"
)

// Of 100 observations only the counts of three buckets are known. The median is
// estimated, and an interval holds the true one.
func Example() {
	bounds := []float64{0.1, 0.2, 0.4}
	est, err := histest.New(histest.Linear, bounds)
	if err != nil {
		fmt.Println(err)
		return
	}
	gained := histest.Delta{Bounds: bounds, Cum: []float64{20, 80, 100}, HasInf: true, Inf: 100, Sum: 16, Count: 100}
	est.Interval(&gained)
	estimates, ok := est.Quantiles(nil, &gained, []float64{0.5})
	if !ok {
		fmt.Println("no observations")
		return
	}
	fmt.Printf("median %.3f, between %.1f and %.1f\n", estimates[0].Value, estimates[0].Low, estimates[0].High)
	// Output: median 0.150, between 0.1 and 0.2
}
