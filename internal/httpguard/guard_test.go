package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/httpguard"
)

// TestHandler: names that somebody else could point at us, and forms of pages of other sites, are refused.
func TestHandler(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	h := httpguard.Handler(page, httpguard.Options{Hosts: []string{"own", ""}, Printed: "serve", BodyBytes: 20})
	for _, x := range []struct {
		method, host, origin, body string
		want                       int
	}{
		{"GET", "127.0.0.1:9464", "", "", 200}, {"GET", "[::1]:9464", "", "", 200}, {"GET", "localhost", "", "", 200},
		{"GET", "OWN:1", "", "", 200}, {"GET", "evil.example", "", "", 421}, {"GET", "", "", "", 421},
		{"POST", "localhost", "http://evil.example", "a=1", 403}, {"POST", "localhost", "http://localhost", "a=1", 200},
		{"POST", "localhost", "", "a=" + strings.Repeat("1", 20), 400},
	} {
		r := httptest.NewRequest(x.method, "/", strings.NewReader(x.body))
		r.Host = x.host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if x.origin != "" {
			r.Header.Set("Origin", x.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != x.want || x.want == 200 && w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%+v: %d %v", x, w.Code, w.Header())
		}
	}
}
