package envoy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/internal/grpcserver"
)

// ServerOptions configure a Server.
type ServerOptions struct {
	// TLS is the configuration of connections; nil serves without encryption.
	TLS *tls.Config
	// MaxConnectionAge ends connections, so that clients meet proxies that are new; 0 is never.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
	// MaxConns bounds the connections; 0 is no bound.
	MaxConns int
	// ShutdownTimeout bounds the wait for requests that are under way.
	ShutdownTimeout time.Duration
	Log             *slog.Logger
}

// Server serves a Service over gRPC, with the health service of gRPC.
type Server struct {
	grpc   *grpcserver.Server
	health *health.Server
}

// serviceName is that of the health service; the empty name means the same.
const serviceName = "ratelimit"

// NewServer returns a server that is not healthy before Run.
func NewServer(s *Service, opts ServerOptions) *Server {
	srv := &Server{health: health.NewServer()}
	srv.grpc = grpcserver.New(grpcserver.Options{
		Unary: map[string]grpcserver.Unary{
			rls.RateLimitService_ShouldRateLimit_FullMethodName: s.answerCalls,
			healthpb.Health_Check_FullMethodName:                answerEach(srv.health.Check),
			healthpb.Health_List_FullMethodName:                 answerEach(srv.health.List),
		},
		Streaming: map[string]grpcserver.Streaming{healthpb.Health_Watch_FullMethodName: srv.watchHealth},
		TLS:       opts.TLS, MaxConns: opts.MaxConns, MaxAge: opts.MaxConnectionAge, MaxAgeGrace: opts.MaxConnectionAgeGrace,
		ShutdownTimeout: opts.ShutdownTimeout, Log: opts.Log,
	})
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

// Run serves connections of l until ctx ends, and then drains: it is unhealthy, and ends requests that
// are under way.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	draining, drain := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	stop := context.AfterFunc(ctx, func() {
		s.health.Shutdown() // before clients see that connections end
		drain()
	})
	defer stop()
	return s.grpc.Run(draining, l)
}

// answerEach makes a method that answers its calls one after the other.
func answerEach[Req, Reply any, PReq interface {
	*Req
	proto.Message
}, PReply interface {
	*Reply
	proto.Message
}](do func(context.Context, PReq) (PReply, error)) grpcserver.Unary {
	return func(b *grpcserver.Batch) {
		for _, call := range b.Calls {
			req := PReq(new(Req))
			if proto.Unmarshal(call.Message, req) != nil {
				call.Err = errMessage
				continue
			}
			reply, err := do(context.Background(), req)
			if call.Err = err; err == nil {
				call.Reply, call.Err = proto.MarshalOptions{}.MarshalAppend(call.Reply, reply)
			}
		}
	}
}

// watchHealth sends the health and its changes.
func (s *Server) watchHealth(ctx context.Context, message []byte, send func([]byte) error) error {
	var req healthpb.HealthCheckRequest
	if proto.Unmarshal(message, &req) != nil {
		return errMessage
	}
	return s.health.Watch(&req, &watch{ctx: ctx, send: send})
}

// watch is the stream of a client that watches the health.
type watch struct {
	grpc.ServerStream // the health service calls the methods below alone
	ctx               context.Context
	send              func([]byte) error
}

func (w *watch) Context() context.Context { return w.ctx }

func (w *watch) Send(reply *healthpb.HealthCheckResponse) error {
	message, err := proto.Marshal(reply)
	if err != nil {
		return err
	}
	return w.send(message)
}
