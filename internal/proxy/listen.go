package proxy

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/tlsfiles"
)

// listen opens both listeners before anything else starts, so that a port in use ends the
// program with a clear error.
func listen(s *config.Settings, log *slog.Logger) (front, admin net.Listener, err error) {
	if front, err = net.Listen("tcp", s.Listen); err != nil {
		return nil, nil, fmt.Errorf("listen for clients: %w", err)
	}
	if s.Admin != "" {
		if admin, err = net.Listen("tcp", s.Admin); err != nil {
			_ = front.Close()
			return nil, nil, fmt.Errorf("listen for admin: %w", err)
		}
	}
	if s.TLSCert == "" {
		return front, admin, nil
	}
	if err := encrypt(s, log, &front, &admin); err != nil {
		_ = front.Close()
		if admin != nil {
			_ = admin.Close()
		}
		return nil, nil, fmt.Errorf("listen by TLS: %w", err)
	}
	return front, admin, nil
}

// encrypt makes the listeners speak TLS. Only clients of front need a certificate: probes and
// scrapers rarely have one.
func encrypt(s *config.Settings, log *slog.Logger, front, admin *net.Listener) error {
	o := tlsfiles.ServerOptions{
		Cert: s.TLSCert, Key: s.TLSKey,
		Failed: func(err error) { log.Error("failed to read the TLS files, using the earlier ones", "error", err) },
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
	return nil
}
