// Package torchserve reads the metric logs of TorchServe.
//
// By default TorchServe puts its metrics into log files and leaves /metrics empty. A line is one
// event, the duration of one request say:
//
//	2026-11-20T23:13:36,462 - HandlerTime.ms:20.1|#ModelName:echo,Level:Model|#hostname:vm,timestamp:1795216416
//
// A [Source] follows such logs while a run is recorded and shows at each poll what /metrics would show if TorchServe
// were in prometheus mode: the same families, types and labels. [Import] makes the same of logs that are complete.
// Beyond that every line of a gauge, of a histogram and of a sum of durations is kept as a [metric.Observation] with
// its own time and request ids, so that distributions are exact.
//
// # What a line means
//
// The line of a counter is an increment, that of a gauge or histogram a raw observation. Which of them a family is says
// metrics.yaml, else the #type tag of the line, else TorchServe's own metrics.yaml, else the unit. Counters and
// histograms are sums since the source began, and begin with 0: a series that is new in a poll is shown as 0 by it and
// with its sum by the next one, so that its first increments are inside a difference.
//
// # Time
//
// The time before a line has milliseconds and no time zone, the timestamp in it has whole seconds
// since 1970. The zone is what brings them together, in steps of 15 minutes.
package torchserve
