package simulate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// caller is a model whose server has a gRPC port.
type caller interface {
	// call answers a call; wrong is the text of an INVALID_ARGUMENT.
	call(method string, in []byte) (out []byte, wrong string, known bool)
}

// GRPCTarget is the address of a gRPC port as collect takes it.
func GRPCTarget(ln net.Listener) string { return "triton+grpc://" + ln.Addr().String() }

// ServeGRPC answers gRPC on ln, which it closes, until ctx is done. Only the profile triton has such a port.
func (s *Server) ServeGRPC(ctx context.Context, ln net.Listener) error {
	s.mu.Lock()
	_, ok := s.m.(caller)
	s.mu.Unlock()
	if !ok {
		return errors.Join(fmt.Errorf("serve gRPC: profile %s has no gRPC port", s.profile.name), ln.Close())
	}
	srv := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(s.stream))
	var wg sync.WaitGroup
	ended := make(chan error, 1)
	wg.Go(func() { ended <- srv.Serve(ln) })
	defer wg.Wait()
	select {
	case err := <-ended:
		return fmt.Errorf("serve gRPC on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
		srv.Stop()
		return nil
	}
}

// stream answers one call.
func (s *Server) stream(_ any, stream grpc.ServerStream) error {
	var in []byte
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(stream)
	s.mu.Lock()
	s.advance()
	out, wrong, known := s.m.(caller).call(method, in)
	s.mu.Unlock()
	switch {
	case !known:
		return status.Error(codes.Unimplemented, "")
	case wrong != "":
		return status.Error(codes.InvalidArgument, wrong)
	}
	return stream.SendMsg(&out)
}

// rawCodec passes messages through as bytes.
type rawCodec struct{}

// Name implements encoding.CodecV2.
func (rawCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("marshal %T: want *[]byte", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal into %T: want *[]byte", v)
	}
	*b = data.Materialize()
	return nil
}
