package instances

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/limitgate/limitgate/internal/redistest"
)

// xds is an xDS server whose endpoints survive restarts.
type xds struct {
	addr      string
	endpoints *cache.LinearCache
	stop      func()

	mu       sync.Mutex
	requests []*discovery.DiscoveryRequest
}

func startXDS(t *testing.T) *xds {
	t.Helper()
	x := &xds{addr: "127.0.0.1:0", endpoints: cache.NewLinearCache(endpointType)}
	x.start(t)
	t.Cleanup(func() { x.stop() })
	return x
}

// start serves until stop is called. A later start uses the same address.
func (x *xds) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", x.addr)
	if err != nil {
		t.Fatal(err)
	}
	x.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s := grpc.NewServer()
	service.RegisterEndpointDiscoveryServiceServer(s, server.NewServer(ctx, x.endpoints, server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.requests = append(x.requests, proto.Clone(r).(*discovery.DiscoveryRequest))
			return nil
		},
	}))
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	x.stop = sync.OnceFunc(func() {
		cancel()
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// set sets the endpoints of a cluster.
func (x *xds) set(t *testing.T, cluster string, resource types.Resource) {
	t.Helper()
	if err := x.endpoints.UpdateResource(cluster, resource); err != nil {
		t.Fatal(err)
	}
}

// last returns the last request.
func (x *xds) last() *discovery.DiscoveryRequest {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.requests) == 0 {
		return nil
	}
	return x.requests[len(x.requests)-1]
}

// assignment is a cluster with endpoints of the given health, each in a locality of its
// own and in one that all share.
func assignment(cluster string, health ...core.HealthStatus) *endpoint.ClusterLoadAssignment {
	shared := &endpoint.LocalityLbEndpoints{}
	a := &endpoint.ClusterLoadAssignment{ClusterName: cluster, Endpoints: []*endpoint.LocalityLbEndpoints{shared}}
	for i, h := range health {
		e := &endpoint.LbEndpoint{HealthStatus: h}
		if i%2 == 0 {
			shared.LbEndpoints = append(shared.LbEndpoints, e)
		} else {
			a.Endpoints = append(a.Endpoints, &endpoint.LocalityLbEndpoints{LbEndpoints: []*endpoint.LbEndpoint{e}})
		}
	}
	return a
}

// healthy is a cluster of n healthy endpoints.
func healthy(n int) *endpoint.ClusterLoadAssignment {
	all := make([]core.HealthStatus, n)
	for i := range all {
		all[i] = core.HealthStatus_HEALTHY
	}
	return assignment("gates", all...)
}

// counting runs a count until the test ends.
func counting(t *testing.T, source Source) *Count {
	t.Helper()
	c := New(Options{Source: source, Ceiling: 3})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

// eventually polls ok until it returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	redistest.Eventually(t, 20*time.Second, what, ok)
}

// TestEDS checks that the endpoints of the cluster count that are or may be healthy, that
// updates are followed and accepted, and that zero endpoints are an error.
func TestEDS(t *testing.T) {
	const (
		unknown, healthy, unhealthy = core.HealthStatus_UNKNOWN, core.HealthStatus_HEALTHY, core.HealthStatus_UNHEALTHY
		draining, timeout, degraded = core.HealthStatus_DRAINING, core.HealthStatus_TIMEOUT, core.HealthStatus_DEGRADED
	)
	x := startXDS(t)
	x.set(t, "others", assignment("others", healthy, healthy))
	c := counting(t, EDS(x.addr, "gates"))
	for _, row := range []struct {
		health  []core.HealthStatus
		want    int
		wantErr bool
	}{
		{[]core.HealthStatus{healthy, healthy, healthy}, 3, false},
		{[]core.HealthStatus{unknown, healthy, unknown, healthy, healthy}, 5, false},
		{[]core.HealthStatus{healthy, unhealthy, draining, timeout, degraded, unknown}, 2, false},
		{[]core.HealthStatus{healthy, healthy, healthy, healthy}, 4, false},
		{[]core.HealthStatus{unhealthy}, 4, true},
		{nil, 4, true},
		{[]core.HealthStatus{unknown}, 1, false},
	} {
		x.set(t, "gates", assignment("gates", row.health...))
		eventually(t, "the count", func() bool {
			st := c.Status()
			return st.Healthy == row.want && (st.Err != nil) == row.wantErr
		})
		x.set(t, "others", assignment("others", row.health...))
	}
	eventually(t, "the last answer is accepted", func() bool { return x.last().GetVersionInfo() != "" })
	r := x.last()
	if r.GetNode().GetId() != nodeID || r.GetTypeUrl() != endpointType || len(r.GetResourceNames()) != 1 || r.GetResourceNames()[0] != "gates" ||
		r.GetResponseNonce() == "" || r.GetErrorDetail() != nil {
		t.Errorf("the last request is %v", r)
	}
}

// TestEDSRestart checks that the count stays while the server is down, and follows it
// when it is back.
func TestEDSRestart(t *testing.T) {
	x := startXDS(t)
	x.set(t, "gates", healthy(5))
	c := counting(t, EDS(x.addr, "gates"))
	eventually(t, "the first count", func() bool { return c.Healthy() == 5 })
	x.stop()
	eventually(t, "that the server is away", func() bool { return c.Status().Err != nil })
	if c.Healthy() != 5 {
		t.Errorf("%+v, want the last count", c.Status())
	}
	x.set(t, "gates", healthy(2))
	x.start(t)
	eventually(t, "the new count", func() bool { return c.Healthy() == 2 && c.Status().Err == nil })
}

// TestEDSGarbage checks that an invalid response is rejected, with the version accepted
// before, and changes nothing, and that the stream continues.
func TestEDSGarbage(t *testing.T) {
	x := startXDS(t)
	x.set(t, "gates", healthy(5))
	c := counting(t, EDS(x.addr, "gates"))
	eventually(t, "the first count is accepted", func() bool { return c.Healthy() == 5 && x.last().GetVersionInfo() != "" })
	accepted := x.last().GetVersionInfo()
	x.set(t, "gates", wrapperspb.Bytes([]byte{0xff})) // a name that is not UTF-8
	eventually(t, "the refusal", func() bool { return x.last().GetErrorDetail() != nil })
	if r := x.last(); r.GetVersionInfo() != accepted || r.GetResponseNonce() == "" || !strings.Contains(r.GetErrorDetail().GetMessage(), "read resource: ") {
		t.Errorf("the refusal is %v, want version %s", r, accepted)
	}
	if st := c.Status(); st.Healthy != 5 || st.Err == nil {
		t.Errorf("%+v", st)
	}
	x.set(t, "gates", healthy(6))
	eventually(t, "the next count is accepted", func() bool {
		return c.Healthy() == 6 && c.Status().Err == nil && x.last().GetErrorDetail() == nil
	})
	if x.last().GetVersionInfo() == accepted {
		t.Errorf("the last request is %v", x.last())
	}
}

// TestEDSUnreachable checks that without a server the count stays and the status has the
// error.
func TestEDSUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // the address has no listener from now on
	c := counting(t, EDS(l.Addr().String(), "gates"))
	eventually(t, "two failures", func() bool { return c.Status().Errors >= 2 })
	if st := c.Status(); st.Healthy != 1 || st.Err == nil || !strings.Contains(st.Err.Error(), "connection refused") {
		t.Errorf("%+v", st)
	}
}

