package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

const (
	// maxMessage bounds a request. The header fields of a request to Envoy, which descriptors are made of,
	// have at most 60 KiB together by default.
	maxMessage = 256 << 10
	// maxStreams bounds the requests of one connection that are decided at once. An Envoy has one
	// connection for each worker, and waits 20 ms for an answer.
	maxStreams = 256
	// streamWorkers are goroutines that answer requests one after the other. A request that finds none
	// free gets a goroutine of its own, whose stack has to grow each time.
	streamWorkers = 256
	// connectionTimeout bounds the time until a connection has begun to speak HTTP/2.
	connectionTimeout = 10 * time.Second
	// maxCall bounds the time from the begin of a request to its answer: its message may never end. An Envoy
	// waits 20 ms unless its filter has another timeout.
	maxCall = 10 * time.Second
	// maxHeaderList bounds the header fields of a request.
	maxHeaderList = 16 << 10
)

// ServerOptions configure a Server.
type ServerOptions struct {
	// TLS is the configuration of connections; nil serves without encryption.
	TLS *tls.Config
	// MaxConnectionAge ends connections, so that clients meet proxies that are new; 0 is never.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
	// ShutdownTimeout bounds the wait for requests that are under way.
	ShutdownTimeout time.Duration
	Log             *slog.Logger
}

// Server serves a Service over gRPC, with the health service of gRPC.
type Server struct {
	opts   ServerOptions
	grpc   *grpc.Server
	health *health.Server
}

// serviceName is that of the health service; the empty name means the same.
const serviceName = "ratelimit"

// NewServer returns a server that is not healthy before Run.
func NewServer(s *Service, opts ServerOptions) *Server {
	srv := &Server{opts: opts, health: health.NewServer()}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeaderList),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: opts.MaxConnectionAge, MaxConnectionAgeGrace: opts.MaxConnectionAgeGrace}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(connectionTimeout), grpc.NumStreamWorkers(streamWorkers), grpc.ForceServerCodecV2(newCodec()),
		grpc.UnaryInterceptor(srv.recoverPanic), grpc.InTapHandle(boundCall),
	}
	if opts.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(opts.TLS)))
	}
	srv.grpc = grpc.NewServer(options...)
	rls.RegisterRateLimitServiceServer(srv.grpc, s)
	healthpb.RegisterHealthServer(srv.grpc, srv.health)
	srv.SetHealthy(false)
	return srv
}

// SetHealthy makes the health service answer so.
func (s *Server) SetHealthy(healthy bool) {
	st := healthpb.HealthCheckResponse_NOT_SERVING
	if healthy {
		st = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(serviceName, st)
	s.health.SetServingStatus("", st)
}

// boundCall bounds the time of a request. Health checks may be streams, which last.
func boundCall(ctx context.Context, call *tap.Info) (context.Context, error) {
	if call.FullMethodName != rls.RateLimitService_ShouldRateLimit_FullMethodName {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	_ = cancel // gRPC ends the context with the call
	return ctx, nil
}

// recoverPanic makes a panic the error of its request.
func (s *Server) recoverPanic(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("request panicked", "panic", p, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	return handle(ctx, req)
}

// Run serves connections of l until ctx ends, and then drains: it is unhealthy, and ends requests that
// are under way.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- s.grpc.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.health.Shutdown()
	drained := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(drained)
	}()
	timer := time.NewTimer(s.opts.ShutdownTimeout)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		s.grpc.Stop()
		<-drained
	}
	if err := <-ended; !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}
