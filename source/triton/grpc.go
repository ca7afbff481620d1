package triton

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/scrapestat/scrapestat/metric"
)

const (
	methodStatistics = "/inference.GRPCInferenceService/ModelStatistics"
	methodConfig     = "/inference.GRPCInferenceService/ModelConfig"
	methodServer     = "/inference.GRPCInferenceService/ServerMetadata"
)

// grpcAPI asks over gRPC, with messages written and read by hand.
type grpcAPI struct {
	conn    *grpc.ClientConn
	address address
	header  metadata.MD
	secrets *strings.Replacer
	options *Options
	limit   int64
}

func newGRPC(a *address, o Options, limit int64) (*grpcAPI, error) {
	g := &grpcAPI{address: *a, header: metadata.MD{}, secrets: censor(o.Header, a), options: &o, limit: limit}
	creds := insecure.NewCredentials()
	if a.tls {
		creds = credentials.NewTLS(o.TLS)
	}
	for k, v := range o.Header {
		g.header.Append(k, v...)
	}
	if a.user != nil {
		password, _ := a.user.Password()
		g.header.Set("authorization", "Basic "+basic(a.user.Username(), password))
	}
	var err error
	g.conn, err = grpc.NewClient("passthrough:///"+a.host,
		grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent("scrapestat/"+o.Version),
		grpc.WithDisableServiceConfig(),
		grpc.WithStatsHandler(watch{}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(int(min(limit, math.MaxInt32)))),
		grpc.WithMaxHeaderListSize(64<<10),
		// A poll is the retry of the one before: nothing is gained by waiting long.
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 5 * time.Second,
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}}))
	if err != nil {
		return nil, fmt.Errorf("make gRPC client: %w", err)
	}
	return g, nil
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

func (g *grpcAPI) close() error {
	if err := g.conn.Close(); err != nil {
		return fmt.Errorf("close gRPC connection: %w", err)
	}
	return nil
}

func (g *grpcAPI) decode(d *Decoder, body []byte, s *metric.Snapshot) { d.Protobuf(body, s) }

func (g *grpcAPI) fetch(ctx context.Context, now func() int64, s *metric.Snapshot) []byte {
	t := &timing{now: now}
	header, err := g.outgoing(ctx)
	if err != nil {
		s.Outcome, s.Err = metric.ConnectError, g.text(err.Error())
		return nil
	}
	request, answer := appendRequest(nil, g.address.model, g.address.version), []byte(nil)
	call := context.WithValue(metadata.NewOutgoingContext(ctx, header), timingKey{}, t)
	err = g.conn.Invoke(call, methodStatistics, &request, &answer)
	if sent := t.sent.Load(); sent != 0 {
		s.SentNS = sent
	}
	if err == nil {
		s.FirstByteNS = max(t.first.Load(), s.SentNS)
		return answer
	}
	g.conn.ResetConnectBackoff()
	st := status.Convert(err)
	said := metric.Clean(g.text(st.Message()), 300)
	switch {
	case ctx.Err() != nil:
		s.Outcome, s.Err = interrupted(ctx)
	case st.Code() == codes.ResourceExhausted && strings.Contains(st.Message(), "larger than max"):
		s.Outcome, s.Err = metric.TooLarge, tooLong(g.limit)
	case !t.answered.Load():
		s.Outcome, s.Err = metric.ConnectError, said
	default:
		s.Outcome, s.Err = metric.HTTPError, "gRPC "+st.Code().String()+": "+said+codeHint(st.Code(), said)
	}
	return nil
}

// outgoing is the metadata of the next call.
func (g *grpcAPI) outgoing(ctx context.Context) (metadata.MD, error) {
	if g.options.Authorization == nil {
		return g.header, nil
	}
	value, err := g.options.Authorization(ctx)
	if err != nil || value == "" {
		return g.header, err
	}
	header := g.header.Copy()
	header.Set("authorization", value)
	return header, nil
}

// text takes secrets out of a message.
func (g *grpcAPI) text(message string) string { return redact(g.options, g.secrets, message) }

// codeHint says what a code of the server means, and what to do.
func codeHint(code codes.Code, said string) string {
	switch {
	case strings.Contains(said, "restricted"):
		return statusHint(http.StatusForbidden, said)
	case code == codes.InvalidArgument:
		return statusHint(http.StatusBadRequest, said)
	case code == codes.Unimplemented:
		return statusHint(http.StatusNotImplemented, said)
	case code == codes.Unavailable:
		return statusHint(http.StatusServiceUnavailable, said)
	case code == codes.Unauthenticated, code == codes.PermissionDenied:
		return statusHint(http.StatusUnauthorized, said)
	}
	return ""
}

func (g *grpcAPI) config(ctx context.Context, model, version string) ([]string, error) {
	answer, err := g.ask(ctx, methodConfig, appendRequest(nil, model, version))
	if err != nil {
		return nil, fmt.Errorf("ask for model configuration: %w", err)
	}
	return protoSteps(answer)
}

func (g *grpcAPI) version(ctx context.Context) (v string, err error) {
	answer, err := g.ask(ctx, methodServer, nil)
	if err != nil {
		return "", fmt.Errorf("ask for server: %w", err)
	}
	err = fields(answer, func(f field) error {
		if f.number == 2 && !f.varint {
			v = plain(f.raw[:min(len(f.raw), maxVersion)])
		}
		return nil
	})
	return v, err
}

// ask asks for something beside the statistics.
func (g *grpcAPI) ask(ctx context.Context, method string, request []byte) (answer []byte, err error) {
	header, err := g.outgoing(ctx)
	if err != nil {
		return nil, err
	}
	err = g.conn.Invoke(metadata.NewOutgoingContext(ctx, header), method, &request, &answer,
		grpc.MaxCallRecvMsgSize(maxConfigBody))
	if err != nil {
		return nil, errors.New(metric.Clean(g.text(status.Convert(err).Message()), maxText))
	}
	return answer, nil
}

// raw is a codec that passes messages through as bytes: messages are *[]byte.
type raw struct{}

// Name implements encoding.CodecV2: to the server it is the usual codec.
func (raw) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("marshal %T: want *[]byte", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal into %T: want *[]byte", v)
	}
	*b = data.Materialize()
	return nil
}

// timing is when a call was sent and answered. gRPC tells it from goroutines of its own.
type timing struct {
	now         func() int64
	sent, first atomic.Int64
	answered    atomic.Bool // by the server, be it with an error
}

// timingKey is the key of the timing in the context of a call.
type timingKey struct{}

// watch notes the times of calls that have a timing.
type watch struct{}

// TagRPC implements stats.Handler.
func (watch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (watch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (watch) HandleConn(context.Context, stats.ConnStats) {}

// HandleRPC implements stats.Handler.
func (watch) HandleRPC(ctx context.Context, event stats.RPCStats) {
	t, ok := ctx.Value(timingKey{}).(*timing)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.OutPayload:
		t.sent.Store(t.now())
	case *stats.InHeader:
		t.answered.Store(true)
		t.first.CompareAndSwap(0, t.now())
	case *stats.InTrailer:
		t.answered.Store(true)
	case *stats.InPayload:
		t.first.CompareAndSwap(0, t.now())
	}
}
