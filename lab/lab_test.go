//go:build unix

package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		v    verdict
		want bool
	}{
		{verdict{row: row{Value: 100}, ours: 100}, true},
		{verdict{row: row{Value: 0}, ours: 0}, true},
		{verdict{row: row{Value: 0, Within: 0.5}, ours: 1}, false},
		{verdict{row: row{Value: 100, Within: 0.01}, ours: 99}, true},
		{verdict{row: row{Value: 100, Within: 0.01}, ours: 98.9}, false},
		{verdict{row: row{Value: 100, Within: 1}, ours: 100, status: "NO DATA"}, false},
		{verdict{row: row{Value: math.NaN(), Within: 1}, ours: 100}, false},
	} {
		if got := c.v.right(); got != c.want {
			t.Errorf("%+v: %v", c.v, got)
		}
		if word := c.v.cells()[5]; strings.HasPrefix(word, "right") != c.want {
			t.Errorf("%+v: %q", c.v, word)
		}
	}
}

// A recording that is kept has no sentence of others.
func TestRelay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "# HELP a Somebody's words.\n# TYPE a counter\na_total 1\n")
	}))
	s, url, err := relay(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || string(text) != "# TYPE a counter\na_total 1\n" {
		t.Errorf("%q, %v", text, err)
	}
	server.Close()
	if res, err := http.Get(url); err == nil {
		res.Body.Close()
		t.Errorf("a server that has gone answers %s", res.Status)
	}
}

// Every row asks for something that its client counts, and names are told apart.
func TestRecipes(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range recipes() {
		for _, s := range r.scenarios {
			if name := r.name + "-" + s.name; seen[name] {
				t.Errorf("%s is there twice", name)
			} else {
				seen[name] = true
			}
			if s.load == nil {
				t.Errorf("%s judges nothing", s.name)
			}
		}
		for _, left := range []map[string]string{r.accepted, r.besides} {
			for name, why := range left {
				if why == "" {
					t.Errorf("%s: %s is left out without a reason", r.name, name)
				}
			}
		}
	}
	if len(seen) < 3 {
		t.Errorf("%d scenarios", len(seen))
	}
}

// TestListening is the server of TestServe, when the environment says so.
func TestListening(t *testing.T) {
	if at := os.Getenv("LAB_LISTENS"); at != "" {
		t.Error(http.ListenAndServe(at, http.NotFoundHandler()))
	}
}

// A server that is killed comes back, and afterwards neither it nor what it started listens.
func TestServe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort()
	address := fmt.Sprintf("127.0.0.1:%d", port)
	answer := func() {
		t.Helper()
		for range 600 {
			if c, err := net.Dial("tcp", address); err == nil {
				c.Close()
				return
			}
			<-time.After(50 * time.Millisecond)
		}
		t.Error("nobody listens")
	}
	ready := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer ready.Close()
	dir := t.TempDir()
	p := &process{name: "server", port: port, again: true, ready: ready.URL, env: []string{"LAB_LISTENS=" + address},
		args: []string{"sh", "-c", `"$0" -test.run '^TestListening$' & wait`, self}}
	err = serve(t.Context(), dir, []*process{p}, func() error {
		answer()
		c := &client{dir: dir, truth: map[string]float64{}}
		if err := c.kill(t.Context(), "server"); err != nil {
			return err
		}
		answer()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// A server that does not start is told at once, with what it said.
func TestServeFails(t *testing.T) {
	port := freePort()
	p := &process{name: "server", port: port, again: true, ready: loopback(port, "/"),
		args: []string{"sh", "-c", "echo no such model >&2; exit 3"}}
	err := serve(t.Context(), t.TempDir(), []*process{p}, func() error { return nil })
	if err == nil || !strings.Contains(err.Error(), "no such model") {
		t.Errorf("%v", err)
	}
}
