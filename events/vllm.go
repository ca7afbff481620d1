package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// vllmResult is what the detailed result of vllm bench serve says of its requests, in lists with an entry for each.
// Times are seconds of a process' own clock.
type vllmResult struct {
	starts, ttfts []float64
	decode        []float64 // sum of the inter-token latencies
	gaps          []int     // their number
	inputs, outs  []int
	errs          []string
	model         string
}

// readVLLM reads the result of vllm bench serve. A request ends at its start plus TTFT plus its inter-token latencies,
// which is how the tool itself has it; a failed one has no end.
func (f *File) readVLLM(dec *json.Decoder) error {
	var v vllmResult
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		if err := v.field(dec, fmt.Sprint(t), f.o.MaxRequests); err != nil {
			return fmt.Errorf("field %v: %w", t, err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	if dec.More() {
		f.bad("a second result follows in the file (--append-result): only the first is read")
	}
	switch n := len(v.ttfts); {
	case n == 0:
		return errors.New("it has no details of requests: run vllm bench serve with --save-result --save-detailed")
	case len(v.starts) == 0:
		return errors.New("it has no start_times: this version of vllm bench serve does not say when requests were sent")
	case len(v.starts) != n || len(v.decode) != n || len(v.outs) != n:
		return fmt.Errorf("its lists differ in length: %d ttfts, %d start_times, %d itls, %d output_lens", n, len(v.starts),
			len(v.decode), len(v.outs))
	}
	for i := range v.ttfts {
		if q, ok := v.request(i); !ok {
			f.bad("request %d: impossible times", i)
		} else if !f.sendRequest(&q) {
			return nil
		}
	}
	return nil
}

func (v *vllmResult) field(dec *json.Decoder, name string, limit int) (err error) {
	switch name {
	case "start_times":
		v.starts, err = list[float64](dec, limit)
	case "ttfts":
		v.ttfts, err = list[float64](dec, limit)
	case "input_lens":
		v.inputs, err = list[int](dec, limit)
	case "output_lens":
		v.outs, err = list[int](dec, limit)
	case "errors":
		err = eachEntry(dec, limit, func() error {
			var s *string
			if err := dec.Decode(&s); err != nil {
				return err
			}
			if s == nil {
				s = new(string)
			}
			v.errs = append(v.errs, lastLine(*s))
			return nil
		})
	case "itls":
		err = eachEntry(dec, limit, func() error {
			var one []float64
			if err := dec.Decode(&one); err != nil {
				return err
			}
			sum := 0.0
			for _, x := range one {
				sum += x
			}
			v.decode, v.gaps = append(v.decode, sum), append(v.gaps, len(one))
			return nil
		})
	case "model_id":
		err = dec.Decode(&v.model)
	default:
		err = skipValue(dec)
	}
	return err
}

// lastLine is the end of a traceback, which names the error.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return cut(s[strings.LastIndexByte(s, '\n')+1:])
}

// eachEntry calls one for every entry of a list, which it must read.
func eachEntry(dec *json.Decoder, limit int, one func() error) error {
	t, err := dec.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return errors.New("not a list")
	}
	for n := 0; dec.More(); n++ {
		if n == limit {
			return fmt.Errorf("more than %d requests (--max-requests)", limit)
		}
		if err := one(); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

func list[T any](dec *json.Decoder, limit int) (out []T, err error) {
	err = eachEntry(dec, limit, func() error {
		var v T
		if err := dec.Decode(&v); err != nil {
			return err
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

// secondsNS converts a time of a foreign clock. ok is false for what no clock says.
func secondsNS(s float64) (ns int64, ok bool) {
	if !(s >= 0 && s < 9e9) {
		return 0, false
	}
	return int64(math.Round(s * 1e9)), true
}

func (v *vllmResult) request(i int) (q Request, ok bool) {
	q = Request{ID: fmt.Sprintf("vllm-%06d", i), Input: -1, Output: -1, AfterFirst: -1, Model: cut(v.model)}
	if i < len(v.inputs) {
		q.Input = v.inputs[i]
	}
	var ok1, ok2, ok3 bool
	q.IssuedNS, ok1 = secondsNS(v.starts[i])
	first, ok2 := secondsNS(v.starts[i] + v.ttfts[i])
	end, ok3 := secondsNS(v.starts[i] + v.ttfts[i] + v.decode[i])
	if !ok1 || !ok2 || !ok3 || end < first || v.ttfts[i] < 0 {
		return q, false
	}
	if i < len(v.errs) && v.errs[i] != "" {
		q.Status, q.Error = Failed, v.errs[i]
		return q, true
	}
	q.FirstNS, q.LastNS, q.CompleteNS = first, end, end
	q.Output, q.Source, q.chunks = v.outs[i], TokensLoad, v.gaps[i]+1
	return q, true
}
