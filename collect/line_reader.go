package collect

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// lineReader tells a recorder of the requests in lines until they end or it is
// stopped.
type lineReader struct {
	source      string
	pipe        *io.PipeWriter
	done        chan struct{} // the lines have ended
	first, last atomic.Int64  // the range of times, 0 without events

	stats events.LineStats // after done
	err   error            // of reading, after done
}

// startLines begins to read a file, a FIFO or, for "-", in, and tells to. Nothing
// waits for a FIFO that nobody opens. live is set when lines come as things happen:
// then rec places times of other clocks.
func startLines(ctx context.Context, to recording, rec *events.Recorder, source string, in io.Reader,
	live bool) *lineReader {
	r, w := io.Pipe()
	f := &lineReader{source: source, pipe: w, done: make(chan struct{})}
	// Reading may block for ever, in open or in read, and nothing can end that but
	// the end of the process. So what reads is not waited for: its pipe is closed.
	go func() { w.CloseWithError(copyRequests(w, source, in)) }()
	o := events.LineOptions{}
	if live {
		o.Now = rec.Now
		o.OnAnchor = func(c rundb.Clock) { rec.Anchor(ctx, c) }
	}
	go func() {
		defer close(f.done)
		f.stats, f.err = events.ReadLines(ctx, r, o, func(e metric.Event) {
			if first := f.first.Load(); first == 0 || e.AtNS < first {
				f.first.Store(e.AtNS)
			}
			f.last.Store(max(f.last.Load(), e.AtNS))
			to.Record(e)
		})
		r.Close() // what still comes has no reader
	}()
	return f
}

func copyRequests(w io.Writer, source string, in io.Reader) error {
	if source != "-" {
		file, err := os.Open(source)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	_, err := io.Copy(w, in)
	return err
}

// stop waits up to grace for the end of the lines.
func (f *lineReader) stop(ctx context.Context, grace time.Duration) error {
	select {
	case <-f.done:
	case <-time.After(grace):
	case <-ctx.Done():
	}
	f.pipe.Close()
	<-f.done
	if f.err != nil && ctx.Err() == nil {
		return fmt.Errorf("read requests from %s: %w", f.source, f.err)
	}
	return nil
}
