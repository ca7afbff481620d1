//go:build unix

package main

import (
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// docServers is who answers at the addresses of the manual, where a page does not
// give another: a profile of simulate, a store, or a server that is locked.
var docServers = map[string]string{
	"127.0.0.1:8000": "vllm", "127.0.0.1:8001": "vllm-omni", "127.0.0.1:8091": "vllm-omni", "127.0.0.1:9400": "dcgm",
	"127.0.0.1:8002": "triton", "127.0.0.1:8082": "torchserve", "127.0.0.1:30000": "sglang",
	"10.0.0.3:8000": "vllm", "10.0.0.4:8000": "vllm", "10.0.0.3:9400": "dcgm", "host-a:8000": "vllm",
	"host-a:9400":     "dcgm",
	"prometheus:9090": "store", "thanos:9090": "store", "thanos.example": "store", "mimir.example": "store",
	"h:8000": "locked",
}

// docRuns are the runs that a page can speak of without having recorded them, where
// it does not give others: a profile of simulate, or requests.
var docRuns = map[string]string{
	"run1": "vllm", "run2": "vllm", "run3": "vllm", "run4": "vllm", "run5": "vllm", "run6": "vllm", "before": "vllm",
	"after": "vllm", "main": "vllm", "pr": "vllm",
	"a1": "vllm", "a2": "vllm", "a3": "vllm", "a4": "vllm", "a5": "vllm", "a6": "vllm", "b1": "vllm", "b2": "vllm",
	"b3": "vllm", "b4": "vllm", "b5": "vllm", "b6": "vllm",
	"old": "vllm-omni", "new": "vllm-omni", "baseline": "vllm-omni",
}

// docFiles are the files that a page can speak of, beside those in testdata/docs.
var docFiles = map[string]func(*docRun, string) error{
	"artifacts/server_metrics_export.jsonl": (*docRun).putExports,
	"old.jsonl.gz":                          (*docRun).putGzip,
	"dump.om.gz":                            (*docRun).putGzip,
	"events.db":                             putEventsDB,
	"profile_export.jsonl":                  putProfileExport,
	"archive":                               putArchive,
	"bench":                                 func(_ *docRun, path string) error { return os.Mkdir(path, 0o700) },
}

// docWorld is what the pages share.
type docWorld struct {
	dir string // of recordings

	mu   sync.Mutex
	made map[string]bool // recordings
}

// recording makes the recording of a run once.
func (w *docWorld) recording(t *testing.T, kind, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir := filepath.Join(w.dir, kind+"-"+name)
	if w.made[dir] {
		return dir
	}
	if kind == "requests" {
		runOK(t, "demo", "--requests", "--duration", "1s", "-o", dir)
	} else {
		targets, ok := pages()[kind+".md"]
		if !ok {
			t.Fatalf("run %s is given as %q, which is no profile of a page of engines", name, kind)
		}
		seed := fnv.New32()
		_, _ = io.WriteString(seed, name)
		for i := range targets {
			targets[i].options.Seed += uint64(seed.Sum32())
		}
		recordSimulated(t, dir, targets, 20*time.Second, 2*time.Minute)
	}
	w.made[dir] = true
	return dir
}

// serve starts who answers at an address of a page.
func (r *docRun) serve(kind string) (address string, err error) {
	var handler http.Handler
	switch kind {
	case "store":
		handler = http.HandlerFunc(serveStore)
	case "locked":
		return r.serveLocked()
	default:
		sim, err := simulate.New(kind, simulate.Options{Rate: 12, Seed: 3, Now: atWork()})
		if err != nil {
			return "", err
		}
		handler = sim
	}
	srv := httptest.NewServer(handler)
	r.t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://"), nil
}

// atWork is a clock by which a server has been at work for half a minute.
func atWork() func() time.Time {
	var asked atomic.Bool
	return func() time.Time {
		if asked.Swap(true) {
			return time.Now()
		}
		return time.Now().Add(-30 * time.Second)
	}
}

// serveLocked starts a server over TLS that wants a credential, and writes the
// files that open it.
func (r *docRun) serveLocked() (string, error) {
	sim, err := simulate.New("vllm", simulate.Options{Rate: 12, Seed: 3, Now: atWork()})
	if err != nil {
		return "", err
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		user, password, _ := q.BasicAuth()
		certified := len(q.TLS.PeerCertificates) == 1 && user == "me" && password == "open"
		if q.Header.Get("Authorization") != "Bearer open" && q.Header.Get("X-Api-Key") == "" && !certified {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		sim.ServeHTTP(w, q)
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.StartTLS()
	r.t.Cleanup(srv.Close)
	key, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return "", err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	for name, data := range map[string][]byte{"ca.pem": cert, "me.pem": cert,
		"me.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(r.dir, name), data, 0o600); err != nil {
			return "", err
		}
	}
	r.env = append(r.env, "SSL_CERT_FILE="+filepath.Join(r.dir, "ca.pem"))
	return strings.TrimPrefix(srv.URL, "https://"), nil
}

var storeQuery = regexp.MustCompile(`\[(\d+)ms\]$`)

// serveStore is a store that scraped a server every 15 s, at all times, and takes
// all that is written to it.
func serveStore(w http.ResponseWriter, q *http.Request) {
	switch q.URL.Path {
	case "/api/v1/query":
		m := storeQuery.FindStringSubmatch(q.FormValue("query"))
		end, err := strconv.ParseFloat(q.FormValue("time"), 64)
		if m == nil || err != nil {
			http.Error(w, `{"status":"error","error":"no range"}`, http.StatusBadRequest)
			return
		}
		width, _ := strconv.Atoi(m[1])
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{`+
			`"__name__":"vllm:generation_tokens_total","job":"vllm","instance":"a:8000"},"values":[`)
		first := int64(end) - int64(width)/1000
		first += 15 - first%15
		for at, sep := first, ""; at <= int64(end); at, sep = at+15, "," {
			fmt.Fprintf(w, `%s[%d,"%d"]`, sep, at, at%100_000_000*7)
		}
		fmt.Fprint(w, `]}]}}`)
	case "/api/v1/write", "/api/v1/push":
		_, _ = io.Copy(io.Discard, q.Body)
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1")
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, q)
	}
}

// putExports writes exports as AIPerf leaves them: JSONL, with its JSON beside it.
func (r *docRun) putExports(path string) error {
	from := r.world.recording(r.t, "vllm", "run1")
	runOK(r.t, "export", from, "--formats", "json,jsonl", "-o", filepath.Dir(path), "--quiet")
	return nil
}

// putGzip compresses a file of testdata, or the JSONL of a run.
func (r *docRun) putGzip(path string) error {
	from := strings.TrimSuffix(filepath.Join("testdata/docs", filepath.Base(path)), ".gz")
	if strings.HasSuffix(from, ".jsonl") {
		dir := r.t.TempDir()
		if err := r.putExports(filepath.Join(dir, "x")); err != nil {
			return err
		}
		from = filepath.Join(dir, "server_metrics_export.jsonl")
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeGzip(path, data)
}

// putEventsDB writes events as MLPerf's endpoints benchmark does.
func putEventsDB(_ *docRun, path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	const events = `CREATE TABLE events (id INTEGER PRIMARY KEY, sample_uuid TEXT, event_type TEXT, timestamp_ns ` +
		`INTEGER, data BLOB);
