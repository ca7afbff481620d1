package collect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// A server is scraped while a load of our own runs, and what its counter gained is
// what the load sent.
func Example() {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			fmt.Fprintf(w, "# TYPE requests_total counter\nrequests_total %d\n", served.Load())
			return
		}
		served.Add(1)
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	target, err := scrape.ParseTarget("server=" + server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	s, err := collect.Open(ctx, filepath.Join(dir, "run1"), collect.Options{
		Targets: []scrape.Target{target},
		Scrape:  scrape.Options{Interval: 20 * time.Millisecond},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	go func() {
		<-s.Ready() // every target was scraped once
		for range 20 {
			if resp, err := http.Get(server.URL); err == nil {
				resp.Body.Close()
			}
		}
		s.Stop()
	}()
	run, err := s.Run(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := run.Analyse(ctx, summary.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range result.Metrics {
		fmt.Println(m.Name, m.Series[0].Counter.Total)
	}
	// Output: requests 20
}
