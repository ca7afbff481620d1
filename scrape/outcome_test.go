package scrape_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// pollOnce makes a baseline and a final poll of a target on real sockets.
func pollOnce(t *testing.T, target scrape.Target, o scrape.Options) *recording {
	t.Helper()
	sink := newRecording(t, 1)
	o.Interval = time.Hour
	c, err := scrape.New([]scrape.Target{target}, o, sink)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go func() {
		<-c.Ready()
		close(stop)
	}()
	if err := c.Run(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	if got := sink.all(); len(got) != 2 || got[0].Kind != metric.Baseline || got[1].Kind != metric.Final {
		t.Fatalf("got %d snapshots, want a baseline and a final one", len(got))
	}
	return sink
}

// serve polls a handler and checks how the baseline ended.
func serve(t *testing.T, o scrape.Options, handler http.HandlerFunc, outcome metric.Outcome,
	errText string) *recording {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	sink := pollOnce(t, scrape.Target{URL: server.URL + "/metrics"}, o)
	checkOutcome(t, sink, outcome, errText)
	return sink
}

func checkOutcome(t *testing.T, sink *recording, outcome metric.Outcome, errText string) {
	t.Helper()
	s := sink.all()[0]
	if s.Outcome != outcome || !strings.Contains(s.Err, errText) || errText == "" && s.Err != "" {
		t.Errorf("got %v %q, want %v %q", s.Outcome, s.Err, outcome, errText)
	}
	if s.SentNS < s.DueNS || s.BodyBytes > 0 && (s.FirstByteNS < s.SentNS || s.Duration <= 0) {
		t.Errorf("times do not fit: due %d, sent %d, first byte %d, took %v", s.DueNS, s.SentNS, s.FirstByteNS, s.Duration)
	}
}

// say answers with a content type, a status and a body.
func say(contentType string, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestAnswers(t *testing.T) {
	var o scrape.Options
	serve(t, o, say(classic, 200, "a 1\n"), metric.OK, "")
	serve(t, o, say(classic, 404, "<b>gone</b>\x1b[2J"), metric.HTTPError, `status 404; check the path`)
	serve(t, o, say(classic, 401, ""), metric.HTTPError, "--bearer-token-file")
	serve(t, o, say(classic, 206, "a 1\n"), metric.HTTPError, "status 206")
	serve(t, o, say(classic, 500, "a 1\n"), metric.HTTPError, `the body begins "a 1"`)
	serve(t, o, say("text/html", 200, "<!DOCTYPE html><html>login"), metric.NotPrometheus, "looks like HTML")
	serve(t, o, say("application/json", 200, "[{\"iter\": 1}]"), metric.NotPrometheus, "TensorRT-LLM")
	serve(t, o, say("application/json", 200, ""), metric.NotPrometheus, "JSON")
	serve(t, o, say(classic, 200, " {\n \"models\" : []}"), metric.NotPrometheus, "JSON")
	serve(t, o, say(classic, 200, "{}\n"), metric.NotPrometheus, "JSON")
	serve(t, o, say(classic, 200, "{\"b.c\"} 1\n"), metric.OK, "")
	serve(t, o, say("application/vnd.google.protobuf", 200, "\x00\x01a 1\n"), metric.NotPrometheus, "protobuf")
	serve(t, o, say("application/vnd.google.protobuf", 200, "a 1\n"), metric.OK, "")
	serve(t, o, say(classic, 200, "hello world\n"), metric.NotPrometheus, "line 1: hello world")
	serve(t, o, say(classic, 200, "a 1\nfoo bar\nb 2\n"), metric.Partial, "line 2: foo bar")
	serve(t, o, say(classic, 200, "a 1\nb 2"), metric.Partial, "does not end in a line feed")
	serve(t, o, say(classic, 200, "a 1"), metric.Truncated, "nothing of it is usable")
	serve(t, o, say(classic, 200, "a NaN\nb -nan(ind)\nc +Inf\n"), metric.OK, "")
	for _, contentType := range []string{"text/html", "application/json", "", "nonsense;;;"} {
		sink := serve(t, o, say(contentType, 200, "a 1\n"), metric.OK, "")
		if w := sink.all()[0].Warnings; len(w) != 1 || w[0].Code != "content_type" {
			t.Errorf("content type %q: warnings %v", contentType, w)
		}
		if w := sink.all()[1].Warnings; len(w) != 0 {
			t.Errorf("content type %q: warned again: %v", contentType, w)
		}
	}
	sink := serve(t, o, say(classic, 200, ""), metric.OK, "")
	if w := sink.all()[0].Warnings; len(w) != 1 || w[0].Code != "empty_body" {
		t.Errorf("empty body: warnings %v", w)
	}
	if !sink.all()[1].Duplicate {
		t.Error("the second empty body is no duplicate")
	}
}

func TestRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		for _, c := range [][2]string{{r.UserAgent(), "scrapestat/v1"}, {user + ":" + password, "me:secret"},
			{r.Header.Get("X-Key"), "abcd"}, {r.Header.Get("Accept-Encoding"), "identity"},
			{r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"), "1.5"},
			{r.URL.RawQuery, "name[]=a"}} {
			if c[0] != c[1] {
				t.Errorf("request has %q, want %q", c[0], c[1])
			}
		}
		if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, "text/plain;version=0.0.4") {
			t.Errorf("request accepts %q", accept)
		}
		http.Error(w, "no entry with secret or abcd", http.StatusForbidden)
	}))
	defer server.Close()
	target := scrape.Target{URL: strings.Replace(server.URL, "http://", "http://me:secret@", 1) + "/metrics?name[]=a",
		Header: http.Header{"X-Key": {"abcd"}}, Timeout: 1500 * time.Millisecond}
	sink := pollOnce(t, target, scrape.Options{Version: "v1"})
	if text := sink.all()[0].Err; strings.Contains(text, "secret") || strings.Contains(text, "abcd") ||
		!strings.Contains(text, "xxxxx") {
		t.Errorf("error shows a secret: %s", text)
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	sink := pollOnce(t, scrape.Target{URL: "http://" + listener.Addr().String() + "/metrics?token=hush"}, scrape.Options{})
	checkOutcome(t, sink, metric.ConnectError, "connection refused")
	sink = pollOnce(t, scrape.Target{URL: "unix:///nonexistent.sock"}, scrape.Options{})
	checkOutcome(t, sink, metric.ConnectError, "no such file")
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(say(classic, 200, "a 1\n"))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	sink := pollOnce(t, scrape.Target{URL: server.URL + "/metrics"}, scrape.Options{})
	checkOutcome(t, sink, metric.ConnectError, "certificate signed by unknown authority")
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := scrape.NewTransport(&tls.Config{RootCAs: roots}, scrape.Limits{})
	defer transport.CloseIdleConnections()
	sink = pollOnce(t, scrape.Target{URL: server.URL + "/metrics", RoundTripper: transport}, scrape.Options{})
	checkOutcome(t, sink, metric.OK, "")
	sink = pollOnce(t, scrape.Target{URL: strings.Replace(server.URL, "https", "http", 1)}, scrape.Options{})
	checkOutcome(t, sink, metric.HTTPError, "status 400")
}

