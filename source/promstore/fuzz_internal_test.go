package promstore

// The decoders are fuzzed from within: through a server each input would cost a
// request, and the stream of samples is no part of the API.

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

// strict refuses samples before a series.
type strict struct {
	t     *testing.T
	any   bool
	count int
}

func (s *strict) series(string, []metric.Label) error { s.any = true; return nil }
func (s *strict) sample(int64, float64) error {
	if !s.any {
		s.t.Error("a sample without a series")
	}
	s.count++
	return nil
}
func (s *strict) native(int64) { s.count++ }

func FuzzQueryAnswer(f *testing.F) {
	for _, s := range []string{
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a","b":"c"},` +
			`"values":[[1700000000.123,"1.5"],[1700000001,"NaN"]]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"+Inf"]],"metric":{}}]},"warnings":["x"]}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1,{"count":"1",` +
			`"buckets":[[0,"1","2","3"]]}]]}]}}`,
		`{"status":"error","error":"x"}`, `{"data":{"result":null}}`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzbound.Check(t)()
		to := &strict{t: t}
		if err := decodeMatrix(bytes.NewReader(text), to); err == nil && !bytes.Contains(text, []byte("success")) &&
			!bytes.Contains(text, []byte(`\u`)) {
			t.Error("an answer without success was accepted")
		}
		_ = decodeMetadata(bytes.NewReader(text), func(string, timeline.Meta) {})
		_ = (&client{}).errorText(text)
	})
}

func FuzzRemoteRead(f *testing.F) {
	c := chunkenc.NewXORChunk()
	app, err := c.Appender()
	if err != nil {
		f.Fatal(err)
	}
	for i := range int64(30) {
		app.Append(0, i*1000, float64(i*i))
	}
	answer := &prompb.ChunkedReadResponse{ChunkedSeries: []*prompb.ChunkedSeries{{
		Labels: []prompb.Label{{Name: "__name__", Value: "a"}},
		Chunks: []prompb.Chunk{{MaxTimeMs: 30_000, Type: prompb.Chunk_XOR, Data: c.Bytes()},
			{Type: prompb.Chunk_HISTOGRAM, Data: []byte{0, 1, 0, 0}}}}}}
	data, err := answer.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, true)
	one := &prompb.TimeSeries{Samples: []prompb.Sample{{Value: 1, Timestamp: 2}}}
	plain, err := (&prompb.ReadResponse{Results: []*prompb.QueryResult{{Timeseries: []*prompb.TimeSeries{one}}}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain, false)
	for _, b := range declaring {
		f.Add(b, false)
		f.Add(b, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, stream bool) {
		defer fuzzbound.Check(t)()
		to := &strict{t: t}
		if !stream {
			noPanic(t, decodeSamples(bytes.NewReader(snappy.Encode(nil, data)), to))
			noPanic(t, decodeSamples(bytes.NewReader(data), to))
			return
		}
		// With a right length and checksum, so that the message is reached, and as
		// it is.
		framed := binary.AppendUvarint(nil, uint64(len(data)))
		framed = binary.BigEndian.AppendUint32(framed, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
		noPanic(t, decodeStream(bytes.NewReader(append(framed, data...)), to))
		noPanic(t, decodeStream(bytes.NewReader(data), to))
		if limit := 16 * len(data); to.count > limit+10 { // a sample needs at least a bit, and comes twice
			t.Errorf("%d bytes gave %d samples", len(data), to.count)
		}
	})
}

// noPanic fails for an error that was made of a panic.
func noPanic(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), "panicked") {
		t.Error(err)
	}
}

// broken panics at the first sample, as a reader of chunks may.
type broken struct{ strict }

func (*broken) sample(int64, float64) error { panic("injected") }

// TestPanickedChunk: a panic while a chunk is read is an error with its text.
func TestPanickedChunk(t *testing.T) {
	c := chunkenc.NewXORChunk()
	app, err := c.Appender()
	if err != nil {
		t.Fatal(err)
	}
	app.Append(0, 1, 2)
	err = decodeChunk(&prompb.Chunk{Type: prompb.Chunk_XOR, Data: c.Bytes()}, &broken{})
	if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), "panicked: injected") {
		t.Errorf("got %v, want the panic as an error", err)
	}
}

// TestFrames: damage is an error, and a declared length is not believed.
func TestFrames(t *testing.T) {
	check := func(data []byte, ok bool) {
		t.Helper()
		if err := decodeStream(bytes.NewReader(data), &strict{t: t}); (err == nil) != ok {
			t.Errorf("%x: %v, want ok %v", data, err, ok)
		}
	}
	check(nil, true)
	check([]byte{5, 0, 0, 0, 0, 1, 2}, false)                                           // cut
	check([]byte{2, 0, 0, 0, 0, 1, 2}, false)                                           // checksum
	check([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0}, false) // 2^64-1 bytes
	check([]byte{0x80}, false)
	if err := decodeSamples(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}), &strict{t: t}); err == nil {
		t.Error("a block that declares 4 GiB was accepted")
	}
}

// declaring are answers of a few bytes that declare gigabytes, or just below the
// limits: blocks of snappy, frames, and messages inside (CVE-2026-42154).
var declaring = [][]byte{
	{0xff, 0xff, 0xff, 0xff, 0x0f, 0},
	{0x80, 0x80, 0x80, 0x20, 0},             // 64 MiB
	{0xff, 0xff, 0xff, 0x1f, 0x01, 0, 0, 0}, // 64 MiB - 1
	{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0},
	{0x80, 0x80, 0x80, 0x08, 0, 0, 0, 0, 1}, // a frame of 16 MiB
	{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07},    // a result of 2 GiB
	{0x0a, 0x06, 0x0a, 0xff, 0xff, 0xff, 0xff, 0x07},
	{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
}

// TestDeclared: none of them costs memory.
func TestDeclared(t *testing.T) {
	for _, b := range declaring {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = decodeSamples(bytes.NewReader(snappy.Encode(nil, b)), &strict{t: t}) // one is an unknown field, which is no error
		raw := decodeSamples(bytes.NewReader(b), &strict{t: t})
		stream := decodeStream(bytes.NewReader(b), &strict{t: t})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
			t.Errorf("%x: %d bytes allocated", b, n)
		}
		if raw == nil || stream == nil {
			t.Errorf("%x: accepted: %v, %v", b, raw, stream)
		}
	}
}
