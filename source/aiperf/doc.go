// Package aiperf reads AIPerf's JSONL file of server metrics, and ours, which has the same form: one line per poll,
// cumulative values as the servers sent them.
//
//	types, err := aiperf.ReadTypes(jsonFile) // optional: the JSON export beside it
//	stats, err := aiperf.Import(ctx, file, aiperf.Options{Types: types}, sink)
//
// The lines carry no types. A sample with buckets, a sum or a count is of a histogram; of all others the JSON export of
// the same run knows the type. What neither says is unknown, whose statistics are those of a gauge, unless
// Options.Counters matches its name.
//
// What the file leaves out stays missing: polls that failed or repeated the body before them, values that are not
// finite, families ending in _info, help texts where there is no JSON export. Counts above 2^53 are rounded to a float.
//
// Overlapping scrapes can leave lines out of order; up to 32 polls of an
// endpoint wait to be sorted. A line that cannot be read costs that line.
package aiperf
