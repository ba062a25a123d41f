package integration

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// gateway is an xDS server, as Envoy Gateway is one, that sends versions of the limits one after the
// other and keeps the answers to them.
type gateway struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	versions chan []byte
	answers  chan *discovery.DiscoveryRequest
}

const rateLimitConfig = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// StreamAggregatedResources implements the service.
func (g *gateway) StreamAggregatedResources(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for n := 1; ; n++ {
		var limits []byte
		select {
		case limits = <-g.versions:
		case <-stream.Context().Done():
			return nil
		}
		version := strings.Repeat("v", n)
		if err := stream.Send(&discovery.DiscoveryResponse{
			VersionInfo: version, Nonce: version, TypeUrl: rateLimitConfig,
			Resources: []*anypb.Any{{TypeUrl: rateLimitConfig, Value: limits}},
		}); err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		g.answers <- answer
	}
}

// meshConfig is the message of a domain with one rule, of a number of requests in a unit.
func meshConfig(key string, unit, requests uint64) []byte {
	text := func(b []byte, n protowire.Number, s []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	policy := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), unit)
	policy = protowire.AppendVarint(protowire.AppendTag(policy, 2, protowire.VarintType), requests)
	rule := text(text(nil, 1, []byte(key)), 3, policy)
	return text(text(text(nil, 1, []byte("mesh")), 2, []byte("mesh")), 3, rule)
}

// TestEnvoyXDS: limitgate envoy takes its limits from an xDS server, refuses a bad version with its reason
// and keeps the one before.
func TestEnvoyXDS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{versions: make(chan []byte, 3), answers: make(chan *discovery.DiscoveryRequest, 3)}
	server := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(server, g)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)

	cmd := exec.Command(binaries.release, "envoy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--rls", "127.0.0.1:0", "--rls-http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "CONFIG_TYPE=GRPC_XDS_SOTW", "LOG_LEVEL=info", "CONFIG_GRPC_XDS_SERVER_URL="+l.Addr().String(), "CONFIG_GRPC_XDS_NODE_ID=a", "USE_STATSD=false")
	p, found := launch(t, cmd, listening)
	p.addr, p.admin = found[1], found[2]
	c := p.rateLimitClient(t)
	if got, err := asksMesh(t.Context(), c, "tight=x"); err != nil || got != "OK 0" {
		t.Errorf("without limits: %s, %v", got, err)
	}
	const year = 6
	for i, step := range []struct {
		config []byte
		reason string // of a refusal
		want   string
	}{
		{meshConfig("tight", year, 3), "", "OK 2"},
		{meshConfig("tight", 99, 3), "unit", "OK 1"}, // the limits before
		{meshConfig("tight", year, 2), "", "OVER_LIMIT 0"},
	} {
		g.versions <- step.config
		answer := <-g.answers
		if reason := answer.GetErrorDetail().GetMessage(); !strings.Contains(reason, step.reason) || (reason == "") != (step.reason == "") {
			t.Errorf("step %d: refused because %q", i, reason)
		}
		if got, err := asksMesh(t.Context(), c, "tight=x"); err != nil || got != step.want {
			t.Errorf("step %d: %s, %v, want %s", i, got, err, step.want)
		}
	}
}
