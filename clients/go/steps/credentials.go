package steps

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Credentials are those of a driver, from its environment. All are empty where the server
// has neither TLS nor users.
type Credentials struct {
	CA       string // CLIENT_CA, the path of the authority; empty without TLS
	Cert     string // CLIENT_CERT, the path of the client's certificate, or empty
	Key      string // CLIENT_KEY, the path of its key
	User     string // CLIENT_USER, empty where the client does not authenticate by password
	Password string // CLIENT_PASSWORD
}

// readCredentials reads the environment.
func readCredentials() Credentials {
	return Credentials{
		CA: os.Getenv("CLIENT_CA"), Cert: os.Getenv("CLIENT_CERT"), Key: os.Getenv("CLIENT_KEY"),
		User: os.Getenv("CLIENT_USER"), Password: os.Getenv("CLIENT_PASSWORD"),
	}
}

// TLS returns the configuration of connections, which is nil without TLS.
func (c Credentials) TLS() *tls.Config {
	if c.CA == "" {
		return nil
	}
	authority, err := os.ReadFile(c.CA)
	if err != nil {
		fail(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if c.Cert != "" {
		own, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			fail(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
