package rlsxds

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// DefaultMaxMessage bounds a message of the server, in bytes, unless Options does. It is the default
	// of gRPC, with some 100 bytes for each of 40,000 limits.
	DefaultMaxMessage = 4 << 20
	// DefaultMinBackoff is the least pause between connections unless Options has another: a whole fleet
	// does not call an absent server every second, and the limits in use outlast the pauses.
	DefaultMinBackoff = 10 * time.Second
	// DefaultMaxBackoff is the longest pause between connections unless Options has another.
	DefaultMaxBackoff = 60 * time.Second

	// agent is the name of this program in its requests.
	agent = "limitgate"
)

// Options configure a Client.
type Options struct {
	// Server is the address of the xDS server, host:port.
	Server string
	// NodeID and Metadata describe this client: servers choose the resources by the id. The values of
	// Metadata are those that structpb.NewValue takes.
	NodeID   string
	Metadata map[string]any
	// TLS returns the configuration of one connection, so that each takes the present files. nil means
	// connections without TLS.
	TLS func() (*tls.Config, error)
	// Headers are added to the request that opens a stream. They may be secret, and are not logged.
	Headers map[string]string
	// MaxMessage bounds a message of the server, in bytes; 0 means DefaultMaxMessage.
	MaxMessage int
	// Apply puts resources in force, all of which it receives, in any order: the bytes of each, which it
	// may keep. There are none if the server has no limits. An error refuses all of them, and the
	// server receives its text; the resources that were applied before must stay in force. Run calls
	// Apply, once at a time, and not for the resources that are in force already.
	Apply func(resources [][]byte) error
	// ForgetVersion makes each stream begin without a version, so that the server sends its resources
	// even if it numbers them as the server before it did. Otherwise a stream begins with the version in
	// use, and a server that has this version need not send anything.
	ForgetVersion bool
	Log           *slog.Logger
	// MinBackoff and MaxBackoff bound the pauses between connections; 0 means the defaults.
	MinBackoff, MaxBackoff time.Duration
}

// Client follows the resources of a server while Run runs. Status may be called at any time.
type Client struct {
	options Options
	node    *core.Node
	headers metadata.MD
	dial    func(ctx context.Context, addr string) (net.Conn, error) // nil means TCP

	// The fields of Run alone.
	version string // that requests carry: accepted last
	inUse   digest // of the resources in force; zero, which no digest is, before there are any
	lines   *lines

	mu     sync.Mutex // guards status
	status Status
}

// Status describes a client at one moment.
type Status struct {
	// Connected reports whether a stream is open. A stream may be silent for ever.
	Connected bool
	// Loaded reports whether any resources are in force, and Version is that of these.
	Loaded  bool
	Version string
	// Err is the reason why there is no stream, or why the last update on it was rejected.
	Err error
	// Accepted and Rejected count updates. An update without a change is accepted too.
	Accepted, Rejected int64
}

// New returns a client, or an error if its options cannot be used.
func New(o Options) (*Client, error) {
	if _, _, err := net.SplitHostPort(o.Server); err != nil {
		return nil, fmt.Errorf("read address of xDS server: %w", err)
	}
	if !utf8.ValidString(o.NodeID) {
		return nil, fmt.Errorf("read node id: %q is not UTF-8", o.NodeID)
	}
	data, err := structpb.NewStruct(o.Metadata)
	if err != nil {
		return nil, fmt.Errorf("read node metadata: %w", err)
	}
	headers, err := readHeaders(o.Headers)
	if err != nil {
		return nil, fmt.Errorf("read headers for xDS server: %w", err)
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.MinBackoff <= 0 {
		o.MinBackoff = DefaultMinBackoff
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = DefaultMaxBackoff
	}
	o.MaxBackoff = max(o.MaxBackoff, o.MinBackoff)
	return &Client{
		options: o, headers: headers, lines: newLines(o.Log.With("server", o.Server)),
		node: &core.Node{Id: o.NodeID, UserAgentName: agent, Metadata: data},
	}, nil
}

// readHeaders returns headers as gRPC takes them. An error has no value, which may be secret.
func readHeaders(all map[string]string) (metadata.MD, error) {
	headers := metadata.MD{}
	for name, value := range all {
		key := strings.ToLower(name)
		switch {
		case key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
			return nil, fmt.Errorf("%q is no name of a header", name)
		case isReserved(key):
			return nil, fmt.Errorf("%q is a header of gRPC itself", name)
		case len(headers[key]) > 0:
			return nil, fmt.Errorf("%q is set twice", name)
		case !strings.HasSuffix(key, "-bin") && strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, fmt.Errorf("the value of %q has a character that is not printable ASCII", name)
		}
		headers.Set(key, value)
	}
	return headers, nil
}

// isReserved reports whether gRPC sets a header itself, and would leave out ours.
func isReserved(key string) bool {
	return key == "content-type" || key == "user-agent" || key == "te" || strings.HasPrefix(key, "grpc-")
}

// Status returns the present status.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// update changes the status.
func (c *Client) update(change func(s *Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}
