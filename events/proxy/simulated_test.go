package proxy_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/internal/simulate"
)

const (
	simStreams = 200
	simTokens  = 64
)

// What becomes of a stream, by its number.
func serverBreaks(i int) bool { return i%20 == 7 }
func clientLeaves(i int) bool { return i%20 == 13 }

// hold keeps streams at one place until all are there and it is opened.
type hold struct {
	arrived sync.WaitGroup
	open    chan struct{}
}

func newHold(streams int) *hold {
	h := &hold{open: make(chan struct{})}
	h.arrived.Add(streams)
	return h
}

func (h *hold) wait() {
	h.arrived.Done()
	<-h.open
}

// watched is the simulated server with an eye on what it writes. All streams wait
// for each other at an early chunk and at a late one.
type watched struct {
	server      http.Handler
	early, late *hold
	mu          sync.Mutex
	sent        map[int][sha256.Size]byte // of streams that came to their end
	broken      map[int][]byte            // what was written before the server broke
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	sim, err := simulate.New("vllm", simulate.Options{Load: []simulate.LoadStep{{}}, Seed: 5, AbortShare: -1,
		ErrorShare: -1,
		Hardware: simulate.Hardware{StepBase: 2 * time.Millisecond, StepPerSequence: time.Microsecond, MaxSequences: 256,
			Blocks: 4096}})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{server: sim, early: newHold(simStreams), sent: map[int][sha256.Size]byte{}, broken: map[int][]byte{}}
	w.late = newHold(simStreams - 2*simStreams/20)
	return w
}

func (s *watched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(r.Header.Get("X-Request-Id"))
	if err != nil {
		s.server.ServeHTTP(w, r)
		return
	}
	out := &watchedWriter{ResponseWriter: w, s: s, i: i, sum: sha256.New(), gone: r.Context().Done()}
	s.server.ServeHTTP(out, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[i] = [sha256.Size]byte(out.sum.Sum(nil))
}

// watchedWriter sees the chunks of one stream.
type watchedWriter struct {
	http.ResponseWriter
	s      *watched
	i      int
	chunks int
	sum    hash.Hash
	kept   []byte
	gone   <-chan struct{}
}

func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watchedWriter) Write(b []byte) (int, error) {
	if w.chunks++; w.chunks == 4 || w.chunks == simTokens-4 {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // what came so far is to be with the client
	}
	switch {
	case w.chunks == 4:
		w.s.early.wait()
	case w.chunks == 20 && serverBreaks(w.i):
		w.s.mu.Lock()
		w.s.broken[w.i] = w.kept
		w.s.mu.Unlock()
		panic(http.ErrAbortHandler)
	case w.chunks == simTokens-4 && clientLeaves(w.i):
		<-w.gone
	case w.chunks == simTokens-4:
		w.s.late.wait()
	}
	n, err := w.ResponseWriter.Write(b)
	w.sum.Write(b[:n])
	if serverBreaks(w.i) {
		w.kept = append(w.kept, b[:n]...)
	}
	return n, err
}

// liveHeap is what is reachable, in bytes.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what pools hold dies with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// simulatedLoad runs all streams at the same time against base and returns how much
// more is live, in bytes, when all are at an early and at a late chunk.
func simulatedLoad(t *testing.T, base string, s *watched) (early, late int64) {
	t.Helper()
	before := liveHeap()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: simStreams}
	defer transport.CloseIdleConnections()
	var clients sync.WaitGroup
	for i := range simStreams {
		clients.Go(func() { simulatedClient(t, transport, base, s, i) })
	}
	s.early.arrived.Wait()
	early = liveHeap() - before
	close(s.early.open)
	s.late.arrived.Wait()
	late = liveHeap() - before
	close(s.late.open)
	clients.Wait()
	return early, late
}

