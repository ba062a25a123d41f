package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/limitgate/limitgate/internal/tlsfiles"
	"github.com/limitgate/limitgate/internal/wrongport"
	"github.com/limitgate/limitgate/limit"
)

// listen opens all listeners before anything else starts, so that a port in use ends the
// program with a clear error.
func (p *Proxy) listen() (err error) {
	s := p.settings
	defer func() {
		if err != nil {
			p.closeListeners()
		}
	}()
	if p.front, err = net.Listen("tcp", s.Listen); err != nil {
		return fmt.Errorf("listen for clients: %w%s", err, ListenAdvice(err, s.NameOf("listen")))
	}
	if s.Admin != "" {
		if p.admin, err = net.Listen("tcp", s.Admin); err != nil {
			return fmt.Errorf("listen for admin: %w%s", err, ListenAdvice(err, s.NameOf("admin")))
		}
	}
	onUnix := false
	if s.HTTP.Listen != "" {
		if p.httpFront, onUnix, err = p.listenHTTP(); err != nil {
			return err
		}
	}
	if s.TLSCert != "" {
		if err := p.encrypt(onUnix); err != nil {
			return fmt.Errorf("listen by TLS: %w", err)
		}
		return nil
	}
	if p.admin != nil {
		p.admin = wrongport.Plain(p.admin, p.log)
	}
	if p.httpFront != nil {
		p.httpFront = wrongport.Plain(p.httpFront, p.log)
	}
	return nil
}

// openFronts opens all listeners, and makes the servers of those that are optional.
func (p *Proxy) openFronts(addrs *limit.AddrHasher) (err error) {
	if err := p.listen(); err != nil {
		return err
	}
	if p.rls, err = p.openRateLimitService(addrs); err != nil {
		p.closeListeners()
		return err
	}
	if p.httpFront != nil {
		p.http = p.newHTTP()
		p.registerHTTPMetrics()
	}
	return nil
}

// closeListeners closes the listeners of a proxy that does not run.
func (p *Proxy) closeListeners() {
	for _, l := range []net.Listener{p.front, p.admin, p.httpFront} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// ListenAdvice returns the way out of an error of a listener whose address is that of a setting.
func ListenAdvice(err error, setting string) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf(" (another process listens there: end it, or set another address by %s)", setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf(" (this host does not have that address: set another one by %s)", setting)
	case errors.Is(err, syscall.EACCES):
		return fmt.Sprintf(" (this user may not listen there: set a port above 1023 by %s)", setting)
	}
	return ""
}

// encrypt makes the listeners speak TLS, but for that of a Unix socket. Clients need a certificate, and
// those of admin none: probes and scrapers rarely have one.
func (p *Proxy) encrypt(onUnix bool) error {
	s := p.settings
	o := tlsfiles.ServerOptions{
		Cert: s.TLSCert, Key: s.TLSKey,
		Failed: func(err error) { p.log.Error("failed to read the TLS files, using the earlier ones", "error", err) },
	}
	if p.admin != nil {
		forAdmin, err := tlsfiles.NewServer(o)
		if err != nil {
			return err
		}
		p.admin = tls.NewListener(wrongport.Encrypted(p.admin, p.log), forAdmin.Config())
	}
	o.ClientCA = s.TLSClientCA
	forClients, err := tlsfiles.NewServer(o)
	if err != nil {
		return err
	}
	p.front = wrongport.NewTLSListener(p.front, forClients.Config(), p.log)
	if p.httpFront != nil && !onUnix {
		p.httpFront = tls.NewListener(wrongport.Encrypted(p.httpFront, p.log), forClients.Config())
	}
	p.clientsCertExpires = forClients.Expires
	return nil
}
