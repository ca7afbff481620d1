package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/scrape"
)

// quickRun are flags for a short run without a pause.
var quickRun = []string{"--duration", "120ms", "--interval", "20ms", "--settle", "0s", "--scrape-budget", "0"}

// serveBad starts a server with a script of package badserver.
func serveBad(t *testing.T, script string) *badserver.Server {
	t.Helper()
	s, err := badserver.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := badserver.Start(badserver.Options{Script: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

const goodScript = `200 body="# TYPE good_total counter\ngood_total 5\n"`

// try runs a command line in this process and checks its exit code and what it
// says, on stdout and stderr together, which it returns.
func try(t *testing.T, code int, want string, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	got := run(t.Context(), args, stdio{strings.NewReader(""), &said, &said})
	if got != code || !strings.Contains(said.String(), want) {
		t.Errorf("%q: exit %d, want %d and %q:\n%s", args, got, code, want, said.String())
	}
	return said.String()
}

// checkFaultyRun checks the rules of package faults.
func checkFaultyRun(t *testing.T, dir string, formats ...string) {
	t.Helper()
	if err := faults.Check(t.Context(), faults.Evidence{Dir: dir, Formats: formats}); err != nil {
		t.Error(err)
	}
}

// newRun records a short run of a good server and returns its directory.
func newRun(t *testing.T, flags ...string) string {
	t.Helper()
	srv := serveBad(t, goodScript)
	dir := filepath.Join(t.TempDir(), "run")
	try(t, exitDone, "", append(append([]string{"collect", "http://" + srv.Addr, "-o", dir, "--formats",
		"json,csv,jsonl,parquet"}, quickRun...), flags...)...)
	return dir
}

// TestCatalogueAddresses has the cases of transport that are about addresses and
// files.
func TestCatalogueAddresses(t *testing.T) {
	t.Parallel()
	collect := collectFaulty
	t.Run("T01 only target refuses", func(t *testing.T) {
		srv := serveBad(t, goodScript)
		srv.Close()
		collect(t, exitNothing, "connection refused", "http://"+srv.Addr)
		collect(t, exitIncomplete, "data incomplete", "--strict", "http://"+srv.Addr, "http://"+serveBad(t, goodScript).Addr)
	})
	t.Run("T03 names", func(t *testing.T) {
		collect(t, exitNothing, "lookup does-not-exist.invalid", "http://does-not-exist.invalid:9/metrics")
		_, port, err := net.SplitHostPort(serveBad(t, goodScript).Addr)
		if err != nil {
			t.Fatal(err)
		}
		// localhost is ::1 and 127.0.0.1 on most machines, and only one of them listens.
		said := collect(t, exitDone, "recording 1 targets", "http://localhost:"+port)
		list, err := net.DefaultResolver.LookupHost(t.Context(), "localhost")
		if want := fmt.Sprintf("localhost has %d addresses; 127.0.0.1:%s is polled", len(list), port); err != nil ||
			strings.Contains(said, want) != (len(list) > 1) {
			t.Errorf("%v, %v: want %q in\n%s", list, err, want, said)
		}
		// The address that was tried is in the error.
		said = collect(t, exitNothing, ":1: connect: connection refused", "http://localhost:1")
		if !strings.Contains(said, "dial tcp 127.0.0.1:1:") && !strings.Contains(said, "dial tcp [::1]:1:") {
			t.Errorf("no address in %s", said)
		}
	})
	t.Run("T16 certificates", func(t *testing.T) { certificates(t, collect) })
	t.Run("T17 key files", func(t *testing.T) { keyFiles(t, collect) })
	t.Run("T24 addresses", func(t *testing.T) { addresses(t, collect) })
	t.Run("T25 descriptors", func(t *testing.T) {
		var urls strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&urls, " 127.0.0.1:%d", 10000+i)
		}
		cmd := exec.Command("sh", "-c", "ulimit -n 256 && exec scrapestat collect -o run"+urls.String())
		cmd.Dir = t.TempDir()
		said, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != exitUsage ||
			!strings.Contains(string(said), "2000 targets need 2032 open files, the limit is 256") {
			t.Errorf("%v: %.300s", err, said)
		}
	})
}

// TestCatalogueProxy has what changes the environment of this process.
func TestCatalogueProxy(t *testing.T) {
	t.Run("T18 proxy in the environment", func(t *testing.T) {
		t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
		t.Setenv("http_proxy", "http://127.0.0.1:1")
		collectFaulty(t, exitDone, "recording 1 targets", "http://"+serveBad(t, goodScript).Addr)
	})
}

// collectFaulty collects for a short time and checks the exit code, what is said, and the rules.
func collectFaulty(t *testing.T, code int, want string, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	said := try(t, code, want, append(append([]string{"collect", "-o", dir, "--formats", "json"}, quickRun...),
		args...)...)
	if _, err := os.Stat(filepath.Join(dir, "server_metrics_export.json")); err == nil {
		checkFaultyRun(t, dir, "json")
	}
	return said
}

// certificate makes a certificate of its own authority.
func certificate(t *testing.T, name string, notAfter time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-48 * time.Hour), NotAfter: notAfter,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(name); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

type collectFunc func(t *testing.T, code int, want string, args ...string) string

func certificates(t *testing.T, collect collectFunc) {
	tomorrow := time.Now().Add(24 * time.Hour)
	check := func(cert tls.Certificate, max uint16, code int, want string, flags ...string) {
		t.Helper()
		srv := httptest.NewUnstartedServer(nil)
		srv.Config.Handler = newEngine(t)
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MaxVersion: max, MinVersion: tls.VersionTLS10}
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		defer srv.Close()
		ca := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}),
			0o600); err != nil {
			t.Fatal(err)
		}
		if flags == nil {
			flags = []string{"--tls-ca", ca}
		}
		collect(t, code, want, append(flags, srv.URL)...)
	}
	here := "127.0.0.1"
	check(certificate(t, here, tomorrow), 0, exitDone, "recording")
	check(certificate(t, here, time.Now().Add(-time.Hour)), 0, exitNothing, "expired")
	check(certificate(t, "elsewhere.test", tomorrow), 0, exitNothing, "--tls-server-name")
	check(certificate(t, here, tomorrow), 0, exitNothing, "--tls-ca", "--quiet")
	check(certificate(t, here, tomorrow), tls.VersionTLS10, exitNothing, "protocol version")
	check(certificate(t, here, tomorrow), 0, exitDone, "were not verified", "--insecure-skip-verify")
}

