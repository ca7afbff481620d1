package promstore_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// fakeStore is a store with some series, that behaves as the test wants.
type fakeStore struct {
	t        testing.TB
	series   []fakeSeries
	limit    int    // samples of one answer; 0 is no limit
	readKind string // "stream", "samples", "" for not offered
	seen     http.Header
	requests int
}

type fakeSeries struct {
	name   string
	labels string // a="b",c="d" in order
	atMS   []int64
	values []float64
}

func (s *fakeSeries) prompb() []prompb.Label {
	out := []prompb.Label{{Name: "__name__", Value: s.name}}
	for _, m := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(s.labels, -1) {
		out = append(out, prompb.Label{Name: m[1], Value: m[2]})
	}
	return out
}

func (f *fakeStore) start() string {
	srv := httptest.NewServer(f)
	f.t.Cleanup(srv.Close)
	return srv.URL
}

const fakeMetadata = `{"status":"success","data":{"lat":[{"type":"histogram","help":"Latency.","unit":""}],
"reqs_total":[{"type":"unknown","help":"","unit":""},{"type":"counter","help":"Requests.","unit":""}]}}`

func (f *fakeStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.seen = r.Header.Clone()
	switch r.URL.Path {
	case "/api/v1/metadata":
		fmt.Fprint(w, fakeMetadata)
	case "/api/v1/query":
		f.requests++
		f.query(w, r)
	case "/api/v1/read":
		if f.readKind == "" {
			http.NotFound(w, r)
			return
		}
		f.requests++
		f.read(w, r)
	default:
		http.NotFound(w, r)
	}
}

// slice returns the samples of a series in [from, to].
func (s *fakeSeries) slice(from, to int64) (at []int64, v []float64) {
	for i, ms := range s.atMS {
		if ms >= from && ms <= to {
			at, v = append(at, ms), append(v, s.values[i])
		}
	}
	return at, v
}

var rangeQuery = regexp.MustCompile(`^(.*)\[(\d+)ms\]$`)

// query answers like Prometheus 2: the range is closed at both ends, staleness
// markers are left out.
func (f *fakeStore) query(w http.ResponseWriter, r *http.Request) {
	m := rangeQuery.FindStringSubmatch(r.FormValue("query"))
	at, err := strconv.ParseFloat(r.FormValue("time"), 64)
	if m == nil || err != nil {
		http.Error(w, `{"status":"error","errorType":"bad_data","error":"no range query"}`, http.StatusBadRequest)
		return
	}
	width, _ := strconv.ParseInt(m[2], 10, 64)
	to := int64(at*1000 + 0.5)
	var b strings.Builder
	n := 0
	for i := range f.series {
		s := &f.series[i]
		times, values := s.slice(to-width, to)
		if len(times) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"metric":{"__name__":%q`, s.name)
		for _, l := range s.prompb()[1:] {
			fmt.Fprintf(&b, `,%q:%q`, l.Name, l.Value)
		}
		b.WriteString(`},"values":[`)
		for k, ms := range times {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `[%s,"%v"]`, strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64), values[k])
			n++
		}
		b.WriteString("]}")
	}
	if f.limit > 0 && n > f.limit {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"query processing would load too many samples `+
			`into memory in query execution"}`)
		return
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, b.String())
}

func (f *fakeStore) read(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	plain, err := snappy.Decode(nil, body)
	if err != nil {
		f.t.Error(err)
	}
	var req prompb.ReadRequest
	if err := req.Unmarshal(plain); err != nil || len(req.Queries) != 1 {
		f.t.Errorf("read request: %v, %d queries", err, len(req.Queries))
		return
	}
	q := req.Queries[0]
	if f.readKind == "samples" {
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(f.block(q.StartTimestampMs, q.EndTimestampMs))
		return
	}
	w.Header().Set("Content-Type", "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse")
	_, _ = w.Write(f.stream())
}

func (f *fakeStore) block(from, to int64) []byte {
	result := &prompb.QueryResult{}
	for i := range f.series {
		times, values := f.series[i].slice(from, to)
		ts := &prompb.TimeSeries{Labels: f.series[i].prompb()}
		for k := range times {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: times[k], Value: values[k]})
		}
		result.Timeseries = append(result.Timeseries, ts)
	}
	plain, err := (&prompb.ReadResponse{Results: []*prompb.QueryResult{result}}).Marshal()
	if err != nil {
		f.t.Error(err)
	}
	return snappy.Encode(nil, plain)
}

// stream sends each series in a frame, in chunks of 10 samples and whole,
// whatever range was asked for.
func (f *fakeStore) stream() []byte {
	var out []byte
	for i := range f.series {
		s := &f.series[i]
		cs := &prompb.ChunkedSeries{Labels: s.prompb()}
		for from := 0; from < len(s.atMS); from += 10 {
			c := chunkenc.NewXORChunk()
			app, err := c.Appender()
			if err != nil {
				f.t.Fatal(err)
			}
			to := min(from+10, len(s.atMS))
			for k := from; k < to; k++ {
				app.Append(0, s.atMS[k], s.values[k])
			}
			cs.Chunks = append(cs.Chunks, prompb.Chunk{MinTimeMs: s.atMS[from], MaxTimeMs: s.atMS[to-1], Type: prompb.Chunk_XOR,
				Data: c.Bytes()})
		}
		out = append(out, frame(f.t, &prompb.ChunkedReadResponse{ChunkedSeries: []*prompb.ChunkedSeries{cs}})...)
	}
	return out
}

func frame(t testing.TB, m *prompb.ChunkedReadResponse) []byte {
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	out := binary.AppendUvarint(nil, uint64(len(data)))
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, data...)
}
