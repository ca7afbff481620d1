package faults_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// TestFaultEcho has servers that say back what they were told: in the body of an
// error, in a line that cannot be read, in the address of a redirect. Rule 6
// holds; and it is broken when a text that was written is called a secret.
func TestFaultEcho(t *testing.T) {
	echo := func(r *http.Request) string {
		_, password, _ := r.BasicAuth()
		return fmt.Sprintf("token %s, password %s, %s", r.Header.Get("X-Api-Token"), password, r.Header.Get("Authorization"))
	}
	check := func(want metric.Outcome, answer func(w http.ResponseWriter, r *http.Request)) {
		t.Helper()
		told := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(echo(r), "token "+secrets[0]+", password "+secrets[1]) {
				told++
			}
			answer(w, r)
		}))
		defer srv.Close()
		url := strings.Replace(srv.URL, "http://", "http://reader:"+secrets[1]+"@", 1)
		s := record(t, []scrape.Target{{URL: url + "/metrics"}}, 2, scrape.Options{}, summary.Options{}, nil)
		if got := s.polls[0][0]; got.Outcome != want || told == 0 {
			t.Errorf("got %s %q, want %s; the secrets were told %d times", got.Outcome, got.Err, want, told)
		}
	}
	check(metric.HTTPError, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, echo(r), http.StatusInternalServerError)
	})
	check(metric.Partial, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "a 1\nbad line of %s\n", echo(r))
	})
	check(metric.RefusedRedirect, func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		w.Header().Set("Location", "http://reader:"+password+"@other.example/?token="+r.Header.Get("X-Api-Token"))
		w.WriteHeader(http.StatusFound)
	})
	// Nothing that is kept beside the values is spared, not even a label's name.
	t.Run("K13", func(t *testing.T) {
		for _, body := range []string{"# HELP a says %s\n# TYPE a counter\na 1\n", "# TYPE a gauge\na{\"%s\"=\"x\"} 1\n",
			"# TYPE a gauge\na{x=\"is %s.\"} 1\n", "# TYPE a gauge\n# UNIT a %s\na 1\n# EOF\n",
			"# TYPE a counter\na_total 1 # {id=\"%s\"} 1\n# EOF\n"} {
			check(metric.OK, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(body, "# EOF\n") {
					w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
				}
				fmt.Fprintf(w, body, r.Header.Get("X-Api-Token"))
			})
		}
	})
	t.Run("K13 a tenant is no credential", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "up{env=\"production\",user=\"reader\"} 1\n")
		}))
		defer srv.Close()
		target := scrape.Target{URL: strings.Replace(srv.URL, "http://", "http://reader:"+secrets[1]+"@", 1) + "/metrics",
			Header: http.Header{"X-Scope-Orgid": {"production"}}}
		s := record(t, []scrape.Target{target}, 2, scrape.Options{}, summary.Options{}, nil)
		if got := s.metric("up").Series[0].Labels.String(); got != `{env="production",user="reader"}` {
			t.Errorf("labels are %s", got)
		}
	})
	s := playText(t, "plain_name 1\n", "plain_name 2\n")
	err := faults.Check(t.Context(), faults.Evidence{Dir: s.dir, Formats: written(),
		Secrets: []string{"plain_name"}})
	if err == nil || !strings.Contains(err.Error(), "rule 6") {
		t.Errorf("a text that was written is no violation: %v", err)
	}
}
