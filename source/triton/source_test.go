package triton_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/triton"
)

// fake answers both APIs. Its fields are changed between polls only.
type fake struct {
	mu     sync.Mutex
	json   string
	proto  []byte
	config string // of every model

	protoConfig []byte
	version     string // "" is no such API
	status      int    // of HTTP; 0 is 200
	code        codes.Code
	said        string // the error
	seen        http.Header
	path        string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/config") {
		io.WriteString(w, f.config)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/v2") {
		fmt.Fprintf(w, `{"name":"triton","version":%q,"extensions":["statistics"]}`, f.version)
		return
	}
	f.seen, f.path = r.Header.Clone(), r.URL.EscapedPath()
	w.Header().Set("Content-Type", "application/json")
	if f.status != 0 {
		w.WriteHeader(f.status)
		fmt.Fprintf(w, `{"error":%q}`, f.said)
		return
	}
	io.WriteString(w, f.json)
}

type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }
func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// stream answers one gRPC call.
func (f *fake) stream(_ any, s grpc.ServerStream) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var in []byte
	if err := s.RecvMsg(&in); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(s)
	if strings.HasSuffix(method, "ModelConfig") {
		return s.SendMsg(&f.protoConfig)
	}
	if strings.HasSuffix(method, "ServerMetadata") {
		out := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "triton")
		out = protowire.AppendString(protowire.AppendTag(out, 2, protowire.BytesType), f.version)
		return s.SendMsg(&out)
	}
	md, _ := metadata.FromIncomingContext(s.Context())
	f.seen = http.Header{"X-Key": md.Get("x-key")}
	f.path = fmt.Sprintf("%s %x", method, in)
	if f.code != codes.OK {
		return status.Error(f.code, f.said)
	}
	return s.SendMsg(&f.proto)
}

func (f *fake) start(t *testing.T) (httpAddress, grpcAddress string) {
	t.Helper()
	h := httptest.NewServer(f)
	t.Cleanup(h.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.UnknownServiceHandler(f.stream))
	done := make(chan struct{})
	go func() { defer close(done); g.Serve(ln) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return "triton+" + h.URL, "triton+grpc://" + ln.Addr().String()
}

// poller polls a source whose clock ticks once per look.
type poller struct {
	*tape
	s *triton.Source
}

func newPoller(t *testing.T, address string, o triton.Options) *poller {
	t.Helper()
	s, err := triton.New(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &poller{newTape(t), s}
}

func (p *poller) now() int64 { p.at += 1e6; return p.at }

func (p *poller) poll() metric.Snapshot {
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	var s metric.Snapshot
	p.s.Poll(ctx, p.nowLocked(), &s)
	p.take(&s)
	return s
}

// nowLocked is now for transports that look at it from several goroutines.
func (p *poller) nowLocked() func() int64 {
	var mu sync.Mutex
	return func() int64 {
		mu.Lock()
		defer mu.Unlock()
		return p.now()
	}
}

// T6: HTTP and gRPC give the same series and values, edge values included.
func TestT6SameOverBoth(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		f := &fake{json: string(fixture(t, "grpc_edge_values.json")), proto: fixture(t, "grpc_edge_values.binpb"),
			config: "{}"}
		h, g := f.start(t)
		a, b := newPoller(t, h, triton.Options{}), newPoller(t, g, triton.Options{})
		for i, p := range []*poller{a, b} {
			s := p.poll()
			if s.Outcome != metric.OK || s.Err != "" || s.FirstByteNS < s.SentNS || s.SentNS == 0 || s.Duration <= 0 ||
				s.BodyBytes == 0 {
				t.Errorf("poll %d: %+v", i, s)
			}
			if s := p.poll(); !s.Duplicate {
				t.Errorf("poll %d: the same body is no duplicate", i)
			}
		}
		av, bv := a.values(), b.values()
		slices.Sort(av)
		slices.Sort(bv)
		if !slices.Equal(av, bv) {
			t.Errorf("HTTP gives\n%s\ngRPC\n%s", strings.Join(av, "\n"), strings.Join(bv, "\n"))
		}
		b.want(`triton_stats_memory_usage_bytes{memory_id="-1",memory_type="GPU",model="square_int32",version="1"} ` +
			`18446744073709551615`)
	})
}

