// Package live shows a run in the terminal while it is recorded: what the
// engines do, how the targets answer, and what watching costs them.
//
//	board := live.NewBoard(targets)    // give it every poll: board.Record(snapshot)
//	err := live.Run(ctx, live.Options{ // draws until ctx is done
//		Board: board, Status: status, Result: result, Quit: quit,
//		In: os.Stdin, Out: os.Stderr,
//	})
//
// # What it costs
//
// Polling never waits for the view. Board.Record adds a few numbers to the account of one target, under a lock
// that the view holds just as briefly, for each target on its own. The view copies the accounts twice a second;
// the result, which costs more, it asks for at most every 2 seconds and so seldom that making it takes a
// twentieth of the time. Memory is bounded: a trend keeps its last 60 points, there are at most maxTrends of
// them, and of a target its last 60 scrape times.
//
// # What it shows
//
// A value "so far" is one of the window, as the summary at the end will have it. A value "now" is one of the time since
// the last look: the quotient of what numerator and denominator gained, so it is no mean of means. What cannot be had
// for so short a time, such as a percentile, has none. Trends are drawn from 0 to their own highest point.
//
// Everything that a target sends is escaped before it is drawn.
package live
