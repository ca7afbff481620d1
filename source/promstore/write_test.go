package promstore_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"github.com/prometheus/prometheus/prompb"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// receiver is the receiving end that the makers of the protocol wrote; it keeps
// samples by "name{labels} @ms".
type receiver struct {
	t        *testing.T
	mu       sync.Mutex
	values   map[string]float64
	types    map[string]string // by name, 2.0 only
	versions map[string]int
}

func newReceiver(t *testing.T, accepts ...remote.WriteMessageType) (*receiver, string) {
	r := &receiver{t: t, values: map[string]float64{}, types: map[string]string{}, versions: map[string]int{}}
	srv := httptest.NewServer(remote.NewWriteHandler(r, accepts))
	t.Cleanup(srv.Close)
	return r, srv.URL + "/api/v1/write"
}

// Store takes one request.
func (r *receiver) Store(req *http.Request, kind remote.WriteMessageType) (*remote.WriteResponse, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	resp := remote.NewWriteResponse()
	resp.SetStatusCode(http.StatusNoContent)
	n := 0
	put := func(labels []string, ms int64, v float64) {
		if !slices.IsSorted(everySecond(labels)) {
			r.t.Errorf("labels %q are not sorted", labels)
		}
		r.values[fmt.Sprintf("%s @%d", strings.Join(labels, " "), ms)] = v
		n++
	}
	if kind == remote.WriteV2MessageType {
		var m writev2.Request
		if err := m.UnmarshalVT(body); err != nil {
			return nil, err
		}
		for _, ts := range m.Timeseries {
			var labels []string
			for _, ref := range ts.LabelsRefs {
				labels = append(labels, m.Symbols[ref])
			}
			r.types[labels[1]] = ts.Metadata.Type.String() + " " + m.Symbols[ts.Metadata.HelpRef]
			put(labels, ts.Samples[0].Timestamp, ts.Samples[0].Value)
		}
	} else {
		var m prompb.WriteRequest
		if err := m.Unmarshal(body); err != nil {
			return nil, err
		}
		for _, ts := range m.Timeseries {
			var labels []string
			for _, l := range ts.Labels {
				labels = append(labels, l.Name, l.Value)
			}
			put(labels, ts.Samples[0].Timestamp, ts.Samples[0].Value)
		}
	}
	r.versions[string(kind)]++
	resp.Add(remote.WriteResponseStats{Samples: n})
	return resp, nil
}

func everySecond(s []string) (out []string) {
	for i := 0; i < len(s); i += 2 {
		out = append(out, s[i])
	}
	return out
}

// record gives three polls of a target: everything, a change, a series that
// ended.
func record(w *promstore.RemoteWriter) {
	w.AddTarget(metric.Target{Name: "a", URL: "http://h:1/metrics"})
	var g metric.SnapshotBuilder
	counter := g.Slot(g.Series(g.AddFamily(metric.Family{Name: "reqs", Type: metric.Counter,
		Help: "Requests.", Suffix: "_total"}),
		metric.NewLabels(metric.Label{Name: "job", Value: "own"})), metric.SampleID{Role: metric.RoleValue, Integer: true})
	plain := g.Slot(g.Series(g.Family("plain", metric.Counter, "", ""), metric.Labels{}),
		metric.SampleID{Role: metric.RoleValue})
	h := g.Series(g.Family("lat", metric.Histogram, "", ""), metric.Labels{})
	bucket := g.Slot(h, metric.SampleID{Role: metric.RoleBucket, Bound: 0.5, Text: "0.50"})
	count := g.Slot(h, metric.SampleID{Role: metric.RoleCount})
	body := []byte("reqs_total 1\nplain 1\nnot_plain_total 1\nplain_total_x 1\n")
	poll := func(atMS int64, set func()) {
		s := metric.Snapshot{SentNS: atMS * 1e6, FirstByteNS: atMS*1e6 + 999_999, Body: body}
		set()
		g.Finish(&s)
		w.Record(&s)
	}
	poll(1000, func() { g.SetInteger(counter, 7); g.Set(plain, 1); g.Set(bucket, 2); g.Set(count, 3) })
	w.Record(&metric.Snapshot{SentNS: 1500e6, Outcome: metric.Timeout})
	poll(2000, func() { g.SetInteger(counter, 9); g.Set(plain, 1); g.Set(bucket, 2); g.Set(count, 4) })
	again := func() { g.SetInteger(counter, 10); g.Set(plain, 1); g.Set(bucket, 2); g.Set(count, 4) }
	poll(2000, again) // the same millisecond: sent as the next
	poll(2000, again) // once more: dropped
	poll(3000, func() { g.SetInteger(counter, 11); g.Set(bucket, 2); g.Set(count, math.Inf(1)) })
}

func finish(t *testing.T, w *promstore.RemoteWriter) promstore.WriteStats {
	t.Helper()
	w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w.Run(ctx)
	return w.Stats()
}

