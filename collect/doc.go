// Package collect records one run, from the first scrape to the last.
//
//	s, err := collect.Open(ctx, "run1", collect.Options{Targets: targets, Warmup: 30 * time.Second})
//	defer s.Close()
//	go load(s) // waits for s.Ready, and may call s.Mark, s.Client and s.Stop
//	run, err := s.Run(ctx)
//	result, err := run.Analyse(ctx, summary.Options{})
//
// A [Session] polls its targets, which may come and go, sets the marks of phases,
// runs a command, records what clients saw, and sends every sample elsewhere as
// well. Run ends when the context, Stop, the duration, the command or the mark
// "end" ends it, with a final scrape; whatever ended it, the recording is kept.
package collect
