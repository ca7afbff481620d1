package discover_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
)

// load reads a configuration and returns what it finds.
func load(t *testing.T, dir, text string) discover.Result {
	t.Helper()
	d, err := discover.Load(write(t, dir, "prometheus.yml", []byte(text)), discover.Options{Refresh: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d.Refresh(t.Context())
}

// TestOAuth2 has a token server give tokens that end, and one that refuses.
func TestOAuth2(t *testing.T) {
	var given atomic.Int64
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id == "" {
			id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
		}
		if id != "bench" || secret != "oauth-hidden" || r.FormValue("scope") != "metrics" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"%s is wrong"}`, secret)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"access-hidden-%d","token_type":"Bearer","expires_in":1}`, given.Add(1))
	}))
	defer tokens.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := fmt.Sprintf("Bearer access-hidden-%d", given.Load()); r.Header.Get("Authorization") != want ||
			given.Load() == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "refused ", r.Header.Get("Authorization"))
			return
		}
		metrics(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	check := func(what, settings string, ok bool) {
		t.Helper()
		r := load(t, dir, fmt.Sprintf(`
scrape_configs:
- job_name: j
  static_configs: [{targets: [%q]}]
  oauth2: {client_id: bench, scopes: [metrics], token_url: %q, %s}
`, strings.TrimPrefix(server.URL, "http://"), tokens.URL+"/token", settings))
		if len(r.Targets) != 1 {
			t.Fatalf("%s: %v, %v", what, r.Targets, r.Warnings)
		}
		for range 2 { // the first token has ended by then
			s := pollOnce(t, r.Targets[0].Target)
			if (s.Outcome == metric.OK) != ok {
				t.Errorf("%s: %s %s", what, s.Outcome, s.Err)
			}
			if strings.Contains(s.Err+string(s.Body)+fmt.Sprint(r.Warnings), "hidden") {
				t.Errorf("%s: a secret shows in %q", what, s.Err)
			}
		}
	}
	check("secret in the file", "client_secret: oauth-hidden", true)
	file := write(t, dir, "secret", []byte("oauth-hidden\n"))
	check("secret in a file of its own", "client_secret_file: "+file, true)
	if given.Load() < 3 {
		t.Errorf("%d tokens were given: they were kept beyond their end", given.Load())
	}
	check("wrong secret", "client_secret: also-hidden", false)
}

// TestProxy goes to a proxy when the configuration says so, and never because
// the environment does.
func TestProxy(t *testing.T) {
	var proxied atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied.Add(1)
		metrics(w, r)
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	server := httptest.NewServer(http.HandlerFunc(metrics))
	defer server.Close()
	dir := t.TempDir()
	check := func(what, target, settings string, want int64) {
		t.Helper()
		proxied.Store(0)
		r := load(t, dir, fmt.Sprintf("scrape_configs:\n- job_name: j\n  static_configs: [{targets: [%q]}]\n%s", target,
			settings))
		if s := pollOnce(t, r.Targets[0].Target); s.Outcome != metric.OK || (proxied.Load() > 0) != (want > 0) {
			t.Errorf("%s: %s %s, %d requests through the proxy", what, s.Outcome, s.Err, proxied.Load())
		}
	}
	check("environment", strings.TrimPrefix(server.URL, "http://"), "", 0)
	check("proxy_url", "vllm.example:8000", "  proxy_url: "+proxy.URL+"\n", 1)
}

// TestClusterAccess reaches the API server as a pod does and by the ways of a
// kubeconfig.
func TestClusterAccess(t *testing.T) {
	api := &fakeAPI{token: "pod-hidden", lists: map[string][]any{"pods": {podObject("a", "10.0.0.1", "x", m{})}}}
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := ca.issue(t, time.Hour, "127.0.0.1")
	client, clientKey := ca.issue(t, time.Hour, "me")
	server := serve(t, cert, key, nil, "", api.ServeHTTP)
	mutual := serve(t, cert, key, ca, "", func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer pod-hidden") // the certificate is enough
		api.ServeHTTP(w, r)
	})
	const job = "scrape_configs: [{job_name: pods, kubernetes_sd_configs: [{role: pod%s}]}]\n"
	check := func(what, settings, want string) {
		t.Helper()
		r := load(t, dir, fmt.Sprintf(job, settings))
		got := fmt.Sprint(r.Warnings)
		if ok := len(r.Targets) == 2; ok != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "hidden") {
			t.Errorf("%s: %d targets, warnings %s, want %q", what, len(r.Targets), got, want)
		}
	}
	write(t, dir, "ca.crt", ca.pem())
	token := write(t, dir, "token", []byte("pod-hidden"))
	write(t, dir, "c.pem", client)
	write(t, dir, "c.key", clientKey)

	kubeconfig := func(server, cluster, user string) string {
		path := write(t, dir, "kubeconfig", fmt.Appendf(nil, `
current-context: here
contexts: [{name: here, context: {cluster: c, user: u, namespace: bench}}]
clusters: [{name: c, cluster: {server: %q, %s}}]
users: [{name: u, user: {%s}}]
`, server, cluster, user))
		return ", kubeconfig_file: " + path
	}
	data := base64.StdEncoding.EncodeToString
	check("token", kubeconfig(server.URL, "certificate-authority: ca.crt", "token: pod-hidden"), "")
	check("token file and data", kubeconfig(server.URL, "certificate-authority-data: "+data(ca.pem()),
		"tokenFile: token"), "")
	check("client certificate", kubeconfig(mutual.URL, "certificate-authority: ca.crt",
		"client-certificate: c.pem, client-key: c.key"), "")
	check("client certificate as data", kubeconfig(mutual.URL, "certificate-authority: ca.crt",
		"client-certificate-data: "+data(client)+", client-key-data: "+data(clientKey)), "")
	check("wrong token", kubeconfig(server.URL, "certificate-authority: ca.crt", "token: wrong-hidden"),
		"the right to list pods")
	check("another authority", kubeconfig(server.URL, "certificate-authority: c.pem", "token: pod-hidden"), "authority")

	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", u.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", u.Port())
	d, err := discover.Load(write(t, dir, "prometheus.yml", fmt.Appendf(nil, job, "")),
		discover.Options{Refresh: time.Nanosecond, ServiceAccount: filepath.Dir(token)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if r := d.Refresh(t.Context()); len(r.Targets) != 2 {
		t.Errorf("in a cluster: %v, %v", r.Targets, r.Warnings)
	}
}
