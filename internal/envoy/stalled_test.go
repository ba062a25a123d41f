package envoy

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/limitgate/limitgate/internal/grpcserver"
)

// TestStalled: a request whose message never ends is ended, and a stream of health checks is not.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(64 << 10)
		server := NewServer(New(Options{}), ServerOptions{ShutdownTimeout: time.Second, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Run(ctx, l) }()
		conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		health, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = health.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		stalled, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, rls.RateLimitService_ShouldRateLimit_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		err = stalled.RecvMsg(&rls.RateLimitResponse{})
		if took := time.Since(begin); status.Code(err) != codes.DeadlineExceeded || took != grpcserver.MaxCall {
			t.Errorf("after %s: %v", took, err)
		}
		time.Sleep(2 * grpcserver.MaxCall)
		server.SetHealthy(true)
		if got, err := health.Recv(); err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("a stream of health checks: %v, %v", got, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	})
}
