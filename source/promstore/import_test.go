package promstore_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/promstore"
)

const base = int64(1_700_000_000_000) // ms

// hour is one hour of a target with a histogram and a counter, every 15 s, that
// was down for a minute.
func hour() []fakeSeries {
	var out []fakeSeries
	for _, x := range []struct{ name, labels string }{{"lat_bucket", `,le="0.5"`}, {"lat_bucket", `,le="+Inf"`},
		{"lat_sum", ""}, {"lat_count", ""},
		{"reqs_total", `,code="200"`}, {"up", ""}} {
		s := fakeSeries{name: x.name, labels: `job="vllm",instance="h:1"` + x.labels}
		for i := range int64(240) {
			down := i >= 100 && i < 104
			if down && i > 100 && x.name != "up" {
				continue
			}
			v := float64(i)
			switch {
			case x.name == "up" && down:
				v = 0
			case x.name == "up":
				v = 1
			case down:
				v = timeline.StaleNaN()
			}
			s.atMS, s.values = append(s.atMS, base+i*15_000), append(s.values, v)
		}
		out = append(out, s)
	}
	return out
}

// dropStale is what the query API leaves of a series.
func dropStale(all []fakeSeries) []fakeSeries {
	for i := range all {
		var at []int64
		var v []float64
		for k, x := range all[i].values {
			if !math.IsNaN(x) {
				at, v = append(at, all[i].atMS[k]), append(v, x)
			}
		}
		all[i].atMS, all[i].values = at, v
	}
	return all
}

func options(url string) promstore.ImportOptions {
	return promstore.ImportOptions{URL: url, StartNS: base * 1e6, EndNS: (base + 3_600_000) * 1e6}
}

