package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/scrapestat/scrapestat/metric"
)

// What an answer of remote read may have.
const (
	maxReadSamples = 50_000_000
	maxReadBytes   = 256 << 20
)

// read answers remote read with samples.
func (s *Server) read(w http.ResponseWriter, r *http.Request) {
	req, err := readRequest(r)
	if err != nil {
		refuse(w, &UsageError{err})
		return
	}
	resp := &prompb.ReadResponse{}
	samples := 0
	for _, q := range req.Queries {
		m, err := matchersOf(q.Matchers)
		if err == nil {
			err = s.reading(r.Context(), [][]*labels.Matcher{m}, func() error {
				result := &prompb.QueryResult{}
				resp.Results = append(resp.Results, result)
				for _, x := range s.store.match(m) {
					if err := r.Context().Err(); err != nil {
						return err
					}
					samples += x.readInto(result, q)
					if samples > maxReadSamples || samples*16 > maxReadBytes {
						return usage("the answer has more than %d samples: ask for a shorter time", maxReadBytes/16)
					}
				}
				return nil
			})
		}
		if err != nil {
			refuse(w, err)
			return
		}
	}
	body, err := resp.Marshal()
	if err != nil || len(body) > maxReadBytes {
		refuse(w, usage("the answer has more than %d bytes: ask for a shorter time", maxReadBytes))
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Header().Set("Content-Encoding", "snappy")
	_, _ = w.Write(snappy.Encode(nil, body)) // the client may have gone
}

// readInto adds the floats of a series within the times of q to a result and returns their number.
func (x *series) readInto(to *prompb.QueryResult, q *prompb.Query) int {
	out := &prompb.TimeSeries{}
	it := x.Iterator(nil)
	for kind := it.Seek(q.StartTimestampMs); kind != chunkenc.ValNone; kind = it.Next() {
		if it.AtT() > q.EndTimestampMs {
			break
		}
		if kind == chunkenc.ValFloat {
			t, v := it.At()
			out.Samples = append(out.Samples, prompb.Sample{Timestamp: t, Value: v})
		}
	}
	if len(out.Samples) > 0 {
		x.labels.Range(func(l labels.Label) {
			out.Labels = append(out.Labels, prompb.Label{Name: l.Name, Value: l.Value})
		})
		to.Timeseries = append(to.Timeseries, out)
	}
	return len(out.Samples)
}

// readRequest decodes a request of at most as much as a handler lets through.
func readRequest(r *http.Request) (*prompb.ReadRequest, error) {
	packed, err := io.ReadAll(io.LimitReader(r.Body, 1<<20+1))
	if err != nil {
		return nil, err
	}
	if n, err := snappy.DecodedLen(packed); err == nil && n > 4<<20 || len(packed) > 1<<20 {
		return nil, errors.New("the body has more than 1 MiB")
	}
	body, err := snappy.Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("the body is no snappy: %w", err)
	}
	req := &prompb.ReadRequest{}
	if err := req.Unmarshal(body); err != nil {
		return nil, err
	}
	if len(req.AcceptedResponseTypes) > 0 && !slices.Contains(req.AcceptedResponseTypes, prompb.ReadRequest_SAMPLES) {
		return nil, errors.New("only answers of the type SAMPLES are given")
	}
	if len(req.Queries) > maxMatchers {
		return nil, fmt.Errorf("%d queries, at most %d are read", len(req.Queries), maxMatchers)
	}
	return req, nil
}

func matchersOf(list []*prompb.LabelMatcher) (out []*labels.Matcher, err error) {
	if len(list) > maxMatchers {
		return nil, usage("%d matchers, at most %d are read", len(list), maxMatchers)
	}
	types := map[prompb.LabelMatcher_Type]labels.MatchType{prompb.LabelMatcher_EQ: labels.MatchEqual,
		prompb.LabelMatcher_NEQ: labels.MatchNotEqual, prompb.LabelMatcher_RE: labels.MatchRegexp,
		prompb.LabelMatcher_NRE: labels.MatchNotRegexp}
	for _, m := range list {
		kind, ok := types[m.Type]
		if !ok {
			return nil, usage("a matcher of type %d", m.Type)
		}
		made, err := labels.NewMatcher(kind, m.Name, m.Value)
		if err != nil {
			return nil, &UsageError{err}
		}
		out = append(out, made)
	}
	return out, nil
}

