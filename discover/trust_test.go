package discover_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/discover"
)

// TestHardeningTrust has a finding by the number that package faults lists: a list of
// targets decides neither who gets a secret nor how often we ask.
func TestHardeningTrust(t *testing.T) {
	t.Run("K15", func(t *testing.T) {
		var mu sync.Mutex
		got := map[string]string{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			host, _, _ := strings.Cut(r.Host, ":")
			got[host] = r.Header.Get("Authorization") + r.Header.Get("X-Key")
			mu.Unlock()
			metrics(w, r)
		}))
		defer server.Close()
		_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
		scheme := "http"
		list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `[{"targets":["127.0.0.1:%s"]},{"targets":["localhost:%[1]s"],`+
				`"labels":{"__scrape_interval__":"1ms","__scheme__":%q}}]`, port, scheme)
		}))
		defer list.Close()
		dir := t.TempDir()
		check := func(settings string, trust bool, want, warning string) {
			t.Helper()
			d, err := discover.Load(write(t, dir, "p.yml", fmt.Appendf(nil, "scrape_configs:\n- job_name: j\n"+
				"  http_sd_configs: [{url: %q}]\n%s", list.URL, settings)),
				discover.Options{TrustDiscovery: trust, DefaultInterval: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			r := d.Refresh(t.Context())
			clear(got)
			for _, f := range r.Targets {
				pollOnce(t, f.Target)
			}
			if s := fmt.Sprintf("%q %q", got["127.0.0.1"], got["localhost"]); s != want {
				t.Errorf("%s, trust %v: sent %s, want %s", settings, trust, s, want)
			}
			text := fmt.Sprint(r.Warnings)
			if told := strings.Contains(text, "credentials_withheld"); told != (warning != "") ||
				!strings.Contains(text, warning) || strings.Contains(text, "hidden") {
				t.Errorf("%s, trust %v: warnings %s", settings, trust, text)
			}
			i := slices.IndexFunc(r.Targets, func(f discover.Found) bool { return strings.Contains(f.Target.URL, "localhost") })
			if v := r.Targets[i].Target.Interval; v != 100*time.Millisecond || !strings.Contains(text, "interval_raised") {
				t.Errorf("interval %s, warnings %s", v, text)
			}
		}
		const token = "  authorization: {credentials: hidden}\n"
		check(token, false, `"" ""`, "lists 127.0.0.1:"+port)
		check(token, true, `"Bearer hidden" "Bearer hidden"`, "")
		check("", false, `"" ""`, "")
		check("  http_headers: {X-Key: {secrets: [hidden]}}\n  static_configs: [{targets: ['127.0.0.1:1']}]\n", false,
			`"hidden" ""`, "lists localhost:"+port)
		check(token+"  follow_hosts: [127.0.0.0/8]\n", false, `"Bearer hidden" ""`, "lists localhost:")
		check(token+"  follow_hosts: [127.0.0.1, LOCALHOST.]\n", false, `"Bearer hidden" "Bearer hidden"`, "")
		check(token+"  follow_hosts: ['*.localhost', '*']\n", false, `"" ""`, "lists 127.0.0.1:")
		// The job speaks TLS, and the list would have its token sent in the clear.
		check(token+"  scheme: https\n  follow_hosts: [localhost]\n", false, `"" ""`, "lists 127.0.0.1:")
		// A file is the user's own: whom it lists gets what the job has.
		write(t, dir, "own.yml", fmt.Appendf(nil, "- targets: ['127.0.0.1:%s']\n", port))
		clear(got)
		r := load(t, dir, "scrape_configs:\n- job_name: j\n  file_sd_configs: [{files: [own.yml]}]\n"+token)
		if pollOnce(t, r.Targets[0].Target); got["127.0.0.1"] != "Bearer hidden" {
			t.Errorf("the host of a file got %q, warnings %v", got["127.0.0.1"], r.Warnings)
		}
		for _, host := range []string{"host:80", "a/b", ""} {
			text := "scrape_configs: [{job_name: j, follow_hosts: ['" + host + "']}]"
			_, err := discover.Load(write(t, dir, "p.yml", []byte(text)), discover.Options{})
			if err == nil || !strings.Contains(err.Error(), "want a host without a port") {
				t.Errorf("follow_hosts %s: %v", host, err)
			}
		}
	})
}

// TestOwnIntervalIsKept: an interval that the user gave may be shorter.
func TestOwnIntervalIsKept(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "t.yml", []byte("- targets: ['a:1']\n- targets: ['b:1']\n  labels: {__scrape_interval__: 2ms}\n"+
		"- targets: ['c:1']\n  labels: {__scrape_interval__: 30s}\n"))
	r := load(t, dir, "scrape_configs:\n- job_name: f\n  scrape_interval: 20ms\n  file_sd_configs: [{files: [t.yml]}]\n"+
		"- job_name: s\n  scrape_interval: 5ms\n  static_configs: [{targets: ['d:1']}]\n")
	var got []string
	for _, f := range r.Targets {
		got = append(got, f.Target.URL[len("http://"):][:1]+f.Target.Interval.String())
	}
	slices.Sort(got)
	if s := fmt.Sprint(got); s != "[a20ms b20ms c30s d5ms]" {
		t.Errorf("intervals %s, %v", s, r.Warnings)
	}
}