// T9: every refusal is a failed poll with status and text, and the next answer
// goes on.
func TestT9Errors(t *testing.T) {
	const good = `{"model_stats":[{"name":"m","version":"1","inference_count":1}]}`
	f := &fake{config: "{}", proto: []byte{}}
	h, g := f.start(t)
	p := newPoller(t, h, triton.Options{})
	refused := func(code int, said, hint string) {
		t.Helper()
		f.status, f.said = code, said
		s := p.poll()
		if s.Outcome != metric.HTTPError || s.Status != code ||
			!strings.Contains(s.Err, fmt.Sprintf("status %d: %s", code, said)) || !strings.Contains(s.Err, hint) {
			t.Errorf("%d: got %v, status %d, %q", code, s.Outcome, s.Status, s.Err)
		}
		f.status, f.json = 0, good
		if s := p.poll(); s.Outcome != metric.OK {
			t.Errorf("after %d: %v %s", code, s.Outcome, s.Err)
		}
	}
	refused(400, "requested model 'x' is not available", "not loaded") // the first poll of all
	refused(400, "requested model version is not available for model 'x'", "not loaded")
	refused(403, "This API is restricted, expecting header 'triton-grpc-protocol-x'", "--header")
	refused(404, "Not Found", "port")
	refused(405, "Method Not Allowed", "")
	refused(501, "the server does not support model statistics", "without statistics")
	refused(503, "Server not ready", "starting")
	f.json = `{"model_stats":[]}`
	if s := p.poll(); s.Outcome != metric.OK {
		t.Errorf("no model: %v %s", s.Outcome, s.Err)
	}
	p.want(`triton_stats_model_ready{model="m",version="1"} 0`)

	q := newPoller(t, g, triton.Options{})
	for _, c := range []struct {
		code       codes.Code
		said, hint string
	}{{codes.InvalidArgument, "requested model 'x' is not available", "not loaded"},
		{codes.Unimplemented, "no statistics", "without statistics"},
		{codes.Unavailable, "This protocol is restricted, expecting header 'triton-grpc-protocol-x'", "--header"},
		{codes.Unavailable, "Server not ready", "starting"}} {
		f.code, f.said = c.code, c.said
		if s := q.poll(); s.Outcome != metric.HTTPError || !strings.Contains(s.Err, c.code.String()+": "+c.said) ||
			!strings.Contains(s.Err, c.hint) {
			t.Errorf("gRPC %v: got %v %q", c.code, s.Outcome, s.Err)
		}
		f.code = codes.OK
		if s := q.poll(); s.Outcome != metric.OK {
			t.Errorf("after gRPC %v: %v %q", c.code, s.Outcome, s.Err)
		}
	}
}

func TestAddresses(t *testing.T) {
	f := &fake{json: `{"model_stats":[]}`, config: "{}"}
	h, g := f.start(t)
	asked := func(address, want string) {
		t.Helper()
		p := newPoller(t, address, triton.Options{Header: http.Header{"X-Key": {"secret-value"}}})
		if s := p.poll(); s.Outcome != metric.OK || f.path != want || f.seen.Get("X-Key") != "secret-value" {
			t.Errorf("%s: asked for %q with %v, want %q (%s)", address, f.path, f.seen, want, s.Err)
		}
	}
	asked(h, "/v2/models/stats")
	asked(h+"?model=a%2Fb", "/v2/models/a%2Fb/stats")
	asked(h+"/gateway/?model=m&version=3", "/gateway/v2/models/m/versions/3/stats")
	asked(g+"?model=m&version=3", "/inference.GRPCInferenceService/ModelStatistics 0a016d120133")
	asked(g, "/inference.GRPCInferenceService/ModelStatistics ")

	wrong := func(address, want string) {
		t.Helper()
		if _, err := triton.New(address, triton.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", address, err, want)
		}
	}
	wrong("http://h", "scheme")
	wrong("triton+ftp://h", "scheme")
	wrong("triton+http://", "no URL")
	wrong("triton+http://h?model=m&version=x", "no number")
	wrong("triton+http://h?version=1", "needs a model")
	wrong("triton+http://h?colour=1", "not known")
	wrong("triton+http://h?model=a&model=b", "one value")
	wrong("triton+grpc://h/path", "no path")
	if _, err := triton.New("triton+http://h", triton.Options{Limits: triton.Limits{Models: -1}}); err == nil {
		t.Error("a negative limit is accepted")
	}
}

// What the server says never shows a secret or a control byte.
func TestErrorsAreClean(t *testing.T) {
	f := &fake{status: 403, said: "bad\x1b[2J token-abc and pass-word", code: codes.PermissionDenied}
	h, g := f.start(t)
	for _, address := range []string{h, g} {
		address = strings.Replace(address, "://", "://user-name:pass-word@", 1)
		s := newPoller(t, address, triton.Options{Header: http.Header{"Authorization": {"Bearer token-abc"}}}).poll()
		if s.Outcome != metric.HTTPError || strings.ContainsAny(s.Err, "\x1b") || strings.Contains(s.Err, "token-abc") ||
			strings.Contains(s.Err, "pass-word") {
			t.Errorf("%v %q", s.Outcome, s.Err)
		}
	}
}

