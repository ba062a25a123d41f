package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for tests.
type Authority struct {
	// CA is the path of its certificate, in PEM.
	CA string

	tb     testing.TB
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// NewAuthority returns an authority of its own.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, folder: tb.TempDir(), key: newKey(tb)}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority for tests"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	a.CA = a.write("ca.crt", "CERTIFICATE", der)
	return a
}

// Issue returns the paths of a certificate and its key, in PEM. The certificate is for a name
// and 127.0.0.1, for servers and clients, until notAfter.
func (a *Authority) Issue(name string, notAfter time.Time) (cert, key string) {
	a.tb.Helper()
	of := newKey(a.tb)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &of.PublicKey, a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(of)
	if err != nil {
		a.tb.Fatal(err)
	}
	return a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", keyBytes)
}

// Args are the settings of a Redis with a certificate of the authority, which encrypts its
// cluster bus and replication as well. Its port without TLS stays open for tests.
func (a *Authority) Args() []string {
	cert, key := a.Issue("localhost", time.Now().Add(time.Hour))
	return []string{
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", a.CA, "--tls-auth-clients", "optional",
		"--tls-cluster", "yes", "--tls-replication", "yes",
	}
}

func (a *Authority) write(name, kind string, der []byte) string {
	a.tb.Helper()
	path := filepath.Join(a.folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.tb.Fatal(err)
	}
	return path
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}
