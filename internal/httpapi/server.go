package httpapi

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpfields"
	"github.com/limitgate/limitgate/internal/users"
)

const (
	// MaxConns is the maximum number of open connections: gateways and sidecars keep few. With
	// its buffers a connection holds up to 40 KiB, and a body of up to maxBodyBytes beside them, in a buffer of up
	// to twice its size, until its request is decided. See Bound.
	MaxConns = 2048
	// closing is how many connections more may be about to end, of those whose place others have taken.
	closing = 1024
	// maxHeaderBytes bounds the request line and the headers: gateways pass on those of their
	// clients, of which nginx takes 32 KiB.
	maxHeaderBytes = 32 << 10
	// maxBodyBytes bounds a body of JSON. Of those for /check the first few KiB are looked at.
	maxBodyBytes = 64 << 10
	// readTimeout bounds the time from the first byte of a request to its last, and that to the
	// first byte of a connection.
	readTimeout = 5 * time.Second
	// writeTimeout bounds the time until a client has taken an answer.
	writeTimeout = 5 * time.Second
	// idleTimeout is more than gateways keep their connections by default: nginx 60 s.
	idleTimeout = 2 * time.Minute
)

// Handler decides and answers commands for users; commands.Handler is one.
type Handler interface {
	// Decide answers RL.CHECK, RL.RESERVE and RL.ACQUIRE, appending to answers.
	Decide(u *users.User, peer netip.Addr, cmds [][][]byte, answers []commands.Answer) []commands.Answer
	// Peek answers RL.PEEK.
	Peek(u *users.User, args [][]byte) commands.Answer
	// Call answers any other command in RESP3.
	Call(ctx context.Context, u *users.User, args [][]byte) (reply []byte)
	// LogIn returns the user of a client, or nil, and the text of an error reply.
	LogIn(ctx context.Context, addr netip.Addr, certificate *x509.Certificate, name, password string) (u *users.User, errReply string)
}

// Options configure a Server.
type Options struct {
	Handler Handler
	Gateway Gateway
	// TenantHeader is the header with the tenant of a request at /check, or empty. The value of
	// a header for credentials is hashed.
	TenantHeader string
	// Tokens, unless nil, checks bearer tokens in a TenantHeader of Authorization, which name
	// the tenant then.
	Tokens users.Tokens
	// CostHeader is the header with the cost of a request at /check, or empty.
	CostHeader string
	// DimHeaders are the headers with dimensions of a request at /check, by their names.
	DimHeaders []DimHeader
	// TraceHeader, unless empty, is the header whose value becomes the dimension of the same name of
	// requests that are decided, if there is room for another dimension.
	TraceHeader string
	Addresses   AddressRule
	// NoUsers reports that clients need not authenticate, for errors.
	NoUsers bool
	Format  httpfields.Format
	Log     *slog.Logger
	// ShutdownTimeout bounds the time for requests under way at the end.
	ShutdownTimeout time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// DimHeader is a header whose value is that of a dimension.
type DimHeader struct{ Dim, Header string }

// Server answers requests over HTTP.
type Server struct {
	opts         Options
	http         *fasthttp.Server
	tenantHashed bool   // the tenant's header is for credentials
	exposed      string // the value of Access-Control-Expose-Headers
	codes        [len(countedCodes)]atomic.Int64
	warnings     warnings
	turns        turns
	ctx          context.Context // that of Run
}

// countedCodes are the status codes of answers, which are counted.
var countedCodes = [...]int{200, 400, 401, 403, 404, 405, 408, 413, 429, 431, 500, 503}

// New returns a server.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{opts: opts, tenantHashed: httpfields.IsCredential(opts.TenantHeader), exposed: opts.Format.Exposed(), ctx: context.Background()}
	s.warnings.log = opts.Log
	s.turns.large = make(chan struct{}, maxLarge)
	s.http = &fasthttp.Server{
		Handler: s.serve, ErrorHandler: s.refuse,
		Concurrency: MaxConns + closing, ReadBufferSize: maxHeaderBytes, WriteBufferSize: 4 << 10,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		// Bodies are read where JSON is expected, and left where nobody asked for one.
		MaxRequestBodySize: maxBodyBytes, StreamRequestBody: true, DisablePreParseMultipartForm: true,
		NoDefaultServerHeader: true, NoDefaultContentType: true,
		CloseOnShutdown: true, LazyRequestTime: true,
		Logger: quiet{}, SecureErrorLogMessage: true,
	}
	return s
}

// quiet drops the log of the HTTP library: it writes what clients send.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// Run serves the connections of l until ctx ends, and then those requests that are under way, for
// ShutdownTimeout at most. It closes l, which Bound has bounded.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	s.ctx = ctx
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	_ = l.Close() // or Serve would begin to accept, if it has not yet
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.ShutdownTimeout)
	defer cancel()
	err := s.http.ShutdownWithContext(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		s.opts.Log.Warn("HTTP requests were still under way at the end of shutdown_timeout")
		err = nil
	}
	<-served
	if err != nil {
		return fmt.Errorf("stop http: %w", err)
	}
	return nil
}

// Connections returns the number of open connections.
func (s *Server) Connections() int { return int(s.http.GetOpenConnectionsCount()) }

// Codes returns the numbers of answers by their status code.
func (s *Server) Codes() map[int]int64 {
	all := make(map[int]int64, len(countedCodes))
	for i, code := range countedCodes {
		all[code] = s.codes[i].Load()
	}
	return all
}

// count counts an answer.
func (s *Server) count(code int) {
	for i, counted := range countedCodes {
		if counted == code {
			s.codes[i].Add(1)
			return
		}
	}
}

// user returns the user of a request, whose credentials are in a header, or writes why there is none.
func (s *Server) user(ctx *fasthttp.RequestCtx, header string) (u *users.User, ok bool) {
	name, password, ok := credentials(string(ctx.Request.Header.Peek(header)))
	if !ok {
		s.problem(ctx, fasthttp.StatusUnauthorized, header+" is neither Basic with a user and a password nor Bearer with a token")
		return nil, false
	}
	var certificate *x509.Certificate
	if state := ctx.TLSConnectionState(); state != nil && len(state.PeerCertificates) > 0 {
		certificate = state.PeerCertificates[0]
	}
	u, errReply := s.opts.Handler.LogIn(s.ctx, peerOf(ctx), certificate, name, password)
	switch {
	case errReply == "":
		return u, true
	case name == users.TokenName && s.opts.Tokens == nil:
		errReply = "WRONGPASS no tokens are taken here: --jwt-jwks names their keys"
	case name != "" && s.opts.NoUsers:
		errReply = "WRONGPASS there are no users here, for want of --users: leave out " + header
	}
	s.errReply(ctx, errReply)
	return nil, false
}

// peerOf returns the address of the peer of a connection, which is not valid on a Unix socket.
func peerOf(ctx *fasthttp.RequestCtx) netip.Addr {
	if tcp, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
