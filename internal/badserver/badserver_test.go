package badserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/scrapestat/scrapestat/internal/badserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get asks a server once, on a connection of its own.
func get(t *testing.T, srv *badserver.Server) (status int, body string, err error) {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Get("http://" + srv.Addr + "/metrics")
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestScript(t *testing.T) {
	script, err := badserver.Parse(`
# a comment
200 body="a 1\n" body="b 2\n" n=2
500 body="no"
200 body="a 1\nb 2\nc 3" cut=5
200 chunked body="# HELP\n" fill=30:"x 1\n"
reset
raw body="nonsense\r\n\r\n"
200 gzip body="a 1\n"`)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := badserver.Start(badserver.Options{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	check := func(status int, body, errText string) {
		t.Helper()
		gotStatus, got, err := get(t, srv)
		if gotStatus != status || got != body || (err == nil) != (errText == "") || err != nil &&
			!strings.Contains(err.Error(), errText) {
			t.Errorf("got %d %q %v, want %d %q %q", gotStatus, got, err, status, body, errText)
		}
	}
	check(200, "a 1\nb 2\n", "")
	check(200, "a 1\nb 2\n", "")
	check(500, "no", "")
	check(200, "a 1\nb", "unexpected EOF")
	check(200, "# HELP\n"+strings.Repeat("x 1\n", 30), "")
	check(0, "", "reset")
	check(0, "", "malformed")
	check(200, string(badserver.Gzip([]byte("a 1\n"))), "")
	check(200, string(badserver.Gzip([]byte("a 1\n"))), "")
	srv.Down()
	check(0, "", "refused")
	if err := srv.Up(); err != nil {
		t.Fatal(err)
	}
	check(200, string(badserver.Gzip([]byte("a 1\n"))), "")
	srv.Close()
	want := "200: 6\n500: 1\n200 broken off: 1\nreset: 1\nraw: 1\nrequests: 10, whole answers: 6, with 37 lines\n"
	if got := srv.Ledger().String(); got != want {
		t.Errorf("ledger:\n%swant:\n%s", got, want)
	}
}

func TestScriptRefuses(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		if _, err := badserver.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", text, err, want)
		}
	}
	check("", "no answer")
	check("200\nsometimes", "line 2")
	check("200 colour=red", "unknown word")
	check(`200 body="open`, "not closed")
	check(`200 fill=x:"a"`, "not N")
	check(`200 fill=999999999:"aa"`, "more than")
	check("200 cut=x", "cut")
	if _, err := badserver.Case("T99"); err == nil {
		t.Error("there is a case T99")
	}
}