// A server that is not there, and one that does not answer in time.
func TestUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := ln.Addr().String()
	for _, scheme := range []string{"triton+http://", "triton+grpc://"} {
		s, err := triton.New(scheme+silent, triton.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []metric.Outcome{metric.Timeout, metric.Cancelled} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if end == metric.Cancelled {
				cancel()
			}
			var snap metric.Snapshot
			s.Poll(ctx, func() int64 { return time.Now().UnixNano() }, &snap)
			cancel()
			if snap.Outcome != end || snap.Err == "" {
				t.Errorf("%s: %v %q, want %v", scheme, snap.Outcome, snap.Err, end)
			}
			hint, want := strings.Contains(snap.Err, "poll triton+grpc://"), end == metric.Timeout && scheme == "triton+http://"
			if hint != want {
				t.Errorf("%s %v: %q names gRPC: %v, want %v", scheme, end, snap.Err, hint, want)
			}
		}
		s.Close()
	}
	ln.Close()
	for _, scheme := range []string{"triton+http://", "triton+grpc://"} {
		if s := newPoller(t, scheme+silent, triton.Options{}).poll(); s.Outcome != metric.ConnectError || s.Err == "" {
			t.Errorf("%s: %v %q", scheme, s.Outcome, s.Err)
		}
	}
}

// The server is asked for its version, again after it did not answer, over both transports.
func TestServerVersion(t *testing.T) {
	f := &fake{json: `{"model_stats":[]}`, config: "{}", version: "2.51.0"}
	h, g := f.start(t)
	a, b := newPoller(t, h, triton.Options{}), newPoller(t, g, triton.Options{})
	both := func(want string) {
		t.Helper()
		for _, p := range []*poller{a, b} {
			p.poll()
			p.poll()
			p.want(`triton_stats_server_info{server_version="` + want + `"} 1`)
		}
	}
	both("2.51.0")
	f.status, f.said, f.code = 503, "Server not ready", codes.Unavailable
	a.poll()
	b.poll()
	f.status, f.code, f.version = 0, codes.OK, "2.60.0"
	both("2.60.0")
	a.none("2.51.0")
}

// Answers beyond the limit are refused, whatever they announce.
func TestLongAnswers(t *testing.T) {
	f := &fake{json: strings.Repeat(" ", 5000), proto: make([]byte, 5000)}
	h, g := f.start(t)
	for _, address := range []string{h, g} {
		s := newPoller(t, address, triton.Options{Limits: triton.Limits{Body: 4096}}).poll()
		if s.Outcome != metric.TooLarge || !strings.Contains(s.Err, "--max-body") {
			t.Errorf("%s: %v %q", address, s.Outcome, s.Err)
		}
	}
}

// An ensemble is recognised by its configuration; steps keep the versions that they call, over both transports.
func TestEnsembleFromConfig(t *testing.T) {
	step := func(model string, version uint64) []byte {
		b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), model)
		return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), version)
	}
	message := func(n protowire.Number, parts ...[]byte) (b []byte) {
		for _, part := range parts {
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), part)
		}
		return b
	}
	f := &fake{json: `{"model_stats":[{"name":"e","version":"1","inference_count":1}]}`,
		config: `{"name":"e","ensemble_scheduling":{"step":[{"model_name":"a","model_version":-1},{"model_name":"b"},` +
			`{"model_version":"2","model_name":"b"},{"model_name":"b","model_version":2}]}}`,
		proto: message(1, append(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "e"),
			protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "1")...)),
		protoConfig: message(1, message(15, message(1, step("a", math.MaxUint64), step("b", math.MaxUint64), step("b", 2),
			step("b", 2))))}
	h, g := f.start(t)
	for _, address := range []string{h, g} {
		p := newPoller(t, address, triton.Options{})
		p.poll()
		p.poll()
		p.want(`triton_stats_ensemble_steps{composing="a",composing_version="-1",model="e",version="1"} 1`)
		p.want(`triton_stats_ensemble_steps{composing="b",composing_version="-1",model="e",version="1"} 1`)
		p.want(`triton_stats_ensemble_steps{composing="b",composing_version="2",model="e",version="1"} 2`)
	}
}
