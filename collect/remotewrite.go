package collect

import (
	"context"
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// lastSend is how long the end of a run waits for samples that were not sent
// yet. What the receiver has not accepted by then is dropped and counted.
const lastSend = 2 * time.Second

// remoteWriteTee sends a run to a store while it is recorded; nil sends nothing.
type remoteWriteTee struct {
	w      *promstore.RemoteWriter
	cancel context.CancelFunc
	done   chan struct{}
}

// startTee starts sending, until stop is called.
func startTee(ctx context.Context, w *promstore.RemoteWriter, targets []metric.Target) *remoteWriteTee {
	if w == nil {
		return nil
	}
	for _, t := range targets {
		w.AddTarget(t)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &remoteWriteTee{w: w, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		w.Run(ctx)
	}()
	return t
}

func (t *remoteWriteTee) addTarget(target metric.Target) {
	if t != nil {
		t.w.AddTarget(target)
	}
}

// stop sends what is left, for lastSend at most and no longer than ctx lasts, and
// returns what was lost.
func (t *remoteWriteTee) stop(ctx context.Context) []metric.Warning {
	if t == nil {
		return nil
	}
	t.w.Close()
	timer := time.NewTimer(lastSend)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	t.cancel()
	<-t.done
	return t.warnings()
}

func (t *remoteWriteTee) warnings() (out []metric.Warning) {
	st := t.w.Stats()
	if st.Lost() > 0 {
		text := fmt.Sprintf("remote write to %s: %d samples were sent, %d were dropped as the receiver did not follow, "+
			"%d were refused or failed",
			t.w, st.Sent, st.Dropped, st.Failed)
		if st.Err != "" {
			text += "; the last error: " + st.Err
		}
		out = append(out, metric.Warning{Code: "remote_write_lost", Text: text})
	}
	if st.Native > 0 {
		out = append(out, metric.Warning{Code: "remote_write_native", Text: fmt.Sprintf(
			"remote write to %s: %d values of buckets of native histograms were not sent; their sums and counts were", t.w,
			st.Native)})
	}
	return out
}
