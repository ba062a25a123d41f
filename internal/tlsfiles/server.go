package tlsfiles

import (
	"crypto/tls"
	"errors"
	"time"
)

// ServerOptions name the files of a server.
type ServerOptions struct {
	// Cert and Key are the files of the server's certificate, with its chain.
	Cert, Key string
	// ClientCA is the file of the authorities that sign clients' certificates, which clients
	// then must have. If it is empty, no certificate is asked for.
	ClientCA string
	// ClientSAN, unless empty, is a DNS name that certificates of clients must be for.
	ClientSAN string
	// Failed, unless nil, is called with the reason why changed files are not used.
	Failed func(error)
}

// Server makes the configuration of a server. It is safe for concurrent use.
type Server struct {
	files files
}

// NewServer returns a server, or an error if the files cannot be used.
func NewServer(o ServerOptions) (*Server, error) {
	if o.Cert == "" || o.Key == "" {
		return nil, errors.New("TLS needs a certificate file and a key file")
	}
	s := new(Server)
	s.files = files{paths: notEmpty(o.Cert, o.Key, o.ClientCA), failed: o.Failed, build: func() (*tls.Config, error) {
		pair, err := readPair(o.Cert, o.Key)
		if err != nil {
			return nil, err
		}
		config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
		if o.ClientCA != "" {
			if config.ClientCAs, err = readPool(o.ClientCA); err != nil {
				return nil, err
			}
			config.ClientAuth = tls.RequireAndVerifyClientCert
			// A resumed session would skip the check of the client's certificate against the
			// authorities of today, see CVE-2025-68121.
			config.SessionTicketsDisabled = true
			if o.ClientSAN != "" {
				config.VerifyConnection = func(c tls.ConnectionState) error { return c.PeerCertificates[0].VerifyHostname(o.ClientSAN) }
			}
		}
		return config, nil
	}}
	_, err := s.files.current()
	return s, err
}

// Expires returns the time until which the certificate in use is valid.
func (s *Server) Expires() time.Time { return s.files.expires() }

// Config returns a configuration that every handshake takes from the present files.
func (s *Server) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.files.current() },
	}
}
