package discover_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// authority signs certificates of tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// issue returns a certificate and its key as PEM.
func (a *authority) issue(t *testing.T, until time.Duration, names ...string) (cert, key []byte) {
	t.Helper()
	k := newKey(t)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore:   time.Now().Add(-48 * time.Hour),
		NotAfter:    time.Now().Add(until),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// serve starts a TLS server with that certificate; clients is who it wants client
// certificates of, nil for none.
func serve(t *testing.T, cert, key []byte, clients *authority, listen string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	if listen != "" {
		ln, err := net.Listen("tcp", listen)
		if err != nil {
			t.Skip("this machine has no IPv6: ", err)
		}
		s.Listener.Close()
		s.Listener = ln
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		s.TLS.ClientCAs.AddCert(clients.cert)
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pollOnce polls a target once or twice and returns the first snapshot, whose
// body a recording keeps.
func pollOnce(t *testing.T, target scrape.Target) metric.Snapshot {
	t.Helper()
	var mu sync.Mutex
	var last metric.Snapshot
	first := true
	c, err := scrape.New([]scrape.Target{target}, scrape.Options{}, sinkFunc(func(s *metric.Snapshot) error {
		mu.Lock()
		defer mu.Unlock()
		if first {
			first, last = false, *s
			last.Body = bytes.Clone(s.Body)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	if err := c.Run(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	return last
}

type sinkFunc func(*metric.Snapshot) error

func (f sinkFunc) Record(s *metric.Snapshot) error { return f(s) }

func metrics(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "# TYPE a counter\na 1\n") }

// TestTLS polls real TLS servers with each set of flags that matters.
func TestTLS(t *testing.T) {
	dir, ca, other := t.TempDir(), newAuthority(t), newAuthority(t)
	caFile, otherFile := write(t, dir, "ca.pem", ca.pem()), write(t, dir, "other.pem", other.pem())
	good, goodKey := ca.issue(t, time.Hour, "127.0.0.1", "::1", "localhost")
	old, oldKey := ca.issue(t, -time.Hour, "127.0.0.1")
	named, namedKey := ca.issue(t, time.Hour, "vllm.internal")
	client, clientKey := ca.issue(t, time.Hour, "me")
	alien, alienKey := other.issue(t, time.Hour, "me")
	certFile, keyFile := write(t, dir, "c.pem", client), write(t, dir, "c.key", clientKey)
	alienCert, alienKeyFile := write(t, dir, "a.pem", alien), write(t, dir, "a.key", alienKey)

	plain := serve(t, good, goodKey, nil, "", metrics).URL
	expired := serve(t, old, oldKey, nil, "", metrics).URL
	wrong := serve(t, named, namedKey, nil, "", metrics).URL
	mutual := serve(t, good, goodKey, ca, "", metrics).URL
	http1 := httptest.NewServer(http.HandlerFunc(metrics))
	defer http1.Close()

	check := func(what, address string, a discover.Auth, want string) {
		t.Helper()
		targets, clients, _, err := a.Apply([]scrape.Target{{URL: address + "/metrics"}})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		s := pollOnce(t, targets[0])
		for _, c := range clients {
			c.CloseIdleConnections()
		}
		if want == "" && s.Outcome != metric.OK || want != "" &&
			(s.Outcome != metric.ConnectError || !strings.Contains(s.Err, want)) {
			t.Errorf("%s: %s %q, want %q", what, s.Outcome, s.Err, want)
		}
	}
	check("valid", plain, discover.Auth{CAFile: caFile}, "")
	check("system's authorities", plain, discover.Auth{}, "--tls-ca")
	check("another authority", plain, discover.Auth{CAFile: otherFile}, "--tls-ca")
	check("expired", expired, discover.Auth{CAFile: caFile}, "renew the server's certificate")
	check("wrong name", wrong, discover.Auth{CAFile: caFile}, "--tls-server-name")
	check("name given", wrong, discover.Auth{CAFile: caFile, ServerName: "vllm.internal"}, "")
	check("not verified", expired, discover.Auth{InsecureSkipVerify: true}, "")
	check("client certificate missing", mutual, discover.Auth{CAFile: caFile}, "--tls-cert")
	check("client certificate of a stranger", mutual,
		discover.Auth{CAFile: caFile, CertFile: alienCert, KeyFile: alienKeyFile}, "--tls-cert")
	check("client certificate", mutual, discover.Auth{CAFile: caFile, CertFile: certFile, KeyFile: keyFile}, "")
	check("plain HTTP", "https"+strings.TrimPrefix(http1.URL, "http"), discover.Auth{CAFile: caFile}, "use http://")
	t.Run("IPv6", func(t *testing.T) {
		check("IPv6", serve(t, good, goodKey, nil, "[::1]:0", metrics).URL, discover.Auth{CAFile: caFile}, "")
	})
	for what, a := range map[string]discover.Auth{
		"no such file":    {CAFile: filepath.Join(dir, "none")},
		"no certificate":  {CAFile: keyFile},
		"key missing":     {CertFile: certFile},
		"key of another":  {CertFile: certFile, KeyFile: alienKeyFile},
		"two credentials": {BearerTokenFile: caFile, BasicAuthFile: caFile},
		"no user":         {BasicAuthFile: caFile + "/x"},
	} {
		if _, _, _, err := a.Apply([]scrape.Target{{URL: plain}}); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, _, w, err := (discover.Auth{InsecureSkipVerify: true}).Apply(nil); err != nil || len(w) != 1 ||
		w[0].Code != "tls_not_verified" {
		t.Errorf("no warning that nothing is verified: %v, %v", w, err)
	}
}

// TestCredentials sends each kind of credentials over TCP and a Unix socket to a
// server that repeats what it refuses, and rotates the file.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	want := ""
	handler := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if got := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key"); got != want {
			w.WriteHeader(http.StatusUnauthorized)
			user, password, _ := r.BasicAuth()
			fmt.Fprintf(w, "refused %s %s %s", got, user, password)
			return
		}
		metrics(w, r)
	}
	tcp := httptest.NewServer(http.HandlerFunc(handler))
	defer tcp.Close()
	socket := filepath.Join(dir, "s.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	unix := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(handler)}}
	unix.Start()
	defer unix.Close()

	for _, c := range []struct {
		name, file, first, firstSent, second, secondSent string
		auth                                             func(file string) discover.Auth
	}{
		{"bearer", "token", "tok-first\n", "Bearer tok-first", "tok-second", "Bearer tok-second",
			func(f string) discover.Auth { return discover.Auth{BearerTokenFile: f} }},
		{"basic", "basic", "me:pass-first\n", "Basic bWU6cGFzcy1maXJzdA==", "me:pass:second", "Basic bWU6cGFzczpzZWNvbmQ=",
			func(f string) discover.Auth { return discover.Auth{BasicAuthFile: f} }},
	} {
		for _, address := range []string{tcp.URL + "/metrics", "unix://" + socket} {
			file := write(t, dir, c.file, []byte(c.first))
			targets, _, _, err := c.auth(file).Apply([]scrape.Target{{URL: address}})
			if err != nil {
				t.Fatal(err)
			}
			check := func(what, sent string, ok bool) {
				t.Helper()
				mu.Lock()
				want = sent
				mu.Unlock()
				s := pollOnce(t, targets[0])
				if (s.Outcome == metric.OK) != ok {
					t.Errorf("%s at %s, %s: %s %s", c.name, address, what, s.Outcome, s.Err)
				}
				for _, secret := range []string{"tok-first", "tok-second", "pass-first", "pass:second"} {
					if strings.Contains(s.Err+string(s.Body), secret) {
						t.Errorf("%s: %q shows %s", c.name, s.Err, secret)
					}
				}
			}
			check("first", c.firstSent, true)
			check("rotated at the server only", c.secondSent, false)
			write(t, dir, c.file, []byte(c.second))
			check("rotated", c.secondSent, true)
			os.Remove(file)
			check("file gone", c.secondSent, false)
		}
	}
	h, err := discover.ParseHeader("X-Api-Key: key-1234")
	if err != nil {
		t.Fatal(err)
	}
	want = "key-1234"
	targets, _, _, err := discover.Auth{Headers: []discover.Header{h}}.Apply([]scrape.Target{{URL: tcp.URL + "/metrics"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := pollOnce(t, targets[0]); s.Outcome != metric.OK {
		t.Errorf("header: %s %s", s.Outcome, s.Err)
	}
}

// TestKeptBody repeats a token in a page and in metrics, whose bodies a recording
// keeps.
func TestKeptBody(t *testing.T) {
	file := write(t, t.TempDir(), "token", []byte("tok-hidden"))
	for _, text := range []string{"<html>%s", "# %s\n# TYPE a counter\na 1\n"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, text, r.Header.Get("Authorization"))
		}))
		defer s.Close()
		targets, _, _, err := discover.Auth{BearerTokenFile: file}.Apply([]scrape.Target{{URL: s.URL + "/x"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := pollOnce(t, targets[0]); strings.Contains(string(got.Body), "tok-hidden") ||
			!strings.Contains(string(got.Body), "secret") {
			t.Errorf("body %q", got.Body)
		}
	}
}

// TestSecret prints a secret in every way there is.
func TestSecret(t *testing.T) {
	h, err := discover.ParseHeader("Authorization: Bearer hidden-1")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", h.Value, "header", h)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", h.Value, "header", h)
	j, err := json.Marshal(map[string]any{"h": h, "s": &h.Value})
	if err != nil {
		t.Fatal(err)
	}
	all := log.String() + string(j)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		all += fmt.Sprintf(verb, h) + fmt.Sprintf(verb, h.Value) + fmt.Sprintf(verb, []discover.Secret{h.Value}) +
			fmt.Sprintf(verb, &h.Value)
	}
	if strings.Contains(all, "hidden") || strings.Contains(all, "68696464") || !strings.Contains(all, "<secret>") {
		t.Errorf("the secret shows: %s", all)
	}
	for _, bad := range []string{"", "hidden", ": hidden", "A B: hidden", "A: hidden\r\nB: c"} {
		if _, err := discover.ParseHeader(bad); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("ParseHeader(%q) = %v", bad, err)
		}
	}
}
