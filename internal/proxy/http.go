package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/httpapi"
	"github.com/limitgate/limitgate/internal/httpfields"
	"github.com/limitgate/limitgate/internal/tlsfiles"
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
	if o.NoUsers = p.users == nil; !o.NoUsers {
		o.Tokens = p.users.tokens
	}
	for _, d := range h.DimHeaders {
		o.DimHeaders = append(o.DimHeaders, httpapi.DimHeader(d))
	}
	return httpapi.New(o)
}

// listenHTTP opens the listener of checks over HTTP.
func (p *Proxy) listenHTTP() (net.Listener, error) {
	addr := p.settings.HTTP.Listen
	if path, unix := strings.CutPrefix(addr, config.UnixPrefix); unix {
		l, err := listenUnix(path)
		if err != nil {
			return nil, err
		}
		return httpapi.Bound(l), nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w%s", err, listenAdvice(err, "--http"))
	}
	l = httpapi.Bound(l)
	s := p.settings
	if s.TLSCert == "" {
		return l, nil
	}
	server, err := tlsfiles.NewServer(tlsfiles.ServerOptions{
		Cert: s.TLSCert, Key: s.TLSKey, ClientCA: s.TLSClientCA,
		Failed: func(err error) { p.log.Error("failed to read the TLS files, using the earlier ones", "error", err) },
	})
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen by TLS: %w", err)
	}
	return tls.NewListener(l, server.Config()), nil
}

// socketMode lets the group of the process connect, such as that of a gateway.
const socketMode = 0o660

// listenUnix opens a Unix socket. It replaces one that no process listens on any more.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("listen for HTTP: %s is in use (another process listens there: end it, or set another path by --http)", path)
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	} else if err == nil {
		return nil, fmt.Errorf("listen for HTTP: %s is there and is no socket: name another path by --http", path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w (the folder must be there, and this user must be allowed to write to it)", err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen for HTTP: %w", err)
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
	p.metrics.MustRegister(httpCodes{p.http, prometheus.NewDesc("limitgate_http_answers_total", "Answers over HTTP by their status code.", []string{"code"}, nil)})
	p.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "limitgate_http_connections", Help: "Open connections of checks over HTTP."},
		func() float64 { return float64(p.http.Connections()) }))
}

// httpCodes reads the numbers of answers at a scrape.
type httpCodes struct {
	server *httpapi.Server
	desc   *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c httpCodes) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector.
func (c httpCodes) Collect(to chan<- prometheus.Metric) {
	for code, n := range c.server.Codes() {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), strconv.Itoa(code))
	}
}