func TestFallbackPath(t *testing.T) {
	check := func(first http.HandlerFunc) {
		t.Helper()
		mux := http.NewServeMux()
		tries := 0
		mux.HandleFunc("/v1/metrics", func(w http.ResponseWriter, r *http.Request) { tries++; first(w, r) })
		mux.HandleFunc("/v1/prometheus/metrics", say(classic, 200, "a 1\n"))
		server := httptest.NewServer(mux)
		defer server.Close()
		sink := pollOnce(t, scrape.Target{URL: server.URL + "/v1/metrics"}, scrape.Options{})
		checkOutcome(t, sink, metric.OK, "")
		if w := sink.all()[0].Warnings; len(w) != 1 || w[0].Code != "fallback_path" || tries != 1 {
			t.Errorf("warnings %v after %d requests to the first path", w, tries)
		}
	}
	check(say("application/json", 200, "[]"))
	check(say(classic, 404, ""))
	requests := 0
	serve(t, scrape.Options{}, func(w http.ResponseWriter, r *http.Request) {
		requests++
		say("application/json", 200, "[]")(w, r)
	}, metric.NotPrometheus, "JSON")
	if requests != 3 {
		t.Errorf("%d requests for two polls, want one more for the fallback", requests)
	}
}

func TestRedirects(t *testing.T) {
	other := httptest.NewServer(say(classic, 200, "a 1\n"))
	defer other.Close()
	to := func(url string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusTemporaryRedirect) }
	}
	serve(t, scrape.Options{}, to(other.URL), metric.RefusedRedirect, "another origin")
	serve(t, scrape.Options{}, to("file:///etc/passwd"), metric.RefusedRedirect, "another origin")
	serve(t, scrape.Options{}, to("/metrics"), metric.RefusedRedirect, "more than 3")
	requests := 0
	serve(t, scrape.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if requests++; r.URL.Path == "/metrics" {
			to("/metrics/")(w, r)
			return
		}
		say(classic, 200, "a 1\n")(w, r)
	}, metric.OK, "")
	if requests != 3 {
		t.Errorf("%d requests for two polls, want the redirect only once", requests)
	}
}

// raw answers with bytes of its own and closes the connection.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, answer)
	}
}

