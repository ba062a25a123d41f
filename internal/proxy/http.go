package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/httpfields"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/metrics"
)

// newHTTP returns the server of checks over HTTP.
func (p *Proxy) newHTTP() *httpapi.Server {
	h := &p.settings.HTTP
	// The settings have names that the package knows: a test compares them.
	gateway, _ := httpapi.ParseGateway(h.Gateway)
	format, _ := httpfields.ParseFormat(h.Headers)
	o := httpapi.Options{
		Handler: p.handler, Gateway: gateway, TenantHeader: h.TenantHeader, CostHeader: h.CostHeader, Format: format,
		Addresses: httpapi.AddressRule{Header: h.AddressHeader, Hops: h.TrustedHops, Trusted: h.TrustedCIDRs},
		Log:       p.log, ShutdownTimeout: p.settings.ShutdownTimeout,
	}
	if p.tracer != nil {
		o.TraceHeader = limit.TraceDim
	}
	if o.NoUsers = p.users == nil; !o.NoUsers {
		o.Tokens = p.users.tokens
	}
	for _, d := range h.DimHeaders {
		o.DimHeaders = append(o.DimHeaders, httpapi.DimHeader(d))
		if httpfields.IsCredential(d.Header) && p.limits.Set().CountsInClear(d.Dim) {
			p.log.Warn("names of buckets have the values of a header for credentials, in the store and in RL.TOP: declare its dimension in the limits file with hash: true", "header", d.Header, "dimension", d.Dim)
		}
	}
	return httpapi.New(o)
}

// listenHTTP opens the listener of checks over HTTP, which does not speak TLS yet. OnUnix reports a
// Unix socket, which never does.
func (p *Proxy) listenHTTP() (l net.Listener, onUnix bool, err error) {
	path, onUnix := strings.CutPrefix(p.settings.HTTP.Listen, config.UnixPrefix)
	if onUnix {
		l, err = listenUnix(path, "HTTP", p.settings.NameOf("http.listen"))
	} else if l, err = net.Listen("tcp", path); err != nil {
		err = fmt.Errorf("listen for HTTP: %w%s", err, ListenAdvice(err, p.settings.NameOf("http.listen")))
	}
	if err != nil {
		return nil, onUnix, err
	}
	return httpapi.Bound(l), onUnix, nil
}

// socketMode lets the group of the process connect, such as that of a gateway.
const socketMode = 0o660

// listenUnix opens a Unix socket for the front of a setting. It replaces a socket that no process
// listens on any more.
func listenUnix(path, front, setting string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("listen for %s: %s is in use (another process listens there: end it, or set another path by %s)", front, path, setting)
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	} else if err == nil {
		return nil, fmt.Errorf("listen for %s: %s is there and is no socket: name another path by %s", front, path, setting)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w (the folder must be there, and this user must be allowed to write to it)", front, err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen for %s: %w", front, err)
	}
	return l, nil
}

// runHTTP serves checks over HTTP.
func (p *Proxy) runHTTP(ctx context.Context) error {
	p.count.WaitFirst(ctx)
	return p.http.Run(ctx, p.httpFront)
}

// httpAddr returns the address of checks over HTTP, or off.
func (p *Proxy) httpAddr() string {
	if p.httpFront == nil {
		return "off"
	}
	return p.httpFront.Addr().String()
}

// registerHTTPMetrics registers the metrics of HTTP.
func (p *Proxy) registerHTTPMetrics() {
	answers := map[string]func() int64{}
	for code := range p.http.Codes() {
		answers[strconv.Itoa(code)] = func() int64 { return p.http.Codes()[code] }
	}
	metrics.LabelledCounter(p.metrics, "limitgate_http_answers_total", "Answers over HTTP by their status code.", "code", answers)
	metrics.Gauge(p.metrics, "limitgate_http_connections", "Open connections of checks over HTTP.", func() float64 { return float64(p.http.Connections()) })
}
