package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// lastSend is how long the end of a run waits for samples that were not sent
// yet. What the receiver has not accepted by then is dropped and counted.
const lastSend = 2 * time.Second

// remoteWriteFlags say where every sample is sent as well.
type remoteWriteFlags struct {
	url, version string
	labels       map[string]string
	auth         authFlags
	client       *discover.Client // of auth, with what is unsafe about it
	unsafe       []metric.Warning
}

func (r *remoteWriteFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.url, "remote-write", "", "also send every sample to this `URL` of a Prometheus-compatible store, such as http://host:9090/api/v1/write")
	f.StringVar(&r.version, "remote-write-version", promstore.WriteAuto, "`version` of remote write: auto, 1 or 2")
	f.StringToStringVar(&r.labels, "remote-write-label", nil, "label `K=V` of every series sent, besides job, instance and target (repeatable)")
	r.auth.register(f, "remote-write-", "the receiver of remote write")
}

// open makes the writer; nil without --remote-write.
func (r *remoteWriteFlags) open() (*promstore.RemoteWriter, error) {
	if r.url == "" {
		return nil, nil
	}
	header, client, unsafe, err := r.auth.open()
	if err != nil {
		return nil, err
	}
	w, err := promstore.NewWriter(promstore.WriterOptions{URL: r.url, Version: r.version, Labels: r.labels, Header: header, Transport: client, Redact: client.Redact})
	if err != nil {
		return nil, usagef("--remote-write: %w", err)
	}
	r.client, r.unsafe = client, unsafe
	return w, nil
}

// remoteWriteTee sends a run to a store while it is recorded.
type remoteWriteTee struct {
	url    string // as outputs may show it
	w      *promstore.RemoteWriter
	client *discover.Client
	cancel context.CancelFunc
	done   chan struct{}
}

// startMirror starts sending; nil without --remote-write.
func (r *remoteWriteFlags) startMirror(w *promstore.RemoteWriter, targets []scrape.Target) *remoteWriteTee {
	if w == nil {
		return nil
	}
	for _, t := range targets {
		w.AddTarget(t.Public())
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &remoteWriteTee{url: promstore.Redact(r.url), w: w, client: r.client, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		w.Run(ctx)
	}()
	return m
}

// stop sends what is left, for lastSend at most and no longer than ctx lasts, and
// returns what is to be said about it. It may be called on nil.
func (m *remoteWriteTee) stop(ctx context.Context) []metric.Warning {
	if m == nil {
		return nil
	}
	m.w.Close()
	select {
	case <-m.done:
	case <-time.After(lastSend):
	case <-ctx.Done():
	}
	m.cancel()
	<-m.done
	m.client.CloseIdleConnections()
	return m.warnings()
}

func (m *remoteWriteTee) warnings() (out []metric.Warning) {
	st := m.w.Stats()
	if st.Lost() > 0 {
		text := fmt.Sprintf("remote write to %s: %d samples were sent, %d were dropped as the receiver did not follow, %d were refused or failed", m.url, st.Sent, st.Dropped, st.Failed)
		if st.Err != "" {
			text += "; the last error: " + st.Err
		}
		out = append(out, metric.Warning{Code: "remote_write_lost", Text: text})
	}
	if st.Native > 0 {
		out = append(out, metric.Warning{Code: "remote_write_native", Text: fmt.Sprintf("remote write to %s: %d values of buckets of native histograms were not sent; their sums and counts were", m.url, st.Native)})
	}
	return out
}
