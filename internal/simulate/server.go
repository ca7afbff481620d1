package simulate

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// profile is one kind of server. start builds its model in a fresh world.
type profile struct {
	name  string
	model string // default of Options.Model
	flag  string // what Options.FlagsOff leaves out; "" when there is no such flag
	path  string // where the exposition is besides /metrics
	start func(*world) (model, error)
}

// model is a simulated server. It drives itself by the events of its world.
type model interface {
	// refresh sets the gauges, and the counters that are read from elsewhere, to what they are now.
	refresh()
}

func profiles() []profile {
	return []profile{vllmProfile(), omniProfile(), sglangProfile(), trtllmProfile(), dynamoProfile(),
		dynamoWorkerProfile(),
		tritonProfile(), torchserveProfile(), tgiProfile(), llamacppProfile(), dcgmProfile()}
}

// Profiles returns the names that New accepts.
func Profiles() []string {
	var names []string
	for _, p := range profiles() {
		names = append(names, p.name)
	}
	return names
}

// Server is a simulated server and its http.Handler. It is safe for concurrent use.
type Server struct {
	profile profile
	opt     Options
	first   time.Time // of the first process
	buffers sync.Pool // of *[]byte
	zippers sync.Pool // of *gzip.Writer

	mu       sync.Mutex
	restarts uint64
	w        *world
	m        model
	padding  []*series
}

// New returns a server of that profile, started now. It refuses an unknown
// profile and options that no server could have.
func New(name string, o Options) (*Server, error) {
	i := slices.IndexFunc(profiles(), func(p profile) bool { return p.name == name })
	if i < 0 {
		return nil, fmt.Errorf("simulate %q: unknown profile, have %s", name, strings.Join(Profiles(), ", "))
	}
	p := profiles()[i]
	o.Model = cmp.Or(o.Model, p.model)
	if o.FlagsOff && p.flag == "" {
		return nil, fmt.Errorf("simulate %q: FlagsOff: the engine has no flag without which it shows less", name)
	}
	s := &Server{profile: p, opt: o.withDefaults()}
	if err := s.opt.check(); err != nil {
		return nil, fmt.Errorf("simulate %q: %w", name, err)
	}
	s.first = s.opt.Now()
	s.buffers.New = func() any { return new([]byte) }
	s.zippers.New = func() any { return gzip.NewWriter(nil) }
	if err := s.start(s.first); err != nil {
		return nil, fmt.Errorf("simulate %q: %w", name, err)
	}
	return s, nil
}

// start begins a process at now.
func (s *Server) start(now time.Time) (err error) {
	s.w = newWorld(&s.opt, now, now.Sub(s.first), s.restarts)
	if s.m, err = s.profile.start(s.w); err != nil {
		return err
	}
	s.padding = nil
	if s.opt.ExtraSeries > 0 {
		p := s.w.table("padding", variant{}).panel("")
		for i := range s.opt.ExtraSeries {
			p.show("simulate_padding", 0, s.opt.Model, strconv.Itoa(i))
			s.padding = append(s.padding, p.of("simulate_padding", s.opt.Model, strconv.Itoa(i)))
		}
	}
	return nil
}

// advance brings the world to the present. The caller holds the lock.
func (s *Server) advance() {
	s.w.advance(s.opt.Now().Sub(s.w.origin))
}

// refresh sets what is a function of the present. The caller holds the lock.
func (s *Server) refresh() {
	s.m.refresh()
	elapsed := seconds(s.w.now)
	for i, p := range s.padding {
		if i%3 > 0 {
			p.set(math.Floor(elapsed * float64(3+i%61)))
		}
	}
}

// Restart ends the process and starts another in its place: counters begin at zero, requests under way are lost, the
// start and creation times are new. The load goes on as planned. It returns the truth of the process that ended.
func (s *Server) Restart() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	old := s.w
	s.restarts++
	if err := s.start(old.origin.Add(old.now)); err != nil {
		panic("simulate: options that New accepted are refused: " + err.Error())
	}
	if old.arrivals.changed {
		s.w.arrivals.setRate(old.arrivals.rate())
	}
	return old.truth()
}

// SetRate changes the arrival rate to that many requests per second from now
// on, in place of the load planned in the options; a rate below 0 counts as 0.
func (s *Server) SetRate(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.w.arrivals.setRate(max(rate, 0))
}

// Truth returns what has happened in the process up to now. Without
// Options.KeepTruth it holds no requests, steps and series.
func (s *Server) Truth() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	return s.w.truth()
}

