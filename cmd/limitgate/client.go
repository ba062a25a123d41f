package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/limitgate/limitgate/internal/tlsfiles"
)

// clientFlags are the flags of a command that asks a running limitgate.
type clientFlags struct {
	tls   bool
	files tlsfiles.ClientOptions
}

func (f *clientFlags) define(fs *flag.FlagSet) {
	fs.BoolVar(&f.tls, "tls", false, "connect by TLS")
	fs.StringVar(&f.files.CA, "tls-ca", "", "the `file` of the authorities that sign its certificate; empty is the system's")
	fs.StringVar(&f.files.ServerName, "tls-server-name", "", "the `name` in its certificate; empty is the host of the address")
	fs.StringVar(&f.files.Cert, "tls-cert", "", "the `file` of a certificate for this client")
	fs.StringVar(&f.files.Key, "tls-key", "", "the `file` of its key")
}

// newClient returns a client of a limitgate that never retries.
func (f *clientFlags) newClient(addr string, timeout time.Duration) (*redis.Client, error) {
	if !f.tls {
		if f.files.CA != "" || f.files.ServerName != "" || f.files.Cert != "" || f.files.Key != "" {
			return nil, errors.New("certificates are for TLS: set --tls")
		}
		return newClient(addr, timeout, nil), nil
	}
	c, err := tlsfiles.NewClient(f.files)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(addr)
	config, err := c.Config(host)
	if err != nil {
		return nil, err
	}
	return newClient(addr, timeout, config), nil
}

// newClient returns a client of a limitgate that never retries. Without a configuration it
// does not encrypt.
func newClient(addr string, timeout time.Duration, config *tls.Config) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, TLSConfig: config,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, ContextTimeoutEnabled: true,
		DisableIdentity: true, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// explainDial adds advice to an error of a refused connection.
func explainDial(addr string, err error) error {
	var network *net.OpError
	if !errors.As(err, &network) || network.Op != "dial" {
		return err
	}
	return fmt.Errorf("%w (is limitgate serve running at %s?)", err, addr)
}
