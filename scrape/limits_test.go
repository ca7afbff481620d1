package scrape_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/scrape"
)

// TestLimitBounds: limits that are none are refused by the name of their flag.
func TestLimitBounds(t *testing.T) {
	check := func(flag string, l scrape.Limits) {
		t.Helper()
		if _, err := scrape.NewDecoder(scrape.Options{Limits: l}); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("got %v, want %s", err, flag)
		}
	}
	check("--max-body", scrape.Limits{Body: 1<<30 + 1})
	check("--max-series", scrape.Limits{Series: -1})
	check("--max-native-buckets", scrape.Limits{NativeBuckets: -1})
	check("--max-headers", scrape.Limits{Header: 1 << 30})
	check("--max-error-body", scrape.Limits{ErrorBody: 1 << 20})
	check("--max-redirects", scrape.Limits{Redirects: 21})
	check("--connect-timeout", scrape.Limits{Connect: time.Hour})
	check("--connect-timeout", scrape.Limits{Connect: -1})
}

// twoAddresses answers as a host does whose name has several addresses.
type twoAddresses struct{ next http.RoundTripper }

func (a twoAddresses) RoundTrip(r *http.Request) (*http.Response, error) {
	t := httptrace.ContextClientTrace(r.Context())
	t.DNSDone(httptrace.DNSDoneInfo{Addrs: []net.IPAddr{{IP: net.IPv6loopback}, {IP: net.IPv4(127, 0, 0, 1)}}})
	return a.next.RoundTrip(r)
}

// TestAddress: of a name with several addresses the one that is polled is told,
// once; of others nothing is.
func TestAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte("a 1\n"))
	}))
	defer server.Close()
	transport := scrape.NewTransport(nil, scrape.Limits{})
	defer transport.CloseIdleConnections()
	var mu sync.Mutex
	told := map[int][]string{}
	targets := []scrape.Target{{URL: server.URL + "/metrics", RoundTripper: twoAddresses{transport}},
		{URL: server.URL + "/metrics"}}
	c, err := scrape.New(targets, scrape.Options{Interval: time.Hour, OnAddress: func(i int, text string) {
		mu.Lock()
		defer mu.Unlock()
		told[i] = append(told[i], text)
	}}, discard{})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		<-c.Ready()
		c.Boundary(t.Context())
	}()
	if err := c.Run(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	want := "127.0.0.1 has 2 addresses; " + strings.TrimPrefix(server.URL, "http://") + " is polled"
	if len(told) != 1 || len(told[0]) != 1 || told[0][0] != want {
		t.Errorf("told %v, want %q", told, want)
	}
}
