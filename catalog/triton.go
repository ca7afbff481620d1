package catalog

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// The families of Triton's statistics extension, section 3.2 of the design document triton.md.
// Durations are in nanoseconds.
const (
	tritonPrefix     = "triton_stats_"
	tritonInferences = tritonPrefix + "inferences_total"
	tritonExecutions = tritonPrefix + "executions_total"
	tritonRequests   = tritonPrefix + "requests_total"
	tritonRequestNS  = tritonPrefix + "request_duration_nanoseconds_total"
	tritonBatches    = tritonPrefix + "batch_executions_total"
	tritonBatchNS    = tritonPrefix + "batch_duration_nanoseconds_total"
	tritonSteps      = tritonPrefix + "ensemble_steps"
	tritonReady      = tritonPrefix + "model_ready"

	tritonName = "triton_derived_"
)

func stat(name string) []metric.Label { return []metric.Label{{Name: "stat", Value: name}} }

func requestCount(s string) Term { return Term{Family: tritonRequests, Where: stat(s)} }
func requestTime(s string) Term {
	return Term{Family: tritonRequestNS, Where: stat(s), Factor: 1e-9}
}

// computeParts are the statistics that make up compute.
var computeParts = [...]string{"compute_input", "compute_infer", "compute_output"}

// cacheOn reports whether a response cache was at work.
func cacheOn(v *View) bool {
	return v.Amount(requestCount("cache_hit")).Value+v.Amount(requestCount("cache_miss")).Value > 0
}

// sized is a batch size and how often it was executed.
type sized struct{ size, executions, inferNS float64 }

// batchSizes returns the batch sizes of a model in ascending order, and how many resets their counters had.
func batchSizes(v *View) (out []sized, resets int) {
	inferNS := map[metric.Labels]float64{}
	for _, g := range v.Series(tritonBatchNS, stat("compute_infer")...) {
		inferNS[g.Labels] += g.Total
	}
	for _, g := range v.Series(tritonBatches, stat("compute_infer")...) {
		text, _ := g.Labels.Get("batch_size")
		size, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			continue
		}
		out = append(out, sized{size: float64(size), executions: g.Total, inferNS: inferNS[g.Labels]})
		resets += g.Resets
	}
	slices.SortFunc(out, func(a, b sized) int { return cmp.Compare(a.size, b.size) })
	return out, resets
}

// batchPercentiles is the exact distribution of batch sizes, as executions see it and as inferences do: the smallest
// size whose cumulative share reaches p.
func batchPercentiles(v *View) []Derived {
	sizes, resets := batchSizes(v)
	if len(sizes) == 0 {
		return nil
	}
	var out []Derived
	for _, p := range []float64{50, 90, 99} {
		for _, weight := range []string{"execution", "inference"} {
			d := Derived{Name: tritonName + "batch_size_p" + strconv.Itoa(int(p)), Families: []string{tritonBatches},
				Labels: metric.NewLabels(metric.Label{Name: "weight", Value: weight})}
			if resets > 0 {
				d.Status = ResetCorrected
			}
			var ok bool
			if d.Value, ok = batchPercentile(sizes, p, weight == "inference"); !ok {
				d.Status = ZeroDenominator
			}
			d.Shown = d.Value
			out = append(out, d)
		}
	}
	return out
}

func batchPercentile(sizes []sized, p float64, inferences bool) (float64, bool) {
	weight := func(s sized) float64 {
		if inferences {
			return s.executions * s.size
		}
		return s.executions
	}
	all, cum := 0.0, 0.0
	for _, s := range sizes {
		all += weight(s)
	}
	for _, s := range sizes {
		if cum += weight(s); cum > 0 && cum*100 >= p*all {
			return s.size, true
		}
	}
	return 0, false
}

// scaling is the time in the model per inference by batch size.
func scaling(v *View) []Derived {
	sizes, _ := batchSizes(v)
	var out []Derived
	for _, s := range sizes {
		d := Derived{Labels: metric.NewLabels(metric.Label{Name: "batch_size",
			Value: strconv.FormatFloat(s.size, 'f', -1, 64)}),
			Numerator: s.inferNS * 1e-9, Denominator: s.size * s.executions, HasParts: true,
			Families: []string{tritonBatches, tritonBatchNS}}
		if d.Denominator == 0 {
			d.Status = ZeroDenominator
		} else {
			d.Value = d.Numerator / d.Denominator
		}
		d.Shown = d.Value
		out = append(out, d)
	}
	return out
}
