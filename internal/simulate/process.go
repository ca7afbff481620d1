package simulate

import (
	"math"
	"strconv"
	"time"
)

// process are the families that prometheus_client exposes of its own process,
// as functions of the work done, so that they cost nothing between scrapes.
type process struct{ *panel }

func newProcess(w *world) *process {
	p := &process{w.table("process", variant{}).panel("")}
	p.set("python_info", 1, "CPython", "3", "12", "11", "3.12.11")
	p.set("process_max_fds", 65535)
	// The kernel counts in ticks of 10 ms.
	p.set("process_start_time_seconds", float64(w.origin.UnixMilli()/10)/100)
	return p
}

// refresh shows a process that has done that much work: engine time, requests that ended and are open.
func (p *process) refresh(work time.Duration, ended uint64, open int) {
	n, now := float64(ended), seconds(p.t.w.now)
	first := math.Floor(340 + n*3.1 + now*2)
	for i, c := range []float64{first, math.Floor(first / 11), math.Floor(15 + first/1100)} {
		p.set("python_gc_collections", c, strconv.Itoa(i))
		p.set("python_gc_objects_collected", c*5+n*float64(2-i), strconv.Itoa(i))
	}
	p.set("process_virtual_memory_bytes", 74927947776)
	p.set("process_resident_memory_bytes", 2523058176+4096*math.Floor(n/8+now/30))
	busy := 24.31 + 0.012*now + 0.11*seconds(work) + 0.0021*n
	p.set("process_cpu_seconds", math.Round(busy*100)/100)
	p.set("process_open_fds", float64(41+open))
}

// httpFamilies are those of the HTTP instrumentator in front of the engines.
type httpFamilies struct{ *panel }

func newHTTPFamilies(w *world) *httpFamilies {
	return &httpFamilies{w.table("http", variant{}).panel("")}
}

// handle records one request that ends now. Its series appear with it.
func (h *httpFamilies) handle(handler, method, status string, sent, received int, took time.Duration) {
	h.record("http_requests", 1, handler, method, status)
	h.record("http_request_size_bytes", float64(received), handler)
	h.record("http_response_size_bytes", float64(sent), handler)
	h.record("http_request_duration_highr_seconds", seconds(took))
	h.record("http_request_duration_seconds", seconds(took), handler, method)
}
