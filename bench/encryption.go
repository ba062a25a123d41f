package bench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// certificateTime is longer than a run.
const certificateTime = 24 * time.Hour

// serverName is the name in the proxies' certificate.
const serverName = "localhost"

// encryption is the TLS between the clients and a proxy.
type encryption struct {
	flags  []string    // of the proxy
	client *tls.Config // of its clients
}

// encryption returns the TLS of all proxies that have it. The first call makes their
// certificate, which signs itself.
func (l *lab) encryption() (*encryption, error) {
	if l.tls != nil {
		return l.tls, nil
	}
	der, key, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	cert, err := l.writePEM("certificate.pem", "CERTIFICATE", der)
	if err != nil {
		return nil, err
	}
	private, err := l.writePEM("key.pem", "PRIVATE KEY", key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	l.tls = &encryption{
		flags:  []string{"--tls-cert", cert, "--tls-key", private},
		client: &tls.Config{RootCAs: roots, ServerName: serverName},
	}
	return l.tls, nil
}

// selfSigned returns a certificate and its key, for ECDSA on P-256.
func selfSigned() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "limitgate-bench"}, DNSNames: []string{serverName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateTime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if cert, err = x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private); err != nil {
		return nil, nil, err
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return cert, key, err
}

func (l *lab) writePEM(name, kind string, der []byte) (path string, err error) {
	return l.writeFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
