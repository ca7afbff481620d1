package scrape_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

func TestAccept(t *testing.T) {
	check := func(want string, protocols ...string) {
		t.Helper()
		got, err := scrape.AcceptHeader(protocols)
		if err != nil || got != want {
			t.Errorf("%v: got %q, %v, want %q", protocols, got, err, want)
		}
	}
	const text = "text/plain;version=0.0.4,*/*;q=0.1"
	check(text)
	check(text, "text", "openmetrics")
	check("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8,"+
		"application/openmetrics-text;version=0.0.1;q=0.9,"+
		"text/plain;version=0.0.4;q=0.8,*/*;q=0.1", "openmetrics", "text", "protobuf")
	check("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"+
		"text/plain;version=0.0.4;q=0.9,*/*;q=0.1",
		"PrometheusProto", "PrometheusText0.0.4")
	fail := func(want string, protocols ...string) {
		t.Helper()
		if _, err := scrape.AcceptHeader(protocols); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q", protocols, err, want)
		}
	}
	fail(`"json" is not known, want some of text, openmetrics, protobuf, Prometheus`, "text", "json")
	fail("text is named twice", "text", "text")
}

// A server that negotiates is asked for the first format until it has answered,
// and for what it answered with from then on.
func TestOneFormatPerRun(t *testing.T) {
	check := func(target scrape.Target, o scrape.Options, first, then string) {
		t.Helper()
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Header.Get("Accept"))
			switch {
			case strings.HasPrefix(r.Header.Get("Accept"), "application/vnd"):
				w.Header().Set("Content-Type", protobuf)
				w.Write([]byte(encode(t, family("g", dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: new(1.0)}}))))
			default:
				w.Header().Set("Content-Type", openMetrics)
				w.Write([]byte("# TYPE g gauge\ng 1\n# EOF\n"))
			}
		}))
		defer server.Close()
		target.URL = server.URL
		for _, s := range pollOnce(t, target, o).all() {
			if s.Outcome != metric.OK || len(s.Warnings) > 0 {
				t.Errorf("got %v %q, warnings %+v", s.Outcome, s.Err, s.Warnings)
			}
		}
		if len(asked) != 2 || !strings.HasPrefix(asked[0], first) || !strings.HasPrefix(asked[1], then) {
			t.Errorf("asked for %q, want %q, then %q", asked, first, then)
		}
	}
	text, open, proto := "text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0",
		"application/vnd.google.protobuf"
	check(scrape.Target{}, scrape.Options{}, text, open)
	check(scrape.Target{}, scrape.Options{Protocols: []string{"protobuf", "text"}}, proto, proto)
	check(scrape.Target{Protocols: []string{"protobuf"}}, scrape.Options{Protocols: []string{"text"}}, proto, proto)
	check(scrape.Target{Header: http.Header{"Accept": {"own"}}}, scrape.Options{}, "own", "own")
	_, err := scrape.New([]scrape.Target{{URL: "http://a/metrics", Protocols: []string{"json"}}}, scrape.Options{},
		newRecording(t, 1))
	if err == nil || !strings.Contains(err.Error(), `"json" is not known`) {
		t.Errorf("got error %v", err)
	}
}
