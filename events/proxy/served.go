package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// The kinds of what servers tell of a request in its answer.
const (
	ServedVLLM     = "vllm-answer"     // metrics of --enable-per-request-metrics
	ServedLlamaCPP = "llamacpp-answer" // timings
	ServedHeaders  = "header-answer"   // headers of times
	ServedTensorRT = "trtllm-answer"   // Server-Timing, as header or event
)

// ServedClock is that of a kind.
func ServedClock(kind string) metric.ServerClock {
	if kind == ServedTensorRT {
		return metric.ServerClock{Clock: metric.ServerMonotonic, Resolution: time.Microsecond}
	}
	return metric.ServerClock{Clock: metric.ServerNone, Resolution: time.Microsecond}
}

// vllmMetrics are durations in ms. What vLLM calls its time to the first token runs from the schedule to it.
type vllmMetrics struct {
	Queue    *float64 `json:"queue_time_ms"`
	Prefill  *float64 `json:"time_to_first_token_ms"`
	Generate *float64 `json:"generation_time_ms"`
}

// llamaTimings are those of llama.cpp, whose prompt is what was cached and what was read.
type llamaTimings struct {
	Cached    *int64   `json:"cache_n"`
	Prompt    *int64   `json:"prompt_n"`
	PromptMS  *float64 `json:"prompt_ms"`
	Predicted *int64   `json:"predicted_n"`
	PredictMS *float64 `json:"predicted_ms"`
}

// serverTimes are those of TensorRT-LLM, as headers or as an event of the stream.
type serverTimes struct {
	Timing   string `json:"Server-Timing"`
	StartEnd string `json:"X-TRTLLM-Start-End-Time"`
}

// served is what the answer tells of the server's side; kind is "" for nothing.
func (x *exchange) served() (kind string, q metric.ServerRequest) {
	q = metric.NewServerRequest()
	s := &x.scan
	q.ID, q.Alt, q.Finish, q.Model = s.id, x.requestID, s.finish, s.model
	if q.ID == "" && q.Alt == "" {
		q.Alt = x.id
	}
	if u := s.usage; u != nil {
		q.Prompt, q.Output = orMissing(u.Prompt), orMissing(u.Completion)
		if u.Details != nil {
			q.Cached = orMissing(u.Details.Cached)
		}
	}
	switch {
	case s.metrics != nil:
		q.Queue, q.Prefill, q.Decode = ms(s.metrics.Queue), ms(s.metrics.Prefill), ms(s.metrics.Generate)
		kind = ServedVLLM
	case s.timings != nil:
		t := s.timings
		q.Prefill, q.Decode = ms(t.PromptMS), ms(t.PredictMS)
		if t.Prompt != nil && t.Cached != nil {
			q.Prompt, q.Cached = *t.Prompt+*t.Cached, *t.Cached
		}
		if t.Predicted != nil {
			q.Output = *t.Predicted
		}
		kind = ServedLlamaCPP
	case s.times.StartEnd != "":
		q.Queue, q.TTFT = timing(s.times.Timing, "server_queue", "dur", 6), timing(s.times.Timing, "server_ttft", "dur", 6)
		q.E2E = timing(s.times.Timing, "server_e2e", "dur", 6)
		q.ArrivalNS = max(int64(timing(s.times.StartEnd, "server-start", "ts", 9)), 0)
		q.FinishNS = max(int64(timing(s.times.StartEnd, "server-end", "ts", 9)), 0)
		q.QueuedNS = q.ArrivalNS
		kind = ServedTensorRT
	case x.inHeaders != [3]string{}:
		for i, to := range []*time.Duration{&q.Front, &q.Queue, &q.E2E} {
			*to = decimal(x.inHeaders[i], 6)
		}
		kind = ServedHeaders
	}
	return kind, q
}

// timeHeaders are those that are read of TGI, whose answers without a stream have them.
var timeHeaders = [3]string{"X-Validation-Time", "X-Queue-Time", "X-Total-Time"}

// timesOf reads what servers tell in headers.
func (x *exchange) timesOf(h http.Header) {
	if h.Get("X-Total-Time") != "" {
		for i, name := range timeHeaders {
			x.inHeaders[i] = short(h.Get(name))
		}
	}
	x.scan.times = serverTimes{short(h.Get("Server-Timing")), short(h.Get("X-TRTLLM-Start-End-Time"))}
}

// short is a text of a header that may be one of ours.
func short(s string) string {
	if len(s) > 512 {
		return ""
	}
	return s
}

func orMissing(n *int) int64 {
	if n == nil {
		return -1
	}
	return int64(*n)
}

// ms is a number of milliseconds, missing where it is null.
func ms(v *float64) time.Duration {
	if v == nil {
		return -1
	}
	if !(*v >= 0 && *v < 1e9) {
		return -2 // which no record may have
	}
	return time.Duration(math.Round(*v * 1e6))
}

// timing is the value of one entry, as `name;key=VALUE, ...` has it, in 10^digits ns.
func timing(text, name, key string, digits int) time.Duration {
	for entry := range strings.SplitSeq(text, ",") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(entry), name+";"+key+"="); ok {
			return decimal(value, digits)
		}
	}
	return -1
}

// decimal reads a number of units of 10^digits ns without rounding what it writes.
func decimal(text string, digits int) time.Duration {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > digits {
		fraction = fraction[:digits]
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return time.Duration(n)
}

// traceOf returns the trace id that a request has, and gives it one where it is to have one.
func (p *Proxy) traceOf(h http.Header) string {
	if parts := strings.Split(short(h.Get("Traceparent")), "-"); len(parts) == 4 && len(parts[1]) == 32 {
		if _, err := hex.DecodeString(parts[1]); err == nil {
			return strings.ToLower(parts[1])
		}
	}
	if !p.o.Traceparent || h.Get("Traceparent") != "" {
		return ""
	}
	id := make([]byte, 24)
	rand.Read(id) // never fails
	trace := hex.EncodeToString(id[:16])
	h.Set("Traceparent", "00-"+trace+"-"+hex.EncodeToString(id[16:])+"-01")
	return trace
}
