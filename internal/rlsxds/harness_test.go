package rlsxds

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/limitgate/limitgate/internal/syncbuffer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is a network in memory with one address. In a bubble of package synctest time passes while its
// connections wait.
type network struct {
	mu       sync.Mutex // guards the fields below
	listener *bufconn.Listener
	dials    []time.Time
}

// dial connects to the present server.
func (n *network) dial(ctx context.Context, _ string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, time.Now())
	l := n.listener
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	return l.DialContext(ctx)
}

// dialed returns when there were attempts to connect.
func (n *network) dialed() []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dials)
}

// serve serves ads on the network until stop is called, or until the test ends.
func (n *network) serve(t testing.TB, ads discovery.AggregatedDiscoveryServiceServer, options ...grpc.ServerOption) (stop func()) {
	l := bufconn.Listen(64 << 10)
	s := grpc.NewServer(options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(s, ads)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	n.mu.Lock()
	n.listener = l
	n.mu.Unlock()
	stop = sync.OnceFunc(func() {
		n.mu.Lock()
		n.listener = nil
		n.mu.Unlock()
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// script is a server that does the same with each stream.
type script struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	play func(s serverStream) error
}

type serverStream = discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer

// StreamAggregatedResources implements discovery.AggregatedDiscoveryServiceServer.
func (s script) StreamAggregatedResources(stream serverStream) error { return s.play(stream) }

// keep plays until the client ends the stream. It answers nothing.
func keep(s serverStream) error {
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}

// record is what a server received.
type record struct {
	mu       sync.Mutex // guards the fields below
	requests []*discovery.DiscoveryRequest
	headers  metadata.MD
}

// add adds a request.
func (r *record) add(request *discovery.DiscoveryRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, proto.CloneOf(request))
}

// next removes and returns the first request.
func (r *record) next(t testing.TB) *discovery.DiscoveryRequest {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == 0 {
		t.Fatal("there is no request")
	}
	first := r.requests[0]
	r.requests = r.requests[1:]
	return first
}

// applied are the resources in force, sorted, as texts.
type applied struct {
	mu    sync.Mutex // guards the fields below
	texts []string
	times int
}

// apply refuses resources that begin with "bad".
func (a *applied) apply(resources [][]byte) error {
	texts := []string{}
	for _, r := range resources {
		if text, bad := strings.CutPrefix(string(r), "bad"); bad {
			return errors.New("refused" + text)
		}
		texts = append(texts, string(r))
	}
	slices.Sort(texts)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.texts = texts
	a.times++
	return nil
}

// expect checks the resources in force, and how often any were applied.
func (a *applied) expect(t testing.TB, times int, texts ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.times != times || !slices.Equal(a.texts, texts) {
		t.Errorf("%q are in force after %d changes, want %q after %d", a.texts, a.times, texts, times)
	}
}

// newClient returns a client of a network's server, or with no network that of o.
func newClient(t testing.TB, n *network, o Options) (*Client, *applied, *syncbuffer.Buffer) {
	t.Helper()
	a, log := new(applied), new(syncbuffer.Buffer)
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	if n != nil {
		o.Server = "xds.example:18001"
	}
	if o.Apply == nil {
		o.Apply = a.apply
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if n != nil {
		c.dial = n.dial
	}
	return c, a, log
}

// start runs a client, and returns a function that ends it.
func start(t testing.TB, c *Client) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if c.Status().Connected {
			t.Error("a client that has ended is connected")
		}
	}
}

// rest waits, in simulated time, until updates have been taken and the pauses after them are over.
func rest() {
	time.Sleep(2 * refusalPause)
	synctest.Wait()
}

// answer returns a response with resources of texts.
func answer(version, nonce string, texts ...string) *discovery.DiscoveryResponse {
	r := &discovery.DiscoveryResponse{VersionInfo: version, Nonce: nonce, TypeUrl: configType}
	for _, text := range texts {
		r.Resources = append(r.Resources, &anypb.Any{TypeUrl: configType, Value: []byte(text)})
	}
	return r
}
