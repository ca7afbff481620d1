package events

import (
	"encoding/json"
	"errors"
	"fmt"
)

// guideRequest is a request of guidellm's report, of today's form (info.timings) or of that before version 0.4
// (start_time and so on). Times are Unix seconds.
type guideRequest struct {
	ID     string   `json:"request_id"`
	Input  *int     `json:"prompt_tokens"`
	Output *int     `json:"output_tokens"`
	Error  *string  `json:"error"`
	Start  *float64 `json:"start_time"`
	First  *float64 `json:"first_token_time"`
	Last   *float64 `json:"last_token_time"`
	End    *float64 `json:"end_time"`
	Info   *struct {
		Error        *string `json:"error"`
		Conversation *string `json:"conversation_id"`
		Turn         int     `json:"turn_index"`
		Timings      struct {
			Resolve *float64 `json:"resolve_start"`
			Start   *float64 `json:"request_start"`
			First   *float64 `json:"first_token_iteration"`
			Last    *float64 `json:"last_token_iteration"`
			End     *float64 `json:"request_end"`
		} `json:"timings"`
	} `json:"info"`
}

// readGuideLLM reads benchmarks[].requests.{successful,errored,incomplete}[]. Each benchmark is a phase. An incomplete
// request was cut off when its benchmark ended: it stays in flight.
func (f *File) readGuideLLM(dec *json.Decoder) error {
	return eachField(dec, func(name string) error {
		if name != "benchmarks" {
			return skipValue(dec)
		}
		n := 0
		return eachEntry(dec, f.o.MaxRequests, func() error {
			phase := fmt.Sprintf("benchmark-%d", n)
			n++
			if err := open(dec); err != nil {
				return err
			}
			return eachField(dec, func(name string) error {
				if name != "requests" {
					return skipValue(dec)
				}
				return f.guideRequests(dec, phase)
			})
		})
	})
}

// guideRequests reads the lists of requests of one benchmark.
func (f *File) guideRequests(dec *json.Decoder, phase string) error {
	if err := open(dec); err != nil {
		return err
	}
	return eachField(dec, func(status string) error {
		if status != "successful" && status != "errored" && status != "incomplete" {
			return skipValue(dec) // total repeats them all
		}
		return eachEntry(dec, f.o.MaxRequests, func() error {
			var g guideRequest
			if err := dec.Decode(&g); err != nil {
				var wrong *json.UnmarshalTypeError // the request was read over; anything else ends the document
				if !errors.As(err, &wrong) {
					return err
				}
				f.bad("%s, %s request: %v", phase, status, err)
				return nil
			}
			q, ok := g.request(status, phase, f.Requests)
			if !ok {
				f.bad("%s, %s request %q: no time of start", phase, status, g.ID)
				return nil
			}
			if !f.sendRequest(&q) {
				return errStopped
			}
			return nil
		})
	})
}

// errStopped ends reading when nobody wants more.
var errStopped = errors.New("stopped")

// open reads the beginning of an object.
func open(dec *json.Decoder) error {
	t, err := dec.Token()
	if err == nil && t != json.Delim('{') {
		err = fmt.Errorf("want an object, got %v", t)
	}
	return err
}

// eachField calls one for every field of an object whose beginning was read; one must read its value.
func eachField(dec *json.Decoder, one func(name string) error) error {
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // keys are strings
		if err := one(name); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func (g *guideRequest) request(status, phase string, n int64) (q Request, ok bool) {
	q = Request{ID: idOf(g.ID, fmt.Sprintf("guidellm-%06d", n)), Phase: phase, Input: -1, Output: -1, AfterFirst: -1}
	start, first, last, end, errText := g.Start, g.First, g.Last, g.End, g.Error
	if i := g.Info; i != nil {
		start, first, last, end, errText = i.Timings.Start, i.Timings.First, i.Timings.Last, i.Timings.End, i.Error
		if start == nil {
			start = i.Timings.Resolve
		}
		if i.Conversation != nil {
			q.Conversation, q.Turn = cut(*i.Conversation), i.Turn
		}
	}
	ns := func(s *float64) int64 {
		if s == nil {
			return 0
		}
		v, _ := secondsNS(*s) // what no clock says did not happen
		return v
	}
	if q.IssuedNS = ns(start); q.IssuedNS == 0 {
		return q, false
	}
	q.FirstNS, q.LastNS = ns(first), ns(last)
	if status != "incomplete" {
		q.CompleteNS = ns(end)
	}
	if g.Input != nil && *g.Input >= 0 {
		q.Input = *g.Input
	}
	if g.Output != nil && *g.Output >= 0 {
		q.Output, q.Source = *g.Output, TokensLoad
	}
	if status == "errored" {
		q.Status = Failed
		if errText != nil {
			q.Error = lastLine(*errText)
		}
	}
	return q, true
}
