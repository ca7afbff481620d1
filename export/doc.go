// Package export writes the result of a run as machine-readable files.
//
// The four server_metrics_export files have AIPerf's names, layout and numbers (design document aiperf.md, section 5),
// so that whatever reads AIPerf's files reads these:
//
//	JSON      statistics and slices per series, schema 1.1 or 1.0
//	CSV       the same as tables
//	JSONL     every stored poll that is no duplicate, raw values, whole run
//	Parquet   every sample of the window, counted from its reference
//
// What AIPerf has no place for is under the top-level key "scrapestat" of the JSON, which AIPerf's readers skip: the
// ledger of every poll and line, warnings, resets, gaps, exact windows, bounds of percentiles, own units, limits.
// [TidyParquet] is a layout of our own.
//
// [Write] writes files; the functions of the formats write to any writer:
//
//	run, err := summary.Build(ctx, recordings, summary.Options{})
//	files, err := export.Write(ctx, dir, []string{"json", "csv"}, run, recordings, export.Options{})
//
// The same recording gives the same bytes. Nothing a target sent can break the form of a file: text is escaped, invalid
// UTF-8 replaced, and values that are not finite are left out.
package export