// Path returns the path of the exposition.
func (s *Server) Path() string {
	switch {
	case s.profile.path != "":
		return s.profile.path
	case s.opt.Redirect:
		return "/metrics/"
	}
	return "/metrics"
}

// Samples returns the number of samples in the body now.
func (s *Server) Samples() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	return s.w.reg.samples()
}

// Advance lets happen what was due since the server was last used.
func (s *Server) Advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
}

// AppendBody appends the body that a scrape in the classic text format would get now.
func (s *Server) AppendBody(b []byte) []byte { return s.appendBody(b, false) }

func (s *Server) appendBody(b []byte, open bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.refresh()
	if m, ok := s.m.(scraped); ok {
		defer m.scraped()
	}
	if open {
		return s.w.reg.appendOpenMetrics(b)
	}
	return s.w.reg.appendText(b)
}

// ServeHTTP answers /metrics (and Options.ExtraPath), /health, and what else the engine has: vllm answers
// /v1/completions, /v1/chat/completions and /v1/models, see openai.go; anything else is 404. Like the library of the
// engine it writes OpenMetrics when it can and the Accept header names it, and compresses when gzip is accepted.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		w.WriteHeader(http.StatusOK)
		return
	}
	if s.openAI(w, r) {
		return
	}
	a, d := s.route(r.URL)
	switch {
	case a == nil && d == nil:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	case a != nil:
		a.write(w)
		return
	}
	open := d.open && accepts(r.Header.Get("Accept"), "application/openmetrics-text")
	w.Header().Set("Content-Type", d.contentType)
	if open {
		w.Header().Set("Content-Type", contentTypeOpen)
	}
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	*buf = s.appendBody((*buf)[:0], open)
	// A write fails when the client has gone; there is nobody left to tell.
	if accepts(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z := s.zippers.Get().(*gzip.Writer)
		defer s.zippers.Put(z)
		z.Reset(w)
		_, _ = z.Write(*buf)
		_ = z.Close()
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(*buf)))
	_, _ = w.Write(*buf)
}

// accepts reports whether a list of a header names what; weights are ignored, as prometheus_client does.
func accepts(list, what string) bool {
	for item := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(item, ";")
		if strings.TrimSpace(name) == what {
			return true
		}
	}
	return false
}

// Serve listens on the TCP address addr ("127.0.0.1:0" for a free port), calls ready with the address in use, and
// answers until ctx is done; see ServeListener.
func (s *Server) Serve(ctx context.Context, addr string, ready func(net.Addr)) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	if ready != nil {
		ready(ln.Addr())
	}
	return s.ServeListener(ctx, ln)
}

// ServeListener answers on ln, which it closes, until ctx is done. It returns nil then, after everything it started has
// ended; requests under way get one second.
func (s *Server) ServeListener(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { ended <- srv.Serve(ln) })
	defer wg.Wait()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		if err := srv.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("close server on %s: %w", ln.Addr(), err)
		}
	}
	return nil
}

// router is a model whose server has answers of its own.
type router interface {
	// route returns the answer to a path, or nil for the usual one. The world is
	// at the present and the gauges are refreshed.
	route(u *url.URL) *answer
}

// scraped is a model that notices its scrapes.
type scraped interface{ scraped() }

// answer is a response that is not the usual exposition.
type answer struct {
	status      int
	contentType string
	location    string
	body        []byte
}

func jsonAnswer(status int, body string) *answer {
	return &answer{status: status, contentType: "application/json", body: []byte(body)}
}

// missing is the answer of FastAPI for a path that is not mounted.
func missing() *answer { return jsonAnswer(http.StatusNotFound, `{"detail":"Not Found"}`) }

func (a *answer) write(w http.ResponseWriter) {
	if a.contentType != "" {
		w.Header().Set("Content-Type", a.contentType)
	}
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // fails when the client has gone; there is nobody left to tell
}

// route returns the own answer of the server to a path, if any, or the library
// that writes the exposition there, nil when it is not mounted there.
func (s *Server) route(u *url.URL) (own *answer, d *dialect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.m.(router); ok {
		s.advance()
		s.refresh()
		if own := m.route(u); own != nil {
			return own, nil
		}
	}
	mount := "/metrics"
	if s.opt.Redirect {
		if u.Path == mount {
			return &answer{status: http.StatusTemporaryRedirect, location: mount + "/"}, nil
		}
		mount += "/"
	}
	switch u.Path {
	case "":
		return nil, nil
	case mount, s.opt.ExtraPath, s.profile.path:
		return nil, s.w.reg.d
	}
	return nil, nil
}