func TestBrokenTransport(t *testing.T) {
	var o scrape.Options
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	serve(t, o, raw(head+"Content-Length: 100\r\n\r\na 1\nb 2\nc 33"), metric.Partial, "broke off")
	serve(t, o, raw(head+"Content-Length: 100\r\n\r\na 1\nb 2\n"), metric.Partial, "broke off")
	serve(t, o, raw(head+"Transfer-Encoding: chunked\r\n\r\n9\r\na 1\nb 2\nc"), metric.Partial, "broke off")
	serve(t, o, raw(head+"Connection: close\r\nContent-Length: 6\r\n\r\na 1\nb 2\n"), metric.Partial, "line feed")
	serve(t, o, raw(head+"Content-Length: 100\r\n\r\na"), metric.Truncated, "cut short")
	serve(t, o, raw(head+"Content-Length: 100\r\n\r\n"), metric.ConnectError, "before the body")
	serve(t, o, raw(""), metric.ConnectError, "EOF")
	serve(t, o, raw("nonsense\r\n\r\n"), metric.ConnectError, "malformed HTTP")
	serve(t, o, raw(head+"Content-Length: 1\r\nContent-Length: 2\r\n\r\na 1\n"), metric.ConnectError, "Content-Length")
	serve(t, o, raw(head+strings.Repeat("X-Pad: "+strings.Repeat("y", 1000)+"\r\n", 100)+"\r\n"), metric.TooLarge,
		"65536 bytes; raise --max-headers")
	serve(t, o, raw(head+"Content-Encoding: br\r\nContent-Length: 4\r\n\r\na 1\n"), metric.NotPrometheus, "br")
}

func TestDeadlineIsForTheWholeScrape(t *testing.T) {
	o := scrape.Options{Timeout: 200 * time.Millisecond}
	serve(t, o, func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				io.WriteString(w, "a 1\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}, metric.Timeout, "--timeout")
	serve(t, o, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, metric.Timeout, "--timeout")
}

func TestBodyLimits(t *testing.T) {
	body := strings.Repeat("a 1\n", 100)
	o := scrape.Options{Limits: scrape.Limits{Body: 400}}
	serve(t, o, say(classic, 200, body), metric.Partial, "occurs again")
	serve(t, o, say(classic, 200, body+"\n"), metric.TooLarge, "--max-body")
	chunked := func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		io.WriteString(w, body+"b 1\n")
	}
	serve(t, o, chunked, metric.TooLarge, "--max-body")
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	io.Copy(z, io.LimitReader(zeros{}, 32<<20))
	z.Close()
	zip := func(content []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				t.Error("gzip was not asked for")
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(content)
		}
	}
	o = scrape.Options{Compress: true, Limits: scrape.Limits{Body: 1 << 20}}
	serve(t, o, zip(bomb.Bytes()), metric.TooLarge, "--max-body")
	o.Limits.Compressed = 1000
	serve(t, o, zip(bomb.Bytes()), metric.TooLarge, "--max-compressed-body")
	bomb.Reset()
	z.Reset(&bomb)
	io.WriteString(z, body+"b 2\n")
	z.Close()
	good := bomb.Bytes()
	serve(t, o, zip(good), metric.Partial, "occurs again")
	serve(t, o, zip(good[:len(good)-9]), metric.Truncated, "damaged")
	serve(t, o, zip([]byte("a 1\n")), metric.Truncated, "gzip")
	serve(t, scrape.Options{}, say(classic, 200, string(good)), metric.NotPrometheus, "gzip")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	for network, address := range map[string]string{"unix": path, "tcp6": "[::1]:0"} {
		listener, err := net.Listen(network, address)
		if err != nil {
			t.Logf("skip %s: %v", network, err)
			continue
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/metrics" {
				http.NotFound(w, r)
				return
			}
			say(classic, 200, "a 1\n")(w, r)
		})}
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		arg := "unix://" + path
		if network != "unix" {
			arg = listener.Addr().String()
		}
		target, err := scrape.ParseTarget(arg)
		if err != nil {
			t.Fatal(err)
		}
		checkOutcome(t, pollOnce(t, target, scrape.Options{}), metric.OK, "")
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-done
	}
}

func TestClosedKeepAliveIsNoFailure(t *testing.T) {
	server := httptest.NewServer(say(classic, 200, "a 1\n"))
	defer server.Close()
	server.Config.SetKeepAlivesEnabled(false)
	sink := pollOnce(t, scrape.Target{URL: server.URL}, scrape.Options{})
	for _, s := range sink.all() {
		if s.Outcome != metric.OK {
			t.Errorf("%v: %s", s.Outcome, s.Err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	check := func(url string, o scrape.Options, want string) {
		t.Helper()
		_, err := scrape.New([]scrape.Target{{URL: url}}, o, newRecording(t, 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %+v: got error %v, want %q", url, o, err, want)
		}
	}
	good := "http://h/metrics"
	check("gopher://h/?token=hush", scrape.Options{}, `scheme "gopher"`)
	check("nothing", scrape.Options{}, "not usable")
	check(good, scrape.Options{Interval: time.Microsecond}, "--interval")
	check(good, scrape.Options{Timeout: time.Hour}, "--timeout")
	check(good, scrape.Options{MaxScrapeShare: 101}, "--scrape-budget")
	check(good, scrape.Options{Limits: scrape.Limits{Body: 2 << 30}}, "--max-body")
	check(good, scrape.Options{Limits: scrape.Limits{Series: -1}}, "--max-series")
	if _, err := scrape.New(nil, scrape.Options{}, newRecording(t, 1)); err == nil {
		t.Error("no targets give no error")
	}
	if text := fmt.Sprint(scrape.Target{URL: "http://u:p@h/metrics?token=x"}); text != "http://h/metrics?token=xxxxx" {
		t.Errorf("target prints as %s", text)
	}
}
