package envoy

import (
	"fmt"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// BenchmarkShouldRateLimit decides requests of 1 and 3 descriptors on a store in memory: in this process,
// and by gRPC, whose client is in this process too.
func BenchmarkShouldRateLimit(b *testing.B) {
	s := newService(b, Behaviour{})
	conn, _ := serveGRPC(b, s)
	client := rls.NewRateLimitServiceClient(conn)
	for _, n := range []int{1, 3} {
		req := &rls.RateLimitRequest{Domain: "mesh"}
		for i := range n {
			req.Descriptors = append(req.Descriptors, descriptor(b, fmt.Sprintf("vip=user-%d", i)))
		}
		b.Run(fmt.Sprintf("direct-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.ShouldRateLimit(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("grpc-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := client.ShouldRateLimit(b.Context(), req); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
