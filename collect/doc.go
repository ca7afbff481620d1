// Package collect records one run, from the first scrape to the last.
//
//	s, err := collect.Open(ctx, "run1", collect.Options{Targets: targets, Warmup: 30 * time.Second})
//	go load(s.Client()) // or nothing: s.Mark("high")
//	run, err := s.Run(ctx)
//	defer s.Close()
//
// A [Session] polls its targets, which may come and go, sets the marks of phases,
// runs a command, records what clients saw, and sends every sample elsewhere as
// well. Run ends when the context, Stop, the duration, the command or the mark
// "end" ends it, with a final scrape; whatever ended it, the recording is kept.
package collect
