package doctor_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/scrapestat/scrapestat/internal/doctor"
	"github.com/scrapestat/scrapestat/scrape"
)

type connection struct{}

// balanced examines a server behind which the n-th connection from the first probe on is answered by body.
func balanced(t *testing.T, body func(n int) string) *doctor.Report {
	t.Helper()
	var mu sync.Mutex
	seen := 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, body(r.Context().Value(connection{}).(int)))
	}))
	srv.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		mu.Lock()
		defer mu.Unlock()
		seen++
		return context.WithValue(ctx, connection{}, seen)
	}
	srv.Start()
	defer srv.Close()
	target, err := scrape.ParseTarget(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return examineTarget(t, target)
}

// work is the counters of a process after so many requests.
func work(requests int) string {
	var b strings.Builder
	for i, name := range []string{"req_total", "tok_total", "bytes_total", "steps_total"} {
		fmt.Fprintf(&b, "# TYPE %s counter\n%[1]s %d\n", name, requests*[]int{1, 90, 4000, 7}[i])
	}
	return b.String()
}

// TestProcesses: doctor asks on eight new connections, and says who answers before a run does.
func TestProcesses(t *testing.T) {
	start := func(v int) string {
		return fmt.Sprintf("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", v)
	}
	for _, c := range []struct {
		name string
		body func(n int) string
		want string // level and code of the finding; "" for none
		says string
	}{
		{"one process", func(n int) string { return work(1000+n) + start(1_790_000_000) }, "", ""},
		{"two processes, named", func(n int) string {
			return work(10*n+500*(n%2)) + start(1_790_000_000+5000*(n%2))
		}, "warning several_processes", "by 2 processes"},
		{"two processes, not named", func(n int) string { return work(10*n + 50_000*(n%2)) },
			"warning several_processes", "which nothing tells apart"},
		{"older bodies", func(n int) string {
			return work(1e9+[]int{0, 50, 100, 50, 150, 100, 200, 250}[min(max(0, n-5), 7)]) + start(1_790_000_000)
		}, "note older_bodies", "a cache stands before the server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := balanced(t, c.body)
			var got []string
			for _, f := range r.Finding {
				switch f.Code {
				case "several_processes", "older_bodies", "values_fell":
					got = append(got, string(f.Level)+" "+f.Code)
					if !strings.Contains(f.Text, c.says) || f.Level == doctor.Warning && f.Remedy == "" {
						t.Errorf("says %q, do %q", f.Text, f.Remedy)
					}
				}
			}
			want := []string{c.want}
			if c.want == "" {
				want = nil
			}
			if !r.Collectable || !slices.Equal(got, want) {
				t.Errorf("collectable %v, findings %q of %+v, want %q", r.Collectable, got, r.Finding, want)
			}
		})
	}
}
