// Package openmetrics reads dumps: OpenMetrics or Prometheus text whose samples
// have timestamps, as promtool and stores write them.
//
//	stats, err := openmetrics.Import(ctx, file, openmetrics.Options{Address: "dump.om"}, sink)
//
// Accepted is what occurs in the wild: HELP, TYPE and UNIT lines or none, names before or inside the braces, samples in
// any order, exemplars (ignored), CRLF, a missing end, seconds or milliseconds. A timestamp with a fraction or below
// 1e11 is in seconds (up to the year 5138), any other in milliseconds (from the year 1973). A file that was imported is
// exempt from the rules about bodies that were cut on the way; lines after # EOF are refused.
//
// A line that cannot be stored costs that line only and is counted. All samples are held until the end of the file, as
// a dump is sorted by series and a run by time: 16 bytes each, up to Options.Limits.Samples.
package openmetrics
