package simulate

import (
	"math"
	"time"
)

// process are the families that prometheus_client exposes of its own process,
// as functions of the work done, so that they cost nothing between scrapes.
type process struct {
	w                                        *world
	objects, uncollectable, collections      [3]*series
	virtual, resident, start, cpu, fds, maxF *series
}

func newProcess(w *world) *process {
	r, p := w.reg, &process{w: w}
	generations := func(name, help string) (s [3]*series) {
		f := r.counter(name, help, "generation")
		f.plain = true
		for i, g := range []string{"0", "1", "2"} {
			s[i] = f.with(0, g)
		}
		return s
	}
	p.objects = generations("python_gc_objects_collected", "Objects collected during gc")
	p.uncollectable = generations("python_gc_objects_uncollectable", "Uncollectable objects found during GC")
	p.collections = generations("python_gc_collections", "Number of times this generation was collected")
	r.gauge("python_info", "Python platform information", "implementation", "major", "minor", "patchlevel", "version").
		with(0, "CPython", "3", "12", "11", "3.12.11").set(1)
	p.virtual = r.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.").with(0)
	p.resident = r.gauge("process_resident_memory_bytes", "Resident memory size in bytes.").with(0)
	p.start = r.gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.").with(0)
	cpu := r.counter("process_cpu_seconds", "Total user and system CPU time spent in seconds.")
	cpu.plain = true
	p.cpu = cpu.with(0)
	p.fds = r.gauge("process_open_fds", "Number of open file descriptors.").with(0)
	p.maxF = r.gauge("process_max_fds", "Maximum number of open file descriptors.").with(0)
	p.maxF.set(65535)
	// The kernel counts in ticks of 10 ms.
	p.start.set(float64(w.origin.UnixMilli()/10) / 100)
	return p
}

// refresh shows a process that has done that much work: engine time, requests
// that ended and are open.
func (p *process) refresh(work time.Duration, ended uint64, open int) {
	n := float64(ended)
	first := math.Floor(340 + n*3.1 + seconds(p.w.now)*2)
	for i, c := range []float64{first, math.Floor(first / 11), math.Floor(15 + first/1100)} {
		p.collections[i].set(c)
		p.objects[i].set(c*5 + n*float64(2-i))
	}
	p.virtual.set(74927947776)
	p.resident.set(2523058176 + 4096*math.Floor(n/8+seconds(p.w.now)/30))
	busy := 24.31 + 0.012*seconds(p.w.now) + 0.11*seconds(work) + 0.0021*n
	p.cpu.set(math.Round(busy*100) / 100)
	p.fds.set(float64(41 + open))
}

// httpFamilies are those of the HTTP instrumentator in front of the engines.
type httpFamilies struct {
	w                                   *world
	requests, requestSize, responseSize *family
	durationAll, duration               *family
	handled                             map[string]*httpSeries
	all                                 *series
}

type httpSeries struct{ requests, requestSize, responseSize, duration *series }

func newHTTPFamilies(w *world) *httpFamilies {
	r := w.reg
	const sizeHelp = " by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. "
	h := &httpFamilies{w: w, handled: map[string]*httpSeries{}}
	h.requests = r.counter("http_requests", "Total number of requests by method, status and handler.", "handler", "method", "status")
	h.requestSize = r.summary("http_request_size_bytes", "Content length of incoming requests"+sizeHelp, "handler")
	h.responseSize = r.summary("http_response_size_bytes", "Content length of outgoing responses"+sizeHelp, "handler")
	h.durationAll = r.histogram("http_request_duration_highr_seconds",
		"Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
		[]float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60})
	h.duration = r.histogram("http_request_duration_seconds",
		"Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ",
		[]float64{0.1, 0.5, 1}, "handler", "method")
	h.all = h.durationAll.with(0)
	return h
}

// handle records one request that ends now. Its series appear with it.
func (h *httpFamilies) handle(handler, method, status string, sent, received int, took time.Duration) {
	key := handler + " " + method + " " + status
	s := h.handled[key]
	if s == nil {
		s = &httpSeries{
			requests:     h.requests.lazy(handler, method, status),
			requestSize:  h.requestSize.lazy(handler),
			responseSize: h.responseSize.lazy(handler),
			duration:     h.duration.lazy(handler, method),
		}
		h.handled[key] = s
	}
	now, r := h.w.now, h.w.reg
	r.record(now, s.requests, 1, 1)
	r.record(now, s.requestSize, float64(received), 1)
	r.record(now, s.responseSize, float64(sent), 1)
	r.record(now, h.all, seconds(took), 1)
	r.record(now, s.duration, seconds(took), 1)
}
