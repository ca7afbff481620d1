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
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
)

// locked is a server that wants a client certificate and a token, and the files
// to get in with.
type locked struct {
	dir, host           string
	ca, cert, key, good string // files
	bad                 string // a file with a token that is refused
}

// startLocked starts the server. It is every kind of server in one, over
// HTTP/1.1 and HTTP/2, and repeats what it was sent when it refuses.
func startLocked(t *testing.T) *locked {
	t.Helper()
	l := &locked{dir: t.TempDir()}
	put := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(l.dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// One certificate is the authority, the server's and the client's.
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "locked"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"locked.test"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	l.ca = put("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	l.cert, l.key = l.ca, put("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	l.good, l.bad = put("token", []byte("s3cr3t-token\n")), put("bad", []byte("s3cr3t-inline\n"))
	s := httptest.NewUnstartedServer(http.HandlerFunc(serveLocked))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	s.TLS.ClientCAs.AddCert(cert)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	l.host = s.Listener.Addr().(*net.TCPAddr).String()
	return l
}

// serveLocked is an exposition, Triton over HTTP and gRPC, the query API of
// Prometheus and a receiver of remote write.
func serveLocked(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	called := strings.HasPrefix(r.URL.Path, "/inference.")
	if r.Header.Get("Authorization") != "Bearer s3cr3t-token" || r.Header.Get("X-Key") != "s3cr3t-header" {
		if said := strings.ReplaceAll(fmt.Sprint("no: ", r.Header), "%", ""); called {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "16")
			w.Header().Set("Grpc-Message", said)
		} else {
			http.Error(w, said, http.StatusUnauthorized)
		}
		return
	}
	now := float64(time.Now().UnixMilli()) / 1000
	switch {
	case r.URL.Path == "/metrics":
		fmt.Fprint(w, "# TYPE a counter\na 1\n")
	case strings.HasPrefix(r.URL.Path, "/v2/models"):
		fmt.Fprint(w, `{"model_stats":[{"name":"m","version":"1","inference_count":7,"execution_count":3}]}`)
	case called:
		message := "\n\x0a\n\x01m\x12\x011 \x07(\x03"
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(append([]byte{0, 0, 0, 0, byte(len(message))}, message...))
		w.Header().Set("Grpc-Status", "0")
	case r.URL.Path == "/api/v1/query":
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a","job":"j",`+
			`"instance":"i"},"values":[[%.3f,"1"],[%.3f,"2"]]}]}}`, now-60, now-59)
	case r.URL.Path == "/api/v1/write":
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1")
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

// flags are those that open the server, each beginning with prefix.
func (l *locked) flags(prefix, token string) []string {
	return []string{"--" + prefix + "tls-ca", l.ca, "--" + prefix + "tls-cert", l.cert, "--" + prefix + "tls-key", l.key,
		"--" + prefix + "tls-server-name", "locked.test",
		"--" + prefix + "header", "X-Key: s3cr3t-header", "--" + prefix + "bearer-token-file", token}
}

// TestOneAccess asks the locked server with every command that asks a server:
// the same flags open it, what is missing is named, and no secret is in any
// output.
func TestOneAccess(t *testing.T) {
	t.Parallel()
	l := startLocked(t)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "# TYPE a counter\na 1\n")
	}))
	defer plain.Close()
	short := []string{"--duration", "100ms", "--interval", "30ms", "--settle", "0s", "--scrape-budget", "0", "--formats",
		"json,csv,jsonl,parquet"}
	for n, c := range []struct {
		name, prefix string
		args         []string
		run          bool // makes a run directory
		refused      int  // exit code when the server refuses
		want         string
	}{
		{"collect", "", append([]string{"collect", "https://" + l.host + "/metrics"}, short...), true, exitNothing,
			"--tls-cert"},
		{"collect Triton over HTTP", "", append([]string{"collect", "triton+https://" + l.host}, short...), true, exitNothing,
			""},
		{"collect Triton over gRPC", "", append([]string{"collect", "triton+grpcs://" + l.host}, short...), true, exitNothing,
			""},
		{"doctor", "", []string{"doctor", "https://" + l.host + "/metrics"}, false, exitNothing, "--tls-c"},
		{"doctor Triton over gRPC", "", []string{"doctor", "triton+grpcs://" + l.host}, false, exitNothing, ""},
		{"import", "", []string{"import", "prometheus", "https://" + l.host, "--start", "-1h"}, true, exitFailed, "--tls-c"},
		{"remote write", "remote-write-", append([]string{"collect", plain.URL, "--remote-write",
			"https://" + l.host + "/api/v1/write", "--remote-write-version", "1"}, short...), true, exitDone,
			"--remote-write-tls-c"},
	} {
		try := func(what string, code int, want string, flags ...string) {
			t.Helper()
			var out string
			var said bytes.Buffer
			got := -1
			for again := 0; again < 9 && (got < 0 || strings.Contains(said.String(), "context canceled")); again++ {
				// On a starved machine a short run may end before any handshake did.
				said.Reset()
				args := slices.Concat(c.args, flags)
				if out = filepath.Join(l.dir, fmt.Sprint(n, what, again)); c.run {
					args = append(args, "-o", out)
				}
				got = run(t.Context(), args, stdio{strings.NewReader(""), &said, &said})
			}
			if got != code || !strings.Contains(said.String(), want) {
				t.Errorf("%s, %s: exit %d, want %d and %q: %s", c.name, what, got, code, want, said.String())
			}
			search(t, c.name+", "+what, said.Bytes())
			if _, err := os.Stat(out); err == nil {
				searchFolder(t, out)
			}
			if lost := strings.Contains(said.String(), "remote write to"); lost != (c.prefix != "" && code == exitDone &&
				what != "good" && what != "not verified") {
				t.Errorf("%s, %s: remote write lost: %v", c.name, what, lost)
			}
		}
		try("good", exitDone, "", l.flags(c.prefix, l.good)...)
		try("bad token", c.refused, "", l.flags(c.prefix, l.bad)...)
		try("no certificate", c.refused, c.want, "--"+c.prefix+"tls-ca", l.ca, "--"+c.prefix+"tls-server-name", "locked.test")
		try("unknown authority", c.refused, strings.TrimSuffix(c.want, "ert"), "--"+c.prefix+"bearer-token-file", l.good,
			"--"+c.prefix+"tls-server-name", "locked.test")
		try("not verified", exitDone, "were not verified",
			append(l.flags(c.prefix, l.good), "--"+c.prefix+"insecure-skip-verify")...)
		try("two credentials", exitUsage, "exclude each other",
			append(l.flags(c.prefix, l.good), "--"+c.prefix+"basic-auth-file", l.good)...)
	}
}

// searchFolder searches all files below dir, and what is compressed in them. It
// returns how many there are.
func searchFolder(t *testing.T, dir string) int {
	t.Helper()
	files := map[string]bool{}
	err := faults.Texts(t.Context(), dir, func(where string, data []byte) {
		path, _, _ := strings.Cut(where, ", ")
		files[path] = true
		search(t, where, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