// TestAwaitWord checks that a server that sends nothing about the cluster is reported
// once.
func TestAwaitWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		heard := make(chan struct{})
		close(heard)
		for want, row := range map[time.Duration]struct {
			ctx     context.Context
			heard   chan struct{}
			reports int
		}{0: {ended, nil, 0}, 1: {t.Context(), heard, 0}, answerTimeout: {t.Context(), nil, 1}} {
			began, reports := time.Now(), 0
			awaitWord(row.ctx, row.heard, func(int, error) { reports++ })
			if took := time.Since(began); took/time.Second != want/time.Second || reports != row.reports {
				t.Errorf("it took %s, with %d reports", took, reports)
			}
		}
	})
}

// TestCountEndpoints checks that a response is parsed as a whole, or not at all.
func TestCountEndpoints(t *testing.T) {
	pack := func(m proto.Message) *anypb.Any {
		a, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	gates, others := pack(healthy(2)), pack(assignment("others"))
	garbage := &anypb.Any{TypeUrl: endpointType, Value: []byte{0xff}}
	for name, row := range map[string]struct {
		response *discovery.DiscoveryResponse
		want     int
		found    bool
		wantErr  string
	}{
		"nothing":         {&discovery.DiscoveryResponse{TypeUrl: endpointType}, 0, false, ""},
		"another cluster": {&discovery.DiscoveryResponse{TypeUrl: endpointType, Resources: []*anypb.Any{others}}, 0, false, ""},
		"among others":    {&discovery.DiscoveryResponse{TypeUrl: endpointType, Resources: []*anypb.Any{others, gates, others}}, 2, true, ""},
		"wrapped":         {&discovery.DiscoveryResponse{TypeUrl: endpointType, Resources: []*anypb.Any{pack(&discovery.Resource{Resource: gates})}}, 2, true, ""},
		"another type":    {&discovery.DiscoveryResponse{TypeUrl: wrapperType, Resources: []*anypb.Any{gates}}, 0, false, `the response is of "type.goog`},
		"another thing":   {&discovery.DiscoveryResponse{TypeUrl: endpointType, Resources: []*anypb.Any{gates, pack(wrapperspb.Bool(true))}}, 0, false, "not a ClusterLoadAssignment but a"},
		"garbage":         {&discovery.DiscoveryResponse{TypeUrl: endpointType, Resources: []*anypb.Any{gates, garbage}}, 0, false, "read resource: "},
		"wrapped garbage": {&discovery.DiscoveryResponse{TypeUrl: endpointType, Resources: []*anypb.Any{{TypeUrl: wrapperType, Value: []byte{0xff}}}}, 0, false, "read resource: "},
		"an empty wrap":   {&discovery.DiscoveryResponse{TypeUrl: endpointType, Resources: []*anypb.Any{pack(&discovery.Resource{})}}, 0, false, "not a ClusterLoadAssignment but a"},
		"nothing at all":  {&discovery.DiscoveryResponse{Resources: []*anypb.Any{nil}}, 0, false, "the response is of"},
	} {
		t.Run(name, func(t *testing.T) {
			n, found, err := countEndpoints(row.response, "gates")
			if err != nil && row.wantErr == "" || row.wantErr != "" && (err == nil || !strings.Contains(err.Error(), row.wantErr)) {
				t.Errorf("got %v, want %s", err, row.wantErr)
			}
			if n != row.want || found != row.found {
				t.Errorf("got %d, %v", n, found)
			}
		})
	}
}
