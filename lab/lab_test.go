//go:build unix

package main

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
			if len(s.rows) == 0 || s.load == nil {
				t.Errorf("%s judges nothing", s.name)
			}
		}
		for family, why := range r.accepted {
			if why == "" {
				t.Errorf("%s: %s is accepted without a reason", r.name, family)
			}
		}
	}
	if len(seen) < 3 {
		t.Errorf("%d scenarios", len(seen))
	}
}
