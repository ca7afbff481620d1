package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/events/proxy"
)

// TestSlowConnections opens connections that send a part of a request's head, or
// nothing. A request among them is answered, none of them reaches the server, and
// the end of the proxy does not wait for them.
func TestSlowConnections(t *testing.T) {
	reached := 0
	base, _, stop := running(t, proxy.Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached++
		_, _ = io.WriteString(w, "{}")
	}))
	var slow []net.Conn
	for i := range 300 {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nX-A: b"[:i%40]); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(post(t, base, "1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
	resp.Body.Close()
	stop()
	if reached != 1 {
		t.Errorf("%d requests reached the server, want the whole one", reached)
	}
	for _, c := range slow { // all were cut by the end, after 400 to those with a part
		if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Fatal(err)
		}
	}
}
