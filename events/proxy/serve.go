package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/events"
)

// grace is how long requests under way may take after the end was asked for.
const grace = 2 * time.Second

// Serve tells the recorder that the session has started, answers on ln, which it closes, until ctx is done, and tells
// the end when every request has ended. Requests under way get two seconds; then their connections are cut, and they
// are recorded as failed.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) error {
	var requests door
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.enter() {
				defer requests.wg.Done()
				p.ServeHTTP(w, r)
			}
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          p.reverse.ErrorLog,
	}
	p.Record(events.SessionStarted, nil)
	if !p.o.Untracked {
		p.Track(true)
	}
	ended := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() { ended <- srv.Serve(ln) })
	var err error
	select {
	case err = <-ended:
		err = fmt.Errorf("serve on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if srv.Shutdown(wait) != nil {
		_ = srv.Close() // cuts the connections, which ends their requests
	}
	serving.Wait()
	requests.shut()
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
	p.end()
	return err
}

// door lets requests in until it is shut, and knows when the last one has left.
type door struct {
	mu     sync.RWMutex
	closed bool
	wg     sync.WaitGroup
}

func (d *door) enter() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if !d.closed {
		d.wg.Add(1)
	}
	return !d.closed
}

func (d *door) shut() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.wg.Wait()
}

// NullDelay is the latency of requests to a server that does nothing, without and with a proxy between. AddedP50 and
// AddedP99 are differences of percentiles, which need not be percentiles of what is added.
type NullDelay struct {
	N                    int           `json:"n"`
	DirectP50, DirectP99 time.Duration `json:"-"`
	AddedP50             time.Duration `json:"added_p50_ns"`
	AddedP99             time.Duration `json:"added_p99_ns"`
}

// MeasureNull measures what a proxy like p adds in front of a server on loopback that answers at once, with n requests
// each way by turns, and keeps the result for Stats. Nothing of it is recorded.
func (p *Proxy) MeasureNull(ctx context.Context, n int) (NullDelay, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	start := func(h http.Handler) (string, error) {
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("listen for null upstream: %w", err)
		}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
		wg.Go(func() { _ = srv.Serve(ln) }) // ends when it is closed
		wg.Go(func() { <-ctx.Done(); _ = srv.Close() })
		return "http://" + ln.Addr().String(), nil
	}
	direct, err := start(http.HandlerFunc(null))
	if err != nil {
		return NullDelay{}, err
	}
	o := p.o
	o.Upstream, o.Recorder, o.Transport = direct, discard{}, nil
	inner, err := New(o)
	if err != nil {
		return NullDelay{}, err
	}
	defer inner.own.CloseIdleConnections()
	via, err := start(inner)
	if err != nil {
		return NullDelay{}, err
	}
	d, err := compare(ctx, direct, via, n)
	if err != nil {
		return NullDelay{}, fmt.Errorf("measure null upstream: %w", err)
	}
	p.counts.mu.Lock()
	defer p.counts.mu.Unlock()
	p.counts.null = &d
	return d, nil
}

// null answers with a stream of one chunk.
func null(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20)) // a broken request gets its answer all the same
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: "+
		"[DONE]\n\n")
}

// compare sends n requests to each of two servers by turns, after a few that open the connections.
func compare(ctx context.Context, direct, via string, n int) (NullDelay, error) {
	client := &http.Client{Transport: newTransport(4)}
	defer client.CloseIdleConnections()
	var took [2][]time.Duration
	for i := range 2 * (n + 4) {
		t, err := once(ctx, client, []string{direct, via}[i%2])
		if err != nil {
			return NullDelay{}, err
		}
		if i >= 8 {
			took[i%2] = append(took[i%2], t)
		}
	}
	q := func(side int, q float64) time.Duration {
		slices.Sort(took[side])
		return took[side][int(q*float64(len(took[side])-1))]
	}
	if n < 1 {
		return NullDelay{}, errors.New("no requests")
	}
	return NullDelay{N: n, DirectP50: q(0, 0.5), DirectP99: q(0, 0.99), AddedP50: q(1, 0.5) - q(0, 0.5),
		AddedP99: q(1, 0.99) - q(0, 0.99)}, nil
}

func once(ctx context.Context, client *http.Client, base string) (time.Duration, error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions",
		bytes.NewReader([]byte("{}")))
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return time.Since(began), errors.Join(err, resp.Body.Close())
}