// TestWrite: both versions deliver every sample, under the names and labels that
// a Prometheus server would have given them.
func TestWrite(t *testing.T) {
	check := func(version, used string, accepts ...remote.WriteMessageType) {
		t.Helper()
		r, url := newReceiver(t, accepts...)
		w, err := promstore.NewWriter(promstore.WriterOptions{URL: url, Version: version,
			Labels: map[string]string{"run": "x"}, BatchSamples: 3})
		if err != nil {
			t.Fatal(err)
		}
		record(w)
		st := finish(t, w)
		if st.Sent != 16 || st.Dropped != 4 || st.Failed != 0 || st.Queued != 0 || st.Version != used {
			t.Errorf("version %s: %+v", version, st)
		}
		want := map[string]float64{}
		add := func(name, more string, ms int64, v float64) {
			exported := ""
			if name == "reqs_total" {
				exported = " exported_job own"
			}
			want[fmt.Sprintf("__name__ %s%s instance h:1 job scrapestat%s run x target a @%d", name, exported, more, ms)] = v
		}
		for i, ms := range []int64{1000, 2000, 2001, 3000} {
			add("reqs_total", "", ms, []float64{7, 9, 10, 11}[i])
			add("lat_bucket", " le 0.50", ms, 2)
			add("lat_count", "", ms, []float64{3, 4, 4, math.Inf(1)}[i])
			if ms < 3000 {
				add("plain", "", ms, 1)
			}
		}
		ended := "__name__ plain instance h:1 job scrapestat run x target a @3000"
		if v, ok := r.values[ended]; !ok || math.Float64bits(v) != 0x7ff0000000000002 {
			t.Errorf("version %s: the series that ended got %x, %v; want a staleness marker", version, math.Float64bits(v), ok)
		}
		delete(r.values, ended)
		if !maps.Equal(r.values, want) {
			t.Errorf("version %s:\n got %v\nwant %v", version, r.values, want)
		}
		if used == "2" && (r.types["reqs_total"] != "METRIC_TYPE_COUNTER Requests." ||
			r.types["lat_bucket"] != "METRIC_TYPE_HISTOGRAM ") {
			t.Errorf("types %v", r.types)
		}
	}
	check("2", "2", remote.WriteV2MessageType)
	check("1", "1", remote.WriteV1MessageType)
	check("auto", "2", remote.WriteV1MessageType, remote.WriteV2MessageType)
	check("auto", "1", remote.WriteV1MessageType)
}

// TestWriteQueue: a receiver that does not follow costs the oldest samples, and
// Record never waits for it.
func TestWriteQueue(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	w, err := promstore.NewWriter(promstore.WriterOptions{URL: srv.URL, Version: "1", QueueSamples: 10, BatchSamples: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.AddTarget(metric.Target{URL: "x"})
	var g metric.SnapshotBuilder
	slot := g.Slot(g.Series(g.Family("m", metric.Gauge, "", ""), metric.Labels{}), metric.SampleID{})
	var running sync.WaitGroup
	running.Go(func() { w.Run(t.Context()) })
	for i := range int64(1000) {
		s := metric.Snapshot{SentNS: (i + 1) * 1e6}
		g.Set(slot, float64(i))
		g.Finish(&s)
		w.Record(&s)
	}
	if st := w.Stats(); st.Queued > 10 || st.Dropped < 980 {
		t.Errorf("%+v, want at most 10 queued", st)
	}
	close(release)
	w.Close()
	running.Wait()
	if st := w.Stats(); st.Sent+st.Dropped != 1000 || st.Sent < 10 || st.Queued != 0 {
		t.Errorf("%+v, want all 1000 accounted for", st)
	}
}

// TestWriteFails: retries are bounded, refusals are not retried, what is left at
// the end is dropped and counted.
func TestWriteFails(t *testing.T) {
	check := func(status int, version string, requests int, ok bool) {
		t.Helper()
		n := 0
		var mu sync.Mutex
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			n++
			mu.Unlock()
			w.WriteHeader(status)
		}))
		defer srv.Close()
		w, err := promstore.NewWriter(promstore.WriterOptions{URL: srv.URL, Version: version, Retries: 2})
		if err != nil {
			t.Fatal(err)
		}
		record(w)
		st := finish(t, w)
		if n != requests || (st.Failed == 0) != ok || st.Sent+st.Failed != 16 || ok == (st.Err != "") {
			t.Errorf("status %d: %d requests, %+v; want %d", status, n, st, requests)
		}
	}
	check(204, "1", 1, true)
	check(400, "1", 1, false)
	check(500, "1", 3, false)
	check(204, "2", 1, false) // 2.0 wants the receiver to say what it wrote
	check(204, "auto", 2, true)
	check(302, "1", 1, false)
	for _, bad := range []promstore.WriterOptions{{URL: "host:9090"}, {URL: "http://h", Version: "3"}} {
		if _, err := promstore.NewWriter(bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
