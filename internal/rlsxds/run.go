package rlsxds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/limitgate/limitgate/internal/run"
)

const (
	// keepaliveInterval and keepaliveTimeout detect servers that vanished. By default servers do not
	// accept a shorter interval than 5 minutes.
	keepaliveInterval = 5 * time.Minute
	keepaliveTimeout  = 20 * time.Second
	// window bounds the bytes that wait to be read, whatever the server sends meanwhile. It is the
	// least of HTTP/2; a longer message gets room while it is read.
	window = 64 << 10
	// maxHeader bounds the headers of the server, in bytes, with its text of an error among them.
	maxHeader = 64 << 10
)

// stream is that of ADS.
type stream = discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient

// Run follows the server's resources until ctx ends, and connects again when a stream has ended. It returns
// no error, and may be called once.
func (c *Client) Run(ctx context.Context) error {
	defer c.update(func(s *Status) { s.Connected = false })
	first := min(2*c.options.MinBackoff, c.options.MaxBackoff)
	for wait := first; ; wait = min(2*wait, c.options.MaxBackoff) {
		opened := time.Now()
		answered, err := c.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.lost(err)
		// A stream without an answer that lasted had nothing to answer.
		if answered || time.Since(opened) > c.options.MaxBackoff {
			wait = first
		}
		if !run.Sleep(ctx, c.pause(wait)) {
			return nil
		}
	}
}

// pause returns a random time between the half of wait, or the least pause, and wait: so that the clients
// of a server that restarts do not come at once.
func (c *Client) pause(wait time.Duration) time.Duration {
	least := max(wait/2, c.options.MinBackoff)
	return least + rand.N(wait-least+1)
}

// follow opens a connection and a stream, and takes the responses on it until it ends. It returns whether
// there were any.
func (c *Client) follow(ctx context.Context) (answered bool, err error) {
	conn, err := c.connect()
	if err != nil {
		return false, fmt.Errorf("connect to xDS server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, c.headers))
	defer cancel()
	s, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx,
		grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(c.options.MaxMessage))
	if err != nil {
		return false, fmt.Errorf("open stream: %w", err)
	}
	if err := c.subscribe(s); err != nil {
		return false, err
	}
	c.connected()
	for {
		r := new(response)
		if err := s.RecvMsg(r); errors.Is(err, io.EOF) {
			return answered, errors.New("read response: the server ended the stream")
		} else if err != nil {
			return answered, fmt.Errorf("read response: %w", err)
		}
		answered = true
		pause, err := c.take(s, r)
		if err != nil {
			return answered, err
		}
		if !run.Sleep(ctx, pause) {
			return answered, ctx.Err()
		}
	}
}

// connect returns a connection, which is opened by its first call. The name is resolved for each connection.
// The environment's proxies are not used, because the server is on the same network.
func (c *Client) connect() (*grpc.ClientConn, error) {
	security := insecure.NewCredentials()
	if c.options.TLS != nil {
		config, err := c.options.TLS()
		if err != nil {
			return nil, err
		}
		security = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(security), grpc.WithUserAgent(agent),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout}),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window), grpc.WithMaxHeaderListSize(maxHeader),
	}
	if c.dial != nil {
		options = append(options, grpc.WithContextDialer(c.dial))
	}
	return grpc.NewClient("passthrough:///"+c.options.Server, options...)
}
