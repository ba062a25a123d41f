package instances

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/internal/run"
)

const (
	// leastWait and mostWait bound the pause before a stream is opened anew, which
	// doubles with each stream that fails: a server that restarts is back within seconds,
	// and a whole fleet does not call an absent server every second.
	leastWait = 500 * time.Millisecond
	mostWait  = 30 * time.Second
	// answerTimeout is how long a server may send nothing about the cluster before that
	// counts as a failure. The stream stays open, because the server may send the
	// endpoints later. 15 s is the time after which xDS clients treat a resource as
	// missing.
	answerTimeout = 15 * time.Second
	// refusalPause is how long a rejection is delayed: some servers answer one at once
	// with the rejected response.
	refusalPause = time.Second
	// keepaliveInterval and keepaliveTimeout detect servers that vanished. By default
	// servers do not accept a shorter interval than 5 minutes.
	keepaliveInterval = 5 * time.Minute
	keepaliveTimeout  = 20 * time.Second

	// nodeID is the node id of this client, by which servers choose its resources.
	nodeID = "limitgate"

	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	wrapperType  = "type.googleapis.com/envoy.service.discovery.v3.Resource"
)

var (
	errSilent = fmt.Errorf("no endpoints of the cluster received for %s", answerTimeout)
	errType   = errors.New("read resource: not a ClusterLoadAssignment")
)

// EDS returns a source that counts the endpoints of a cluster whose health an xDS server
// reports as healthy or unknown. It calls the server at addr, host:port, by version 3 of
// the protocol, over gRPC without encryption.
func EDS(addr, cluster string) Source { return eds{addr, cluster} }

type eds struct{ addr, cluster string }

// Run implements Source. It reopens a stream that ends after an answer without reporting
// an error: servers sometimes end streams to spread their clients.
func (e eds) Run(ctx context.Context, report func(int, error)) {
	for wait := leastWait; ; wait = min(2*wait, mostWait) {
		answered, err := e.watch(ctx, report)
		switch {
		case ctx.Err() != nil:
			return
		case answered:
			wait = leastWait
		default:
			report(0, err)
		}
		if !run.Sleep(ctx, wait/2+rand.N(wait/2)) {
			return
		}
	}
}

// watch opens a connection and a stream, and reports the numbers that arrive until the
// stream ends. It returns whether any arrived.
func (e eds) watch(ctx context.Context, report func(int, error)) (answered bool, err error) {
	// The name is resolved for each connection. The environment's proxies are not used,
	// because the server is on the same network.
	conn, err := grpc.NewClient("passthrough:///"+e.addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout}))
	if err != nil {
		return false, fmt.Errorf("connect to xDS server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	stream, err := service.NewEndpointDiscoveryServiceClient(conn).StreamEndpoints(ctx)
	if err != nil {
		return false, fmt.Errorf("open stream: %w", err)
	}
	heard := make(chan struct{})
	wg.Go(func() { awaitWord(ctx, heard, report) })
	once := sync.OnceFunc(func() { close(heard) })
	w := &watch{eds: e, stream: stream, report: func(n int, err error) { once(); report(n, err) }}
	if err := stream.Send(w.request("")); err != nil {
		return false, fmt.Errorf("request endpoints: %w", err)
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return answered, fmt.Errorf("read endpoints: %w", err)
		}
		answered = true
		if err := w.take(ctx, response); err != nil {
			return answered, err
		}
	}
}

// awaitWord reports an error if no answer about the cluster arrives in time. An answer
// without the cluster does not count: the server may not have the cluster yet.
func awaitWord(ctx context.Context, heard <-chan struct{}, report func(int, error)) {
	t := time.NewTimer(answerTimeout)
	defer t.Stop()
	select {
	case <-heard:
	case <-ctx.Done():
	case <-t.C:
		report(0, errSilent)
	}
}

// watch is a stream, and the version accepted last on it. Each stream begins without a
// version, so that the server sends all resources: it would send nothing to a client that
// has its version.
type watch struct {
	eds
	stream  grpc.BidiStreamingClient[discovery.DiscoveryRequest, discovery.DiscoveryResponse]
	report  func(int, error)
	version string // of the response accepted last
}

func (w *watch) request(nonce string) *discovery.DiscoveryRequest {
	return &discovery.DiscoveryRequest{
		Node:          &core.Node{Id: nodeID, Cluster: nodeID, UserAgentName: nodeID},
		TypeUrl:       endpointType,
		ResourceNames: []string{w.cluster},
		VersionInfo:   w.version,
		ResponseNonce: nonce,
	}
}

// take reports the number in a response and accepts the response, or rejects a response
// that cannot be parsed as a whole. The error is that of the stream.
func (w *watch) take(ctx context.Context, response *discovery.DiscoveryResponse) error {
	n, found, err := countEndpoints(response, w.cluster)
	switch {
	case err != nil:
		w.report(0, err)
		if !run.Sleep(ctx, refusalPause) {
			return fmt.Errorf("reject endpoints: %w", ctx.Err())
		}
	case found:
		w.report(n, nil)
	}
	if err == nil {
		w.version = response.GetVersionInfo()
	}
	answer := w.request(response.GetNonce())
	if err != nil {
		answer.ErrorDetail = status.New(codes.InvalidArgument, err.Error()).Proto()
	}
	if err := w.stream.Send(answer); err != nil {
		return fmt.Errorf("acknowledge endpoints: %w", err)
	}
	return nil
}

// countEndpoints returns how many endpoints of a cluster are healthy, and whether the
// response includes the cluster: a response without it does not change the number. The
// error is set if a part of the response cannot be parsed.
func countEndpoints(response *discovery.DiscoveryResponse, cluster string) (n int, found bool, err error) {
	if t := response.GetTypeUrl(); t != endpointType {
		return 0, false, fmt.Errorf("%w: the response is of %.100q", errType, t)
	}
	for _, resource := range response.GetResources() {
		if resource.GetTypeUrl() == wrapperType {
			var wrapper discovery.Resource
			if err := proto.Unmarshal(resource.GetValue(), &wrapper); err != nil {
				return 0, false, fmt.Errorf("read resource: %w", err)
			}
			resource = wrapper.GetResource()
		}
		if t := resource.GetTypeUrl(); t != endpointType {
			return 0, false, fmt.Errorf("%w but a %.100q", errType, t)
		}
		var assignment endpoint.ClusterLoadAssignment
		if err := proto.Unmarshal(resource.GetValue(), &assignment); err != nil {
			return 0, false, fmt.Errorf("read resource: %w", err)
		}
		if assignment.GetClusterName() == cluster {
			n, found = countHealthy(&assignment), true
		}
	}
	return n, found, nil
}

// countHealthy counts endpoints as a load balancer does that sends no requests to
// draining or degraded ones.
func countHealthy(assignment *endpoint.ClusterLoadAssignment) int {
	n := 0
	for _, locality := range assignment.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			switch e.GetHealthStatus() {
			case core.HealthStatus_HEALTHY, core.HealthStatus_UNKNOWN:
				n++
			}
		}
	}
	return n
}
