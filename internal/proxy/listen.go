package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/limitgate/limitgate/internal/tlsfiles"
)

// listen opens all listeners before anything else starts, so that a port in use ends the
// program with a clear error.
func (p *Proxy) listen() (err error) {
	s := p.settings
	front, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen for clients: %w%s", err, listenAdvice(err, "--listen"))
	}
	var admin net.Listener
	if s.Admin != "" {
		if admin, err = net.Listen("tcp", s.Admin); err != nil {
			_ = front.Close()
			return fmt.Errorf("listen for admin: %w%s", err, listenAdvice(err, "--admin"))
		}
	}
	if s.TLSCert != "" {
		if err := p.encrypt(&front, &admin); err != nil {
			_ = front.Close()
			if admin != nil {
				_ = admin.Close()
			}
			return fmt.Errorf("listen by TLS: %w", err)
		}
	}
	if s.HTTP.Listen != "" {
		if p.httpFront, err = p.listenHTTP(); err != nil {
			_ = front.Close()
			if admin != nil {
				_ = admin.Close()
			}
			return err
		}
	}
	p.front, p.admin = front, admin
	return nil
}

// listenAdvice returns the way out of an error of a listener whose address is that of a flag.
func listenAdvice(err error, flag string) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf(" (another process listens there: end it, or set another address by %s)", flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf(" (this host does not have that address: set another one by %s)", flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Sprintf(" (this user may not listen there: set a port above 1023 by %s)", flag)
	}
	return ""
}

// encrypt makes the listeners speak TLS. Only clients of front need a certificate: probes and
// scrapers rarely have one.
func (p *Proxy) encrypt(front, admin *net.Listener) error {
	s := p.settings
	o := tlsfiles.ServerOptions{
		Cert: s.TLSCert, Key: s.TLSKey,
		Failed: func(err error) { p.log.Error("failed to read the TLS files, using the earlier ones", "error", err) },
	}
	if *admin != nil {
		forAdmin, err := tlsfiles.NewServer(o)
		if err != nil {
			return err
		}
		*admin = tls.NewListener(*admin, forAdmin.Config())
	}
	o.ClientCA = s.TLSClientCA
	forClients, err := tlsfiles.NewServer(o)
	if err != nil {
		return err
	}
	*front = tls.NewListener(*front, forClients.Config())
	p.clientsCertExpires = forClients.Expires
	return nil
}
