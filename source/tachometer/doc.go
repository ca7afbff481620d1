// Package tachometer reads the Parquet files of srt-slurm's Tachometer: a row is one value of one series, and of a
// bucket with the sum and count of its histogram.
//
//	r, err := tachometer.Open(files, tachometer.Options{})
//	stats, err := r.Import(ctx, sink)
//
// The files have no types, no failed polls, and values of 32 bits: integers above 16,777,216 are rounded, which Stats
// tells by family. Rows of an endpoint within 5 ms are one poll.
package tachometer
