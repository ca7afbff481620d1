package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Clients is a load generator for servers of OpenAI's interface: requests arrive at random times with Rate and stream
// their answers. The zero value of a field but URL has a default.
type Clients struct {
	URL       string        // base address: "http://127.0.0.1:9000"
	Rate      float64       // requests per second; 0 means 8
	For       time.Duration // how long requests arrive; 0 means until ctx is done
	Open      int           // requests at the same time, further ones wait; 0 means 256
	MaxTokens int           // of an answer; 0 means 64
	Prompt    int           // mean length of a prompt in tokens; 0 means 200
	Seed      uint64
}

// LoadResult is what became of the requests.
type LoadResult struct {
	Sent, Done, Failed int
	Bytes              int64
	FirstError         error // nil when none failed
}

// Run sends requests until the time is over and returns when all have ended. It
// fails only for a URL that is none; failed requests are counted.
func (c Clients) Run(ctx context.Context) (LoadResult, error) {
	orDefault(&c.Open, 256)
	orDefault(&c.MaxTokens, 64)
	orDefault(&c.Prompt, 200)
	orDefault(&c.Rate, 8)
	if _, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, nil); err != nil {
		return LoadResult{}, fmt.Errorf("send load: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: c.Open, IdleConnTimeout: 4 * time.Second}
	defer transport.CloseIdleConnections()
	var (
		mu   sync.Mutex
		out  LoadResult
		wg   sync.WaitGroup
		free = make(chan struct{}, c.Open)
		rng  = rand.New(rand.NewPCG(c.Seed, 77))
	)
	began, due := time.Now(), time.Duration(0)
	for {
		due += time.Duration(rng.ExpFloat64() / c.Rate * 1e9)
		body := c.body(rng)
		if c.For > 0 && due > c.For || !waitUntil(ctx, began.Add(due), free) {
			break
		}
		out.Sent++
		wg.Go(func() {
			defer func() { <-free }()
			n, err := c.send(ctx, transport, body)
			mu.Lock()
			defer mu.Unlock()
			if out.Bytes += n; err == nil {
				out.Done++
				return
			}
			if out.Failed++; out.FirstError == nil {
				out.FirstError = err
			}
		})
	}
	wg.Wait()
	return out, nil
}

// waitUntil waits for the instant and then for a free place.
func waitUntil(ctx context.Context, at time.Time, free chan struct{}) bool {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	select {
	case free <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// body draws a request.
func (c Clients) body(rng *rand.Rand) string {
	n := 1 + int(rng.ExpFloat64()*float64(c.Prompt))
	return fmt.Sprintf(`{"model":"any","stream":true,"stream_options":{"include_usage":true},"max_tokens":%d,`+
		`"messages":[{"role":"user","content":"%s"}]}`,
		1+rng.IntN(2*c.MaxTokens), strings.Repeat("word", min(n, 100_000)))
}

func (c Clients) send(ctx context.Context, transport http.RoundTripper, body string) (n int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.URL, "/")+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("send request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, fmt.Errorf("send request: %w", err)
	}
	n, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return n, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return n, fmt.Errorf("read answer: status %s", resp.Status)
	}
	return n, nil
}
