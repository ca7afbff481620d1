package promstore

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/scrapestat/scrapestat/metric"
)

// remoteRead asks for the raw samples in (fromMS, toMS] of one selector.
func (c *client) remoteRead(ctx context.Context, matchers []*prompb.LabelMatcher, fromMS, toMS int64,
	to samples) error {
	request := &prompb.ReadRequest{
		Queries: []*prompb.Query{{StartTimestampMs: fromMS + 1, EndTimestampMs: toMS, Matchers: matchers}},
		AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{
			prompb.ReadRequest_STREAMED_XOR_CHUNKS, prompb.ReadRequest_SAMPLES},
	}
	plain, err := request.Marshal()
	if err != nil {
		return fmt.Errorf("make remote read request: %w", err)
	}
	resp, err := c.do(ctx, "/api/v1/read", "application/x-protobuf", string(snappy.Encode(nil, plain)), http.Header{
		"Content-Encoding":                 {"snappy"},
		"Accept-Encoding":                  {"snappy"},
		"X-Prometheus-Remote-Read-Version": {"0.1.0"},
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	window := &within{samples: to, fromMS: fromMS, toMS: toMS}
	switch kind := resp.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "application/x-streamed-protobuf"):
		err = decodeStream(&bounded{resp.Body, maxResponse}, window)
	case strings.HasPrefix(kind, "application/x-protobuf"):
		err = decodeSamples(&bounded{resp.Body, maxResponse}, window)
	default:
		err = fmt.Errorf("content type %q: %w", metric.Clean(kind, 60), errUnsupported)
	}
	if err != nil {
		return fmt.Errorf("read answer of %s/api/v1/read: %w", c.name(), err)
	}
	return nil
}

// within leaves out samples outside the range asked for: chunks are sent whole.
type within struct {
	samples
	fromMS, toMS int64
}

func (w *within) sample(atMS int64, v float64) error {
	if atMS <= w.fromMS || atMS > w.toMS {
		return nil
	}
	return w.samples.sample(atMS, v)
}

func (w *within) native(atMS int64) {
	if atMS > w.fromMS && atMS <= w.toMS {
		w.samples.native(atMS)
	}
}

// decodeSamples reads the answer that is one snappy block.
func decodeSamples(r io.Reader, to samples) error {
	block, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return err
	}
	if n > maxSnappyRatio*len(block) {
		return fmt.Errorf("a block of %d bytes declares %d", len(block), n)
	}
	if n > maxBlock {
		return fmt.Errorf("the answer has %d bytes: %w", n, errTooMuch)
	}
	plain, err := snappy.Decode(nil, block)
	if err != nil {
		return err
	}
	var answer prompb.ReadResponse
	if err := answer.Unmarshal(plain); err != nil {
		return err
	}
	for _, result := range answer.Results {
		for _, s := range result.GetTimeseries() {
			if err := tellSeries(s.Labels, to); err != nil {
				return err
			}
			for _, x := range s.Samples {
				if err := to.sample(x.Timestamp, x.Value); err != nil {
					return err
				}
			}
			for i := range s.Histograms {
				to.native(s.Histograms[i].Timestamp)
			}
		}
	}
	return nil
}

// tellSeries splits the name off the labels.
func tellSeries(labels []prompb.Label, to samples) error {
	name := ""
	pairs := make([]metric.Label, 0, len(labels))
	for _, l := range labels {
		if l.Name == "__name__" {
			name = l.Value
			continue
		}
		pairs = append(pairs, metric.Label{Name: l.Name, Value: l.Value})
	}
	return to.series(name, pairs)
}

// decodeStream reads the answer that is a stream of frames: length, checksum (CRC32-C, big endian), message.
func decodeStream(r io.Reader, to samples) error {
	table := crc32.MakeTable(crc32.Castagnoli)
	in := bufio.NewReader(r)
	var frame []byte
	for {
		n, err := binary.ReadUvarint(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n > maxFrame {
			return fmt.Errorf("a frame has %d bytes, the limit is %d: %w", n, maxFrame, errTooMuch)
		}
		var sum [4]byte
		if _, err := io.ReadFull(in, sum[:]); err != nil {
			return noEOF(err)
		}
		if frame, err = readFrame(in, frame, int(n)); err != nil {
			return noEOF(err)
		}
		if crc32.Checksum(frame, table) != binary.BigEndian.Uint32(sum[:]) {
			return errors.New("a frame has a wrong checksum")
		}
		if err := decodeFrame(frame, to); err != nil {
			return err
		}
	}
}

// readFrame reads n bytes into buf, growing it only as they arrive.
func readFrame(in io.Reader, buf []byte, n int) ([]byte, error) {
	buf = buf[:0]
	for len(buf) < n {
		step := min(n-len(buf), 256<<10)
		at := len(buf)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(in, buf[at:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func decodeFrame(frame []byte, to samples) error {
	var answer prompb.ChunkedReadResponse
	if err := answer.Unmarshal(frame); err != nil {
		return err
	}
	for _, s := range answer.ChunkedSeries {
		if err := tellSeries(s.Labels, to); err != nil {
			return err
		}
		for i := range s.Chunks {
			if err := decodeChunk(&s.Chunks[i], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodeChunk gives the samples of a chunk. A damaged one is an error, which its
// reader may tell by a panic; the error then has the text of it.
func decodeChunk(c *prompb.Chunk, to samples) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a chunk is damaged: its reader panicked: %v", p)
		}
	}()
	if len(c.Data) < 2 || len(c.Data) > maxChunk {
		return fmt.Errorf("a chunk has %d bytes", len(c.Data))
	}
	var encoding chunkenc.Encoding
	switch c.Type {
	case prompb.Chunk_XOR:
		encoding = chunkenc.EncXOR
	case prompb.Chunk_HISTOGRAM:
		encoding = chunkenc.EncHistogram
	case prompb.Chunk_FLOAT_HISTOGRAM:
		encoding = chunkenc.EncFloatHistogram
	default:
		return fmt.Errorf("a chunk has the unknown encoding %d", int32(c.Type))
	}
	chunk, err := chunkenc.FromData(encoding, c.Data)
	if err != nil {
		return err
	}
	it := chunk.Iterator(nil)
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		if kind != chunkenc.ValFloat {
			to.native(it.AtT())
			continue
		}
		if err := to.sample(it.At()); err != nil {
			return err
		}
	}
	return it.Err()
}
