package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// secretsOfTest are in files, flags and a configuration; none may be in an output.
var secretsOfTest = []string{"s3cr3t-header", "s3cr3t-token", "s3cr3t-password", "s3cr3t-inline", "s3cr3t-query",
	"s3cr3t-user"}

// TestNoSecretAnywhere records servers that repeat every credential they are sent
// in errors and bodies, and searches all that was written for each secret.
func TestNoSecretAnywhere(t *testing.T) {
	t.Parallel()
	echo := func(status int, text string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			w.WriteHeader(status)
			fmt.Fprintf(w, text, fmt.Sprint(r.Header, r.URL, user, password))
		}))
		t.Cleanup(s.Close)
		return s
	}
	refused, page := echo(http.StatusUnauthorized, "no: %s"), echo(http.StatusOK, "<html>%s")
	good := echo(http.StatusOK, "# %s\n# TYPE a counter\na 1\n")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inputs := filepath.Join(dir, "in")
	if err := os.Mkdir(inputs, 0o700); err != nil {
		t.Fatal(err)
	}
	token, basic := write("in/token", "s3cr3t-token\n"), write("in/basic", "s3cr3t-user:s3cr3t-password\n")
	host := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	config := write("in/p.yml", "scrape_configs:\n- job_name: a\n  authorization: {credentials: s3cr3t-inline}\n  "+
		"static_configs: [{targets: ['"+host(refused)+
		"']}]\n- job_name: b\n  metrics_path: /x\n  params: {token: [s3cr3t-query]}\n  basic_auth: {username: u, "+
		"password_file: "+token+"}\n  static_configs: [{targets: ['"+host(page)+"', '"+host(good)+"']}]\n")
	placed, files := 0, 0
	for i, c := range []struct {
		placed int // secrets, each in a place of its own
		args   []string
	}{
		{1, []string{"--bearer-token-file", token, refused.URL + "/a", page.URL + "/b", good.URL + "/c"}},
		{2, []string{"--basic-auth-file", basic, refused.URL + "/a", page.URL + "/b", good.URL + "/c"}},
		{3, []string{"--header", "X-Key: s3cr3t-header", "--header=Authorization: Bearer s3cr3t-inline",
			refused.URL + "/a?token=s3cr3t-query", page.URL + "/b", good.URL + "/c"}},
		{1, []string{"http://reader:s3cr3t-password@" + host(refused) + "/a", "http://reader:s3cr3t-password@" + host(page) +
			"/b", "http://reader:s3cr3t-password@" + host(good) + "/c"}},
		{3, []string{"--config", config}},
	} {
		placed += c.placed
		out := filepath.Join(dir, fmt.Sprint("run", i))
		for _, args := range [][]string{
			append([]string{"collect", "-o", out, "--duration", "300ms", "--interval", "50ms", "--formats",
				"json,csv,jsonl,parquet"}, c.args...),
			{"report", out}, {"export", out}, {"compare", out, out},
		} {
			var said bytes.Buffer
			if code := run(t.Context(), args, stdio{strings.NewReader(""), &said, &said}); code != exitDone {
				t.Fatalf("%s: exit %d: %s", args[0], code, said.String())
			}
			search(t, "the terminal", said.Bytes())
		}
		if _, err := os.Stat(filepath.Join(out, reportName)); err != nil {
			t.Error(err)
		}
		files += searchFolder(t, out)
	}
	var said bytes.Buffer // what a command is told, too
	if code := run(t.Context(), []string{"collect", "-o", filepath.Join(dir, "command"), "--bearer-token-file", token,
		"--header", "X-Key: s3cr3t-header", good.URL + "/c", "--", "env"},
		stdio{strings.NewReader(""), &said, &said}); code != exitDone || !strings.Contains(said.String(), "PATH=") {
		t.Errorf("exit %d: %s", code, said.String())
	}
	search(t, "the environment of a command", said.Bytes())
	files += searchFolder(t, filepath.Join(dir, "command"))
	for _, args := range [][]string{{"--header", "s3cr3t-header", "h:1"}, {"--header", "bad name: s3cr3t-header", "h:1"},
		{"--config", write("in/q.yml", "scrape_configs: [{job_name: a, bearer_token: [s3cr3t-inline]}]")}} {
		placed++
		var said bytes.Buffer
		if code := run(t.Context(), append([]string{"collect", "-o", filepath.Join(dir, "none")}, args...),
			stdio{strings.NewReader(""), &said, &said}); code != exitUsage {
			t.Errorf("%q: exit %d", args, code)
		}
		search(t, "the error", said.Bytes())
	}
	faults.Figure(t, "secrets", fmt.Sprintf(
		"%d placements of secrets, sent to servers that repeat them or refused as usage: 0 hits in %d files, what is "+
			"compressed in them included, and in all that was said", placed, files),
		"go test ./cmd/scrapestat -run TestNoSecretAnywhere -v")
}

