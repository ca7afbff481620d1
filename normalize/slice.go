package normalize

// maxSlices bounds the number of slices of a window: a slice width that makes
// more of them is a mistake that would only fill the memory.
const maxSlices = 100_000

// boundariesBefore returns how many of the boundaries start, start+width, ... lie before t.
func boundariesBefore(start, width, t int64) int64 {
	if t <= start {
		return 0
	}
	return (t-start-1)/width + 1
}

// grid cuts [start, end) into slices; the last one is partial when its width
// does not fit. It returns nil and false when there would be too many.
func grid(start, end, width int64) ([]Slice, bool) {
	n := boundariesBefore(start, width, end)
	if n > maxSlices {
		return nil, false
	}
	out := make([]Slice, n)
	for k := range out {
		from := start + int64(k)*width
		out[k] = Slice{StartNS: from, EndNS: end, Partial: width > end-from}
		if !out[k].Partial {
			out[k].EndNS = from + width
		}
	}
	return out, true
}

// seconds converts a duration of nanoseconds as AIPerf does.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }
