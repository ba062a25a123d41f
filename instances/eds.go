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
)

const (
	// leastWait and mostWait bound the pause before a stream is opened anew, which
	// doubles with each that fails: a server that restarts is back within seconds,
	// and one that stays away is not asked by a whole fleet every second.
	leastWait = 500 * time.Millisecond
	mostWait  = 30 * time.Second
	// answerTimeout is how long a server may say nothing of the cluster before that
	// counts as a failure. The stream is kept: it will tell when it knows. 15 s is
	// what xDS clients take for not there.
	answerTimeout = 15 * time.Second
	// refusalPause is how long a refusal is held back: some servers answer one at
	// once with what was just refused.
	refusalPause = time.Second
	// Keepalive finds out about servers that went without a word. More often than
	// every 5 minutes is more than servers put up with, unless told otherwise.
	keepaliveInterval = 5 * time.Minute
	keepaliveTimeout  = 20 * time.Second

	// nodeID is what this client calls itself: servers choose by it what to tell.
	nodeID = "limitgate"

	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	wrapperType  = "type.googleapis.com/envoy.service.discovery.v3.Resource"
)

var (
	errSilent = fmt.Errorf("the server has said nothing of the cluster for %s", answerTimeout)
	errType   = errors.New("read resource: not a ClusterLoadAssignment")
)

// EDS returns the source of the number of endpoints of a cluster that an xDS server
// calls healthy, or whose health it does not know. It is asked at addr, host:port,
// by version 3 of the protocol, over gRPC without encryption.
func EDS(addr, cluster string) Source { return eds{addr, cluster} }

type eds struct{ addr, cluster string }

// Run implements Source. A stream that ends after it has told something is opened
// anew without a word: servers end them now and then, to spread their clients.
func (e eds) Run(ctx context.Context, tell func(int, error)) {
	for wait := leastWait; ; wait = min(2*wait, mostWait) {
		answered, err := e.watch(ctx, tell)
		switch {
		case ctx.Err() != nil:
			return
		case answered:
			wait = leastWait
		default:
			tell(0, err)
		}
		if !pause(ctx, wait/2+rand.N(wait/2)) {
			return
		}
	}
}

// watch makes a connection and tells what comes on a stream, until that ends. It
// reports whether anything came.
func (e eds) watch(ctx context.Context, tell func(int, error)) (answered bool, err error) {
	// The name is resolved for each connection, and none of the environment's
	// proxies is taken: what is meant is on the same network.
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
	wg.Go(func() { awaitWord(ctx, heard, tell) })
	once := sync.OnceFunc(func() { close(heard) })
	w := &watch{eds: e, stream: stream, tell: func(n int, err error) { once(); tell(n, err) }}
	if err := stream.Send(w.request("")); err != nil {
		return false, fmt.Errorf("ask for endpoints: %w", err)
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

// awaitWord tells when no word of the cluster comes in time. An answer without one
// is none: the server may not know the cluster yet.
func awaitWord(ctx context.Context, heard <-chan struct{}, tell func(int, error)) {
	t := time.NewTimer(answerTimeout)
	defer t.Stop()
	select {
	case <-heard:
	case <-ctx.Done():
	case <-t.C:
		tell(0, errSilent)
	}
}

// watch is a stream, and what was accepted on it. Each begins without a version,
// so that the server tells all anew: one that is named the version it has would
// keep silent.
type watch struct {
	eds
	stream  grpc.BidiStreamingClient[discovery.DiscoveryRequest, discovery.DiscoveryResponse]
	tell    func(int, error)
	version string // of what was accepted last
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

// take tells what a response says, and accepts it, or refuses one that cannot be
// read as a whole. The error is that of the stream.
func (w *watch) take(ctx context.Context, response *discovery.DiscoveryResponse) error {
	n, found, err := countEndpoints(response, w.cluster)
	switch {
	case err != nil:
		w.tell(0, err)
		if !pause(ctx, refusalPause) {
			return fmt.Errorf("refuse endpoints: %w", ctx.Err())
		}
	case found:
		w.tell(n, nil)
	}
	if err == nil {
		w.version = response.GetVersionInfo()
	}
	answer := w.request(response.GetNonce())
	if err != nil {
		answer.ErrorDetail = status.New(codes.InvalidArgument, err.Error()).Proto()
	}
	if err := w.stream.Send(answer); err != nil {
		return fmt.Errorf("answer server: %w", err)
	}
	return nil
}

// countEndpoints returns how many endpoints of a cluster are healthy, and whether
// the response says anything of it: one that does not leaves it as it was. The
// error says what cannot be read in it.
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

// countHealthy counts endpoints as a load balancer would that sends nobody to those
// which are draining or degraded.
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
