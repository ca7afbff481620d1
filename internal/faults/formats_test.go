package faults_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// TestCatalogueFormats has the cases D12, E03, E04 and X08 as far as they need no
// program of their own.
func TestCatalogueFormats(t *testing.T) {
	t.Run("E03 all formats", func(t *testing.T) {
		// A value that only an exact writer keeps, and that CSV rounds to four decimals.
		const exact = 0.1234567890123456789
		s := playText(t, fmt.Sprintf("# TYPE g gauge\ng %v\n", exact), fmt.Sprintf("# TYPE g gauge\ng %v\n", exact))
		for _, format := range []string{"json", "jsonl"} {
			if !slices.Contains(s.numbers(format), exact) {
				t.Errorf("%s does not have the number, bit by bit", format)
			}
		}
		if !slices.ContainsFunc(s.texts("parquet"), func(v string) bool { f, err := strconv.ParseFloat(v, 64); return err == nil && f == exact }) {
			t.Error("parquet does not have the number, bit by bit")
		}
		if !slices.Contains(s.texts("csv"), "0.1235") {
			t.Error("csv does not have the number as AIPerf rounds it")
		}
	})
	t.Run("E04 separators", func(t *testing.T) {
		hostile := "a,b\n\"c\""
		s := playText(t, "g{x="+strconv.Quote(hostile)+"} 1\n", "g{x="+strconv.Quote(hostile)+"} 1\n")
		s.has(hostile)
	})
	t.Run("X08 one line", func(t *testing.T) {
		s := play(t, badserver.Steps(false, badserver.Answer{Status: 500, Body: []byte("one\ntwo\r\n\x1b[2J\x1b]0;title\x07three")}), 2, scrape.Options{})
		for _, p := range s.polls[0] {
			if strings.ContainsAny(p.Err, "\n\r\x1b\x07") || !strings.Contains(p.Err, "one") {
				t.Errorf("error %q is not one clean line", p.Err)
			}
		}
	})
	t.Run("D12 an hour with faults", hour)
}

// numbers returns every number of a JSON export.
func (s *scene) numbers(format string) (out []float64) {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "server_metrics_export."+format))
	if err != nil {
		s.t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(data))); ; {
		token, err := d.Token()
		if err != nil {
			return out
		}
		if f, ok := token.(float64); ok {
			out = append(out, f)
		}
	}
}

// hour records an hour of a target that fails every tenth time and restarts every
// ten minutes, in synthetic time: goroutines stay, and so does the memory after
// the first ten minutes. The soak in real time is another test.
func hour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, value := 0, 0
		target := scrape.Target{URL: "http://t/metrics", RoundTripper: transport(func(r *http.Request) (*http.Response, error) {
			if n++; n%10 == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			if value += 3; n%1800 == 0 {
				value = 0
			}
			body := fmt.Sprintf("# TYPE c_total counter\nc_total %d\n# TYPE g gauge\ng %d\n", value, n%7)
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Request: r, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, nil
		})}
		o := scrape.Options{Interval: time.Second, MaxScrapeShare: -1}
		o.Origin = time.Now()
		meta := metaAt(o.Origin)
		b, err := summary.NewBuilder(meta, []metric.Target{target.Public()}, summary.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: meta.OriginNS})
		c, err := scrape.New([]scrape.Target{target}, o, builderSink{b})
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var mu sync.Mutex
		var goroutines [2]int
		var heap [2]uint64
		measure := func(i int) func() {
			return func() {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				mu.Lock()
				defer mu.Unlock()
				goroutines[i], heap[i] = runtime.NumGoroutine(), m.HeapAlloc
			}
		}
		defer time.AfterFunc(10*time.Minute, measure(0)).Stop()
		defer time.AfterFunc(59*time.Minute, measure(1)).Stop()
		defer time.AfterFunc(time.Hour, func() { close(stop) }).Stop()
		if err := c.Run(t.Context(), stop); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if goroutines[0] != goroutines[1] {
			t.Errorf("%d goroutines after ten minutes, %d after an hour", goroutines[0], goroutines[1])
		}
		// A poll costs 32 bytes, and a change of a gauge some more: of 3000 polls less
		// than a mebibyte.
		if heap[1] > heap[0]+1<<20 {
			t.Errorf("the heap grew from %d to %d bytes", heap[0], heap[1])
		}
	})
}