func search(t *testing.T, where string, data []byte) {
	t.Helper()
	for _, s := range secretsOfTest {
		if i := bytes.Index(data, []byte(s)); i >= 0 {
			t.Errorf("%s shows %s: ...%q", where, s, data[max(0, i-60):min(len(data), i+40)])
		}
	}
}

// TestFilesChange lets targets come, go and come back in a file while a run is
// recorded.
func TestFilesChange(t *testing.T) {
	server := func() *httptest.Server {
		n := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n++
			fmt.Fprintf(w, "# TYPE a counter\na %d\n", n)
		}))
		t.Cleanup(s.Close)
		return s
	}
	a, b := server(), server()
	dir := t.TempDir()
	list := filepath.Join(dir, "targets.json")
	put := func(servers ...*httptest.Server) {
		var hosts []string
		for _, s := range servers {
			hosts = append(hosts, `"`+strings.TrimPrefix(s.URL, "http://")+`"`)
		}
		text := `[{"targets":[` + strings.Join(hosts, ",") + `],"labels":{"tier":"gold"}}]`
		if err := os.WriteFile(list+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(list+".new", list); err != nil {
			t.Fatal(err)
		}
	}
	put(a)
	config := filepath.Join(dir, "p.yml")
	if err := os.WriteFile(config, []byte("scrape_configs:\n- job_name: j\n  file_sd_configs: [{files: "+
		"[targets.json]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "run")
	var said bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"collect", "--config", config, "-o", out, "--interval", "20ms", "--settle", "0s",
			"--discovery-interval", "30ms",
			"--scrape-budget", "0"}, stdio{strings.NewReader(""), &said, &said})
	}()
	if !waitForPolls(out, 3) {
		t.Fatal("the first target is not polled")
	}
	lives := func(n int) {
		t.Helper()
		tick, late := time.NewTicker(10*time.Millisecond), time.After(patience)
		defer tick.Stop()
		for got := 0; got < n; {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("the second target did not come or go, event %d", n)
			}
			if r, err := rundb.Open(out); err == nil {
				got = len(r.Lives(1))
				r.Close()
			}
		}
	}
	put(a, b)
	lives(1)
	put(a)
	lives(2)
	put(a, b)
	lives(3)
	if err := rundb.AddMark(out, metric.Mark{Name: metric.MarkEnd, AtNS: time.Now().UnixNano()}); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != exitDone {
		t.Fatalf("exit %d: %s", code, said.String())
	}
	m, err := rundb.ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Targets) != 2 || len(m.Targets[0].Lives) != 0 || len(m.Targets[1].Lives) != 3 ||
		m.Targets[1].Labels["tier"] != "gold" {
		t.Errorf("manifest %+v", m.Targets)
	}
	if !strings.Contains(said.String(), "came and went") {
		t.Errorf("the summary does not say who came and went: %s", said.String())
	}
}
