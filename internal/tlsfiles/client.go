package tlsfiles

import (
	"crypto/tls"
	"errors"
	"time"
)

// ClientOptions name the files of a client.
type ClientOptions struct {
	// CA is the file of the authorities that sign servers' certificates. Without one they
	// are the system's.
	CA string
	// Cert and Key are the files of the client's own certificate, or both empty.
	Cert, Key string
	// ServerName is the name in servers' certificates. If it is empty, it is the host that
	// is connected to.
	ServerName string
	// Failed, unless nil, is called with the reason why changed files are not used.
	Failed func(error)
}

// Client makes the configurations of a client's connections. It is safe for concurrent use.
type Client struct {
	serverName string
	files      files
}

// NewClient returns a client, or an error if the files cannot be used.
func NewClient(o ClientOptions) (*Client, error) {
	if (o.Cert == "") != (o.Key == "") {
		return nil, errors.New("a client certificate needs a certificate file and a key file")
	}
	c := &Client{serverName: o.ServerName}
	c.files = files{paths: notEmpty(o.CA, o.Cert, o.Key), failed: o.Failed, build: func() (config *tls.Config, err error) {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.CA != "" {
			if config.RootCAs, err = readPool(o.CA); err != nil {
				return nil, err
			}
		}
		if o.Cert != "" {
			pair, err := readPair(o.Cert, o.Key)
			if err != nil {
				return nil, err
			}
			config.Certificates = []tls.Certificate{pair}
		}
		return config, nil
	}}
	_, err := c.files.current()
	return c, err
}

// Expires returns the time until which the client's certificate in use is valid, or zero if it
// has none.
func (c *Client) Expires() time.Time { return c.files.expires() }

// Config returns the configuration of a connection to a host. The caller must not change it.
func (c *Client) Config(host string) (*tls.Config, error) {
	config, err := c.files.current()
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	if config.ServerName = c.serverName; config.ServerName == "" {
		config.ServerName = host
	}
	return config, nil
}
