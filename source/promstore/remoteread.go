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
	"google.golang.org/protobuf/encoding/protowire"

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

// decodeSamples reads the answer that is one snappy block. Its declared length is judged before the block is read, and
// its series are read one by one: an empty message of two bytes would become a hundred in memory.
func decodeSamples(r io.Reader, to samples) error {
	in := bufio.NewReader(r)
	head, err := in.Peek(binary.MaxVarintLen64)
	if err != nil && err != io.EOF {
		return err
	}
	n, err := snappy.DecodedLen(head)
	if err != nil {
		return err
	}
	if n > maxBlock {
		return fmt.Errorf("the answer has %d bytes: %w", n, errTooMuch)
	}
	longest := snappy.MaxEncodedLen(n)
	block, err := io.ReadAll(io.LimitReader(in, int64(longest)+1))
	if err != nil {
		return err
	}
	if n > maxSnappyRatio*len(block) || len(block) > longest {
		return fmt.Errorf("a block of %d bytes declares %d", len(block), n)
	}
	plain, err := snappy.Decode(nil, block)
	if err != nil {
		return err
	}
	return eachMessage(plain, 1, func(result []byte) error {
		return eachMessage(result, 1, func(series []byte) error { return decodeTimeSeries(series, to) })
	})
}

// decodeTimeSeries reads a TimeSeries: its labels, samples and native histograms.
func decodeTimeSeries(series []byte, to samples) error {
	if err := decodeSeriesLabels(series, to); err != nil {
		return err
	}
	var x prompb.Sample
	if err := eachMessage(series, 2, func(text []byte) error {
		x.Reset()
		if err := x.Unmarshal(text); err != nil {
			return err
		}
		return to.sample(x.Timestamp, x.Value)
	}); err != nil {
		return err
	}
	return eachMessage(series, 4, func(text []byte) error {
		at := int64(0)
		err := eachField(text, func(num protowire.Number, typ protowire.Type, value []byte) error {
			if n, k := protowire.ConsumeVarint(value); num == 15 && typ == protowire.VarintType && k > 0 {
				at = int64(n)
			}
			return nil
		})
		to.native(at)
		return err
	})
}

// decodeSeriesLabels tells of the labels of a TimeSeries or ChunkedSeries.
func decodeSeriesLabels(series []byte, to samples) error {
	name := ""
	var pairs []metric.Label
	var l prompb.Label
	if err := eachMessage(series, 1, func(text []byte) error {
		l.Reset()
		switch err := l.Unmarshal(text); {
		case err != nil:
			return err
		case l.Name == "__name__":
			name = l.Value
			return nil
		}
		pairs = append(pairs, metric.Label{Name: l.Name, Value: l.Value})
		return checkLabels(len(pairs))
	}); err != nil {
		return err
	}
	return to.series(name, pairs)
}

// eachMessage calls visit for each message in the field num of a message.
func eachMessage(message []byte, num protowire.Number, visit func([]byte) error) error {
	return eachField(message, func(n protowire.Number, typ protowire.Type, value []byte) error {
		if n != num {
			return nil
		}
		if typ != protowire.BytesType {
			return fmt.Errorf("field %d of a message is no message", num)
		}
		text, _ := protowire.ConsumeBytes(value) // eachField has read it
		return visit(text)
	})
}

// eachField calls visit for each field of a message, with its encoded value.
func eachField(message []byte, visit func(protowire.Number, protowire.Type, []byte) error) error {
	for len(message) > 0 {
		num, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(num, typ, message); n < 0 {
			return protowire.ParseError(n)
		}
		if err := visit(num, typ, message[:n]); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
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
	return eachMessage(frame, 1, func(series []byte) error {
		if err := decodeSeriesLabels(series, to); err != nil {
			return err
		}
		return eachMessage(series, 2, func(text []byte) error {
			var c prompb.Chunk
			if err := c.Unmarshal(text); err != nil {
				return err
			}
			return decodeChunk(&c, to)
		})
	})
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