// federate writes the last samples of the series that match[] chooses, as text.
func (s *Server) federate(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, &UsageError{err})
		return
	}
	m, err := s.selectors(r.Form["match[]"])
	var text []byte
	if err == nil {
		err = s.reading(r.Context(), m, func() error {
			if m == nil {
				return nil
			}
			for _, x := range s.store.matchAny(m, math.MinInt64, math.MaxInt64) {
				text = x.appendLast(text, s.o.Align == AlignNow)
			}
			return nil
		})
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text) // the client may have gone
}

// appendLast appends the last sample of a series that has not ended, with its time or without.
func (x *series) appendLast(dst []byte, now bool) []byte {
	it := x.Iterator(nil).(*iterator)
	last := len(it.polls) - 2
	it.at = max(last, -1)
	if last >= 0 {
		it.apply()
	}
	if it.Next() != chunkenc.ValFloat || !it.shown {
		return dst
	}
	set := labels.NewBuilder(x.labels).Del(metric.NameLabel).Labels()
	dst = append(append(dst, x.labels.Get(metric.NameLabel)...), '{')
	first := true
	set.Range(func(l labels.Label) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		value := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(l.Value)
		dst = append(append(append(dst, l.Name...), `="`+value...), '"')
	})
	t, v := it.At()
	dst = strconv.AppendFloat(append(dst, "} "...), v, 'g', -1, 64)
	if !now {
		dst = strconv.AppendInt(append(dst, ' '), t, 10)
	}
	return append(dst, '\n')
}

// exemplars answers with those that were recorded, of the series in a query.
func (s *Server) exemplars(r *http.Request) (answer, error) {
	from, err := parseTime(r, "start", math.MinInt64)
	if err != nil {
		return answer{}, err
	}
	to, err := parseTime(r, "end", math.MaxInt64)
	if err != nil {
		return answer{}, err
	}
	expr, err := s.parser.ParseExpr(r.Form.Get("query"))
	if err != nil {
		return answer{}, &UsageError{err}
	}
	var out []shownExemplars
	err = s.reading(r.Context(), nil, func() error {
		for _, x := range s.store.matchAny(parser.ExtractSelectors(expr), math.MinInt64, math.MaxInt64) {
			list, err := x.exemplars(r.Context(), from, to)
			if err != nil {
				return err
			}
			if len(list) > 0 {
				out = append(out, shownExemplars{x.labels, list})
			}
		}
		return nil
	})
	return answer{data: func(e *encoder) {
		e.each(len(out), func(i int) {
			e.raw(`{"seriesLabels":`)
			e.labels(out[i].of)
			e.raw(`,"exemplars":`)
			e.each(len(out[i].list), func(k int) { e.exemplar(&out[i].list[k]) })
			e.raw("}")
		})
	}}, err
}

// shownExemplars are those of a series. Their AtNS is in milliseconds, as served.
type shownExemplars struct {
	of   labels.Labels
	list []metric.Exemplar
}

func (e *encoder) exemplar(x *metric.Exemplar) {
	e.raw(`{"labels":`)
	e.labels(promLabels(x.Labels))
	e.raw(`,"value":`)
	e.float(x.Value)
	e.raw(`,"timestamp":`)
	e.time(x.AtNS)
	e.raw("}")
}

// exemplars returns those of a series within times.
func (x *series) exemplars(ctx context.Context, fromMS, toMS int64) (out []metric.Exemplar, err error) {
	if x.target == nil || len(x.parts) == 0 {
		return nil, nil
	}
	all, err := x.run.rec.Exemplars(ctx, x.target.index)
	for _, e := range all {
		if e.AtNS == 0 {
			e.AtNS = e.SeenNS
		}
		e.AtNS = e.AtNS/1e6 + x.run.shiftMS
		of := func(p part) bool { return slices.Contains(p.slots, int32(e.Slot)) }
		if e.AtNS >= fromMS && e.AtNS <= toMS && slices.ContainsFunc(x.parts, of) {
			out = append(out, e)
		}
	}
	return out, err
}
