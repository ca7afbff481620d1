// Package trtllm polls GET /perf_metrics of TensorRT-LLM for what it tells of its requests.
//
// The server gives each record once, so that two readers take records from each other, and an answer that does not
// come whole is lost: that poll is a gap, which says so.
package trtllm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source"
	"github.com/scrapestat/scrapestat/source/reqfile"
)

const scheme = "trtllm-perf+"

// maxBody is how long an answer may be.
const maxBody = 64 << 20

// Kind is /perf_metrics as targets: trtllm-perf+http://host:8000. It is local, as asking whether it answers would take
// records.
func Kind() source.Kind {
	return source.Kind{Name: "trtllm-perf", Prefixes: []string{scheme}, Local: true, Interval: time.Second,
		Usage: "  trtllm-perf+http://host:8000  what TensorRT-LLM tells of each request; it is read by one reader\n",
		Check: func(address string) error {
			u, err := url.Parse(address[len(scheme):])
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return errors.New("trtllm-perf: wants trtllm-perf+http://HOST:PORT")
			}
			return nil
		},
		New: func() source.Opener { return opener{} }}
}

// opener opens targets. It has no flags.
type opener struct{}

// Flags implements source.Opener.
func (opener) Flags() []source.Flag { return nil }

// Check implements source.Opener.
func (opener) Check() error { return nil }

// Open implements source.Opener.
func (opener) Open(address string, o source.Options) (source.Source, error) {
	base := strings.TrimSuffix(strings.TrimSuffix(address[len(scheme):], "/"), "/perf_metrics")
	name := base
	if o.Redact != nil {
		name = o.Redact(name)
	}
	t := &target{url: base + "/perf_metrics", header: o.Header, client: &http.Client{Transport: o.RoundTripper},
		feed: o.Feed(metric.ServerSource{Kind: "trtllm-perf", Name: name, ServerClock: reqfile.TensorRT.ServerClock})}
	t.reader = reqfile.NewReader(reqfile.TensorRT, t.feed.Record)
	return t, nil
}

// target is a scrape.Source without samples: what it reads are records.
type target struct {
	url    string
	header http.Header
	client *http.Client
	feed   source.Feed
	reader *reqfile.Reader
	most   int // records of an answer so far
}

// Poll implements scrape.Source.
func (t *target) Poll(ctx context.Context, now func() int64, s *metric.Snapshot) {
	s.SentNS = now()
	defer func() { t.feed.Counted(t.reader.Counts()) }()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		s.Outcome, s.Err = metric.ConnectError, "the address is none"
		return
	}
	for k, v := range t.header {
		q.Header[k] = v
	}
	resp, err := t.client.Do(q)
	if err != nil {
		s.Outcome, s.Err = metric.ConnectError, metric.Clean(metric.WithoutURL(err).Error(), 200)
		if ctx.Err() != nil {
			s.Outcome = metric.Timeout
		}
		return
	}
	defer resp.Body.Close()
	s.FirstByteNS, s.Status = now(), resp.StatusCode
	if resp.StatusCode != http.StatusOK {
		s.Outcome = metric.HTTPError
		s.Err = fmt.Sprintf("status %d: is return_perf_metrics set, and perf_metrics_max_requests?", resp.StatusCode)
		return
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	s.BodyBytes, s.Duration = int64(len(body)), time.Duration(now()-s.SentNS)
	whole := bytes.TrimSpace(body)
	if err == nil && len(body) <= maxBody && json.Valid(whole) && bytes.HasPrefix(whole, []byte("[")) {
		before := t.reader.Counts()
		err = t.reader.Read(ctx, bytes.NewReader(whole))
		after := t.reader.Counts()
		t.most = max(t.most, int(after.Records+after.Bad-before.Records-before.Bad))
		if err == nil {
			return
		}
	}
	lost := max(t.most, bytes.Count(body, []byte(`"request_id"`)))
	s.Outcome, s.Err = metric.Partial, fmt.Sprintf("the answer did not come whole: up to %d records lost, or more", lost)
	s.Warnings = append(s.Warnings, metric.Warning{Code: "server_requests_lost", Text: s.Err})
}

// Close implements scrape.Source.
func (t *target) Close() error {
	t.client.CloseIdleConnections()
	return nil
}