func simulatedClient(t *testing.T, transport http.RoundTripper, base string, s *watched, i int) {
	resp, err := transport.RoundTrip(question(t, base, i))
	if err != nil {
		t.Errorf("stream %d: %v", i, err)
		return
	}
	defer resp.Body.Close()
	sum := sha256.New()
	switch {
	case clientLeaves(i):
		if _, err := io.ReadFull(resp.Body, make([]byte, 2000)); err != nil {
			t.Errorf("stream %d: %v", i, err)
		}
	case serverBreaks(i):
		got, err := io.ReadAll(resp.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil || len(got) == 0 || !bytes.HasPrefix(s.broken[i], got) {
			t.Errorf("stream %d, whose server broke: error %v after %d bytes of %d", i, err, len(got), len(s.broken[i]))
		}
	default:
		n, err := io.Copy(sum, resp.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		// The end of a body comes after its handler has returned.
		if err != nil || n < 100*simTokens || s.sent[i] != [sha256.Size]byte(sum.Sum(nil)) {
			t.Errorf("stream %d: %d bytes, error %v, or not what the server sent", i, n, err)
		}
	}
}

func question(t *testing.T, base string, i int) *http.Request {
	body := fmt.Sprintf(
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":%d,"ignore_eos":true,`+
			`"messages":[{"role":"user","content":"question %d"}]}`, simTokens, i)
	r := post(t, base, body)
	r.Header.Set("X-Request-Id", strconv.Itoa(i))
	return r
}

// brokenClients send what no client should: half a request, no HTTP, half a head.
func brokenClients(t *testing.T, base string) {
	host := strings.TrimPrefix(base, "http://")
	for _, text := range []string{
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
			"1000\r\n\r\n{\"stream\":true,",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
		"GET /v1/chat/completions", "\x16\x03\x01\x00", "",
	} {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, text) // it may hang up before all is sent
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, c) // until the proxy hangs up
		_ = c.Close()
	}
}

// maxPerStream bounds what the proxy may hold for a stream: both connections with
// their buffers of 16 KiB and less, the 32 KiB of the copy, and a line.
const maxPerStream = 128 << 10

// TestSimulatedServer: 200 streams at the same time from the simulated vLLM server.
// What clients get is what the server sent, by hash. Servers that break, clients
// that leave and clients that talk nonsense are survived. What the proxy
// holds for a stream is bounded and does not grow while the stream goes on.
func TestSimulatedServer(t *testing.T) {
	direct := newWatched(t)
	alone := httptest.NewServer(direct)
	early, late := simulatedLoad(t, alone.URL, direct)
	alone.Close()

	s := newWatched(t)
	base, l, stop := running(t, proxy.Options{}, s)
	brokenClients(t, base)
	viaEarly, viaLate := simulatedLoad(t, base, s)
	brokenClients(t, base)
	after := question(t, base, 1)
	after.Header.Del("X-Request-Id") // not watched
	resp, err := http.DefaultTransport.RoundTrip(after)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("after the broken ones: status %d, %v", resp.StatusCode, err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	stats := stop()

	per := func(bytes int64) int64 { return bytes / simStreams }
	t.Logf("live heap per stream: direct %d, then %d; through the proxy %d, then %d bytes; added p50 %v, p99 %v, most %v",
		per(early), per(late), per(viaEarly), per(viaLate), stats.Added.P50, stats.Added.P99, stats.Added.Max)
	if per(viaEarly-early) > maxPerStream || per(viaLate-late) > maxPerStream || per(viaLate-viaEarly) > 4<<10 {
		t.Errorf("the proxy holds %d, then %d bytes for a stream, want at most %d and no growth", per(viaEarly-early),
			per(viaLate-late), maxPerStream)
	}
	if stats.MaxHeld > simStreams*4<<10 {
		t.Errorf("%d bytes were held for scanning", stats.MaxHeld)
	}
	checkSimulated(t, l.requests(t), stats)
}

// checkSimulated holds what was recorded against what was done.
func checkSimulated(t *testing.T, all []events.Request, stats proxy.Stats) {
	const each = simStreams / 20
	good, kinds := 0, map[string]int{}
	for _, r := range all {
		if r.Error != "" {
			kinds[r.Error]++
			continue
		}
		good++
		if r.Output != simTokens || r.Source != events.TokensUsage || r.Finish != "length" || r.HTTPStatus != 200 ||
			r.FirstNS <= r.IssuedNS ||
			r.CompleteNS < r.LastNS || r.LastNS <= r.FirstNS {
			t.Errorf("recorded %+v", r)
		}
	}
	if good != simStreams-2*each+1 || kinds["upstream_broken"] != each || kinds["client_disconnected"] != each ||
		kinds["request_broken"] != 4 || len(kinds) != 3 {
		t.Errorf("%d good requests, errors %v", good, kinds)
	}
	if stats.Requests != int64(len(all)) || stats.Failed != int64(len(all)-good) || stats.Added.N != int64(good) ||
		stats.Added.P50 <= 0 || stats.Added.P99 < stats.Added.P50 {
		t.Errorf("stats %+v of %d requests", stats, len(all))
	}
}
