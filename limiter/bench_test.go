package limiter_test

import (
	"fmt"
	"net/netip"
	"testing"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
	"github.com/limitgate/limitgate/metrics"
)

func newBenchLimiter(b *testing.B, yaml string) *limiter.Limiter {
	b.Helper()
	set, _, err := config.ParseLimits("bench.yaml", []byte(yaml), limit.CompileOptions{})
	if err != nil {
		b.Fatal(err)
	}
	addrs, err := limit.NewAddrHasher([]byte("0123456789abcdef"), limit.Prefixes{})
	if err != nil {
		b.Fatal(err)
	}
	return limiter.New(limiter.Options{
		Store:       memory.New(memory.Options{}),
		Backstop:    backstop.New(backstop.Options{Instances: func() int { return 1 }}),
		Observer:    metrics.NewDecisions(prometheus.NewRegistry()),
		Addrs:       addrs,
		Timeout:     5e6,
		RetryJitter: 30e9,
	}, set)
}

// BenchmarkDecide measures the whole decision on the memory store, one check at a time,
// over 100,000 known buckets.
func BenchmarkDecide(b *testing.B) {
	const tenants = 100_000
	for _, c := range []struct {
		name, yaml string
		ip         bool
	}{
		{"tenant", "{version: 1, default_plan: p, plans: {p: [{id: tenant, by: [tenant], rate: 1000/d, burst: 1000000}]}}", false},
		{"denied", "{version: 1, default_plan: p, plans: {p: [{id: tenant, by: [tenant], rate: 1/d}]}}", false},
		{"ip", "{version: 1, shared: [{id: ip, by: [ip], rate: 1000/d, burst: 1000000}]}", true},
		{"tenant+op+ip", "{version: 1, default_plan: p, plans: {p: [{id: tenant, by: [tenant], rate: 1000/d, burst: 1000000}, {id: op, by: [tenant, op], rate: 1000000/h, algorithm: sliding_window}]}, shared: [{id: ip, by: [ip], rate: 1000/d, burst: 1000000}]}", true},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := newBenchLimiter(b, c.yaml)
			var batch limiter.Batch
			name := []byte("tenant-00000")
			decide := func(i int) {
				// The request aliases a connection's read buffer.
				n := i * 7919 % tenants
				req := limit.Request{Tenant: unsafe.String(&name[0], len(name)), Op: "GET /v1/things", Cost: 1}
				if c.ip {
					req.Addr = netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
				}
				for at := len(name) - 1; at >= len(name)-5; at-- {
					name[at] = '0' + byte(n%10)
					n /= 10
				}
				batch.Requests = append(batch.Requests, req)
				l.Decide(&batch)
				batch.Reset()
			}
			for range 2 {
				for i := range tenants {
					decide(i)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				decide(i)
				i++
			}
		})
	}
}

// BenchmarkResolve measures resolving the limits of a tenant whose plan has 20.
func BenchmarkResolve(b *testing.B) {
	yaml := "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: tenant, by: [tenant], rate: 1/s}\n"
	for i := range 19 {
		yaml += fmt.Sprintf("    - {id: op%d, by: [tenant, op], when: {op: \"GET /v1/things/%d*\"}, rate: 1/s}\n", i, i)
	}
	set, _, err := config.ParseLimits("bench.yaml", []byte(yaml), limit.CompileOptions{})
	if err != nil {
		b.Fatal(err)
	}
	req := limit.Request{Tenant: "acme", Op: "GET /v1/things/18/parts", Cost: 1}
	var buffer limit.Buffer
	b.ReportAllocs()
	for b.Loop() {
		buffer.Reset()
		set.Resolve(&req, nil, 0, &buffer)
	}
	if len(buffer.Items) != 2 {
		b.Fatalf("%d limits apply, want 2", len(buffer.Items))
	}
}