INSERT INTO events (sample_uuid, event_type, timestamp_ns, data) VALUES ('', 'session.started', 1000, ''), ('', ` +
		`'session.start_performance_tracking', 1100, ''),
('r1', 'sample.issued', 2000, ''), ('r1', 'sample.recv_first', 3000000, ''), ('r1', 'sample.complete', 9000000, ''),
('', 'session.stop_performance_tracking', 9100000, ''), ('', 'session.ended', 9200000, '');`
	_, err = db.Exec(events)
	return err
}

// putProfileExport writes what AIPerf records of 200 requests, a hundred a second.
func putProfileExport(_ *docRun, path string) error {
	var b strings.Builder
	for i := range int64(200) {
		start := 1_790_000_000_000_000_000 + i*10_000_000
		fmt.Fprintf(&b, `{"metadata":{"x_request_id":"r-%d","request_start_ns":%d,"request_end_ns":%d,`+
			`"benchmark_phase":"profiling"},"metrics":{"input_sequence_length":{"value":50,"unit":"tokens"},`+
			`"time_to_first_token":{"value":40,"unit":"ms"},"output_sequence_length":{"value":10,"unit":"tokens"}},`+
			`"error":null}`+"\n",
			i, start, start+100_000_000)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// putArchive writes a folder with an old metric log of TorchServe.
func putArchive(_ *docRun, path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return writeGzip(filepath.Join(path, "old.log.gz"),
		[]byte("2026-11-20T23:13:30,473 - Requests2XX.Count:1.0|#Level:Host|#hostname:vm,timestamp:1795216410\n"))
}

func writeGzip(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	if _, err := z.Write(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}