// TestImportWays: all ways give the same polls, whatever the slices are.
func TestImportWays(t *testing.T) {
	check := func(name string, f *fakeStore, change func(*promstore.ImportOptions), via string, split bool) {
		t.Helper()
		f.t = t
		o := options(f.start())
		change(&o)
		r := sourcetest.New(t, sourcetest.Limits{})
		st, err := promstore.Import(context.Background(), o, r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if st.Via != via || (st.Split > 0) != split || st.Polls != 240 || st.Failed != 4 || st.Dropped != 0 ||
			st.Stored != 6*236 {
			t.Errorf("%s: %+v", name, st)
		}
		if r.FirstNS != base*1e6 || r.Targets[0].Name != "vllm/h:1" {
			t.Errorf("%s: begins at %d, targets %+v", name, r.FirstNS, r.Targets)
		}
		slot := r.Slot(0, "lat", metric.Histogram, "", metric.RoleBucket, math.Inf(1))
		counter := r.Slot(0, "reqs", metric.Counter, `{code="200"}`, metric.RoleValue, 0)
		for i, p := range r.Instants(0) {
			if p.AtNS != (base+int64(i)*15_000)*1e6 {
				t.Fatalf("%s: poll %d is at %d", name, i, p.AtNS)
			}
			if down := i >= 100 && i < 104; down != (p.Outcome == metric.ConnectError) {
				t.Errorf("%s: poll %d is %v", name, i, p.Outcome)
			} else if !down && (math.Float64frombits(p.Values[slot]) != float64(i) ||
				math.Float64frombits(p.Values[counter]) != float64(i)) {
				t.Errorf("%s: poll %d has bucket %v and counter %v", name, i, math.Float64frombits(p.Values[slot]),
					math.Float64frombits(p.Values[counter]))
			}
		}
	}
	none := func(*promstore.ImportOptions) {}
	small := func(o *promstore.ImportOptions) { o.SliceSamples = 30 }
	check("query", &fakeStore{series: dropStale(hour())}, func(o *promstore.ImportOptions) { o.Via = promstore.ViaQuery },
		promstore.ViaQuery, false)
	check("small slices", &fakeStore{series: dropStale(hour())}, small, promstore.ViaQuery, false)
	check("limit", &fakeStore{series: dropStale(hour()), limit: 20}, none, promstore.ViaQuery, true)
	check("no remote read", &fakeStore{series: dropStale(hour())}, none, promstore.ViaQuery, false)
	check("stream", &fakeStore{series: hour(), readKind: "stream"}, none, promstore.ViaRemoteRead, false)
	check("stream, small", &fakeStore{series: hour(), readKind: "stream"}, small, promstore.ViaRemoteRead, false)
	check("samples", &fakeStore{series: hour(), readKind: "samples"}, small, promstore.ViaRemoteRead, false)
	check("held", &fakeStore{series: hour(), readKind: "samples"},
		func(o *promstore.ImportOptions) { o.Limits.Samples = 100 }, promstore.ViaRemoteRead, true)
}

// TestImportFails: what came before an error is kept, and no error shows a
// secret.
func TestImportFails(t *testing.T) {
	store := &fakeStore{t: t, series: dropStale(hour())}
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n > 6 && r.URL.Path == "/api/v1/query" {
			http.Error(w, `{"status":"error","error":"disk \u001b[31m on fire"}`, http.StatusInternalServerError)
			return
		}
		store.ServeHTTP(w, r)
	}))
	defer srv.Close()
	o := options(strings.Replace(srv.URL, "http://", "http://user:hunter2@", 1) + "?token=hunter2")
	o.SliceSamples = 100
	o.Header = http.Header{"X-Key": {"hunter2"}}
	r := sourcetest.New(t, sourcetest.Limits{Secrets: []string{"hunter2"}})
	st, err := promstore.Import(context.Background(), o, r)
	if err == nil || !strings.Contains(err.Error(), "status 500: disk ?[31m on fire") ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
	}
	if st.Polls == 0 || st.Polls >= 240 {
		t.Errorf("%d polls were kept", st.Polls)
	}
	if store.seen.Get("X-Key") != "hunter2" || store.seen.Get("Authorization") == "" {
		t.Errorf("the store saw %v", store.seen)
	}

	check := func(change func(*promstore.ImportOptions), h http.HandlerFunc, want string) {
		t.Helper()
		srv := httptest.NewServer(h)
		defer srv.Close()
		o := options(srv.URL)
		o.Via = promstore.ViaQuery
		change(&o)
		_, err := promstore.Import(context.Background(), o, sourcetest.New(t, sourcetest.Limits{}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	none := func(*promstore.ImportOptions) {}
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	check(none, answer("<html>"), "read answer of")
	check(none, answer(`{"status":"success","data":{"resultType":"vector","result":[]}}`), "want matrix")
	check(none, answer(`{"status":"error"}`), "want success")
	check(none, answer(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"},`+
		`"values":[[1,2]`), "sample is")
	check(none, answer(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"},`+
		`"values":[[1,"2"]`), "unexpected EOF")
	check(none, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"--bearer-token-file")
	check(none, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) },
		"narrow it with --match")
	check(none, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	}, "status 302")
	check(func(o *promstore.ImportOptions) { o.Via = promstore.ViaRemoteRead }, http.NotFound, "not offered")
	check(func(o *promstore.ImportOptions) { o.Timeout = 50 * time.Millisecond },
		func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client has gone
			<-r.Context().Done()
		}, "deadline")
	check(func(o *promstore.ImportOptions) { o.URL = "ftp://x" }, http.NotFound, "want http://")
	check(func(o *promstore.ImportOptions) { o.Match = []string{`{a=~".*"}`} }, http.NotFound, "matches every series")
}

func TestCheckSelector(t *testing.T) {
	check := func(selector string, ok bool) {
		t.Helper()
		if err := promstore.CheckSelector(selector); (err == nil) != ok {
			t.Errorf("%s: %v, want ok %v", selector, err, ok)
		}
	}
	for _, good := range []string{`up`, `vllm:x{}`, `{job="a"}`, `{__name__=~"a|b", job!='c', x!~"y",}`,
		"{a=`\\d`, b=\"\\\"\\u00e9\\n\"}",
		`{"utf8.name","odd label"="x"}`, ` { __name__ != "" } `} {
		check(good, true)
	}
	for _, bad := range []string{``, `{}`, `{a=""}`, `{a=~".*"}`, `up[5m]`, `sum(up)`, `{a="b"`, `{a=b}`, `{a="b" c="d"}`,
		`{"a"="\xzz"}`, `{a}`, `up offset 5m`} {
		check(bad, false)
	}
}
