// Package sweep makes curves of load points: which of them a server kept up with, how much it did where it did not, at
// which load it worked best, and up to which load it kept limits of latency.
//
// [Analyse] is a function of its arguments. A [Point] is what a server did in one stretch of time under one load; those
// of the same load are repeats of one point:
//
//	s := sweep.Analyse("base", "req/s", points, slos)
//	fmt.Println(s.Capacity.X, s.Knee.Load, s.SLO[0].Low)
//
// [NamedLoad] takes a load out of a name. The definitions are those of
// docs/sweep.md. What is missing is NaN with a reason, never zero, and a point that is not steady is used for nothing
// that needs one. Functions keep what they return and nothing else, and start no goroutines.
package sweep
