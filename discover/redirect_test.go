package discover_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
)

// TestGuardRedirect: neither a discovered target nor the server that lists
// targets can send us on to a metadata service.
func TestGuardRedirect(t *testing.T) {
	asked := 0
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect)
	}))
	defer away.Close()
	host := strings.TrimPrefix(away.URL, "http://")
	dir := t.TempDir()
	write(t, dir, "t.yml", fmt.Appendf(nil, "- targets: [%q, 'metadata.internal@169.254.169.254:80', "+
		"'[::ffff:169.254.169.254]:80']\n", host))
	r := load(t, dir, "scrape_configs:\n- job_name: f\n  file_sd_configs: [{files: [t.yml]}]\n- job_name: h\n  "+
		"http_sd_configs: [{url: '"+away.URL+"/sd'}]\n")
	said := fmt.Sprint(r.Warnings)
	if asked != 1 || !strings.Contains(said, "http_sd of job \"h\"") || !strings.Contains(said, "307") {
		t.Errorf("%d requests; the redirect of the list is not told in %s", asked, said)
	}
	if len(r.Targets) != 1 || !strings.Contains(said, "[::ffff:169.254.169.254]:80") ||
		!strings.Contains(said, "metadata.internal@") {
		t.Fatalf("targets %v, warnings %s", r.Targets, said)
	}
	s := pollOnce(t, r.Targets[0].Target)
	if s.Outcome != metric.RefusedRedirect || !strings.Contains(s.Err, "169.254.169.254") {
		t.Errorf("got %s, %q", s.Outcome, s.Err)
	}
}

// TestWritable: a configuration, and one that it includes, that everybody may
// change is used with a warning.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	inner := write(t, dir, "inner.yml", []byte("scrape_configs: [{job_name: j, static_configs: [{targets: ['h:1']}]}]\n"))
	check := func(mode os.FileMode, want int) {
		t.Helper()
		if err := os.Chmod(inner, mode); err != nil {
			t.Fatal(err)
		}
		r := load(t, dir, "scrape_config_files: [inner.yml]\n")
		if got := strings.Count(fmt.Sprint(r.Warnings), inner+" may be changed by everybody"); got != want ||
			len(r.Targets) != 1 {
			t.Errorf("mode %o: %d targets, warnings %v", mode, len(r.Targets), r.Warnings)
		}
	}
	check(0o644, 0)
	check(0o660, 0)
	check(0o646, 1)
	list := write(t, dir, "list.yml", []byte("[{targets: ['h:2']}]\n"))
	for mode, want := range map[os.FileMode]int{0o644: 0, 0o606: 1} {
		if err := os.Chmod(list, mode); err != nil {
			t.Fatal(err)
		}
		r := load(t, dir, "scrape_configs: [{job_name: f, file_sd_configs: [{files: [list.yml]}]}]\n")
		if got := strings.Count(fmt.Sprint(r.Warnings), list+" may be changed by everybody"); got != want ||
			len(r.Targets) != 1 {
			t.Errorf("list of mode %o: %d targets, warnings %v", mode, len(r.Targets), r.Warnings)
		}
	}
	if w := discover.WarnWorldWritable(dir + "/none"); w != nil {
		t.Errorf("a file that is not there: %v", w)
	}
	if w := discover.WarnWorldWritable("/dev/null"); w != nil {
		t.Errorf("a device: %v", w)
	}
}