func keyFiles(t *testing.T, collect collectFunc) {
	l := startLocked(t)
	url := "https://" + l.host + "/metrics"
	collect(t, exitNothing, "--tls-cert", "--tls-ca", l.ca, "--tls-server-name", "locked.test", "--bearer-token-file",
		l.good, "--header", "X-Key: s3cr3t-header", url)
	collect(t, exitUsage, "no-such-key", url, "--tls-cert", l.cert, "--tls-key", filepath.Join(l.dir, "no-such-key"))
	if err := os.Chmod(l.key, 0o644); err != nil {
		t.Fatal(err)
	}
	collect(t, exitDone, "others may read it (mode 0644)", append(l.flags("", l.good), url)...)
}

// documentedAddresses holds the table of docs/targets.md against what is done.
func documentedAddresses(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("../../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| given | polled |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `(.*)` \\| `(.*)` \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) < 9 {
		t.Fatalf("%d rows in %s", len(rows), table)
	}
	for _, r := range rows {
		if got, err := scrape.ParseTarget(r[1]); err != nil || got.URL != r[2] {
			t.Errorf("%s: got %s, %v, docs/targets.md says %s", r[1], got.URL, err, r[2])
		}
	}
}

func addresses(t *testing.T, collect collectFunc) {
	documentedAddresses(t)
	srv := serveBad(t, goodScript)
	for _, a := range []string{srv.Addr, "http://" + srv.Addr, "http://" + srv.Addr + "/",
		"http://" + srv.Addr + "/metrics", "name=" + srv.Addr,
		"http://u:p@" + srv.Addr, "http://" + srv.Addr + "/metrics#part", "http://" + srv.Addr + "/metrics?a=b"} {
		collect(t, exitDone, "recording 1 targets", a)
	}
	for _, a := range []string{"", "http://", "ftp://h:1", "http://h:99999", "://x", "http://[::1"} {
		collect(t, exitUsage, "Try:", a)
	}
	for _, s := range srv.Ledger() {
		if s.Path != "/metrics" {
			t.Errorf("a request for %s, want /metrics", s.Path)
		}
	}
	socket := filepath.Join(t.TempDir(), "m.sock")
	script, err := badserver.Parse(goodScript)
	if err != nil {
		t.Fatal(err)
	}
	local, err := badserver.Start(badserver.Options{Script: script, Network: "unix", Address: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	collect(t, exitDone, "recording 1 targets", "unix://"+socket)
	six, err := badserver.Start(badserver.Options{Script: script, Address: "[::1]:0"})
	if err != nil {
		t.Logf("no IPv6 here: %v", err)
		return
	}
	defer six.Close()
	collect(t, exitDone, "recording 1 targets", six.Addr)
}

func serveHandler(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}
