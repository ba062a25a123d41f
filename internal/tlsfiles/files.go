package tlsfiles

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// checkEvery is the least time between two looks at the files: a look at each handshake would
// let clients make the process call the system.
const checkEvery = time.Second

// files are PEM files and the configuration that was made of them. They are safe for
// concurrent use.
type files struct {
	paths []string // without empty ones
	build func() (*tls.Config, error)
	// failed, unless nil, is called with the reason why changed files are not used.
	failed func(error)

	mu      sync.Mutex // guards the fields below
	config  *tls.Config
	content [sha256.Size]byte // hash of the files that config was made of
	checked time.Time         // when the files were last read
	reason  string            // the last one that failed was called with
}

// current returns the configuration of the present files, or the last one that was usable. It
// returns an error only if none ever was.
func (f *files) current() (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.config != nil && time.Since(f.checked) < checkEvery {
		return f.config, nil
	}
	f.checked = time.Now()
	content := f.hash()
	if f.config != nil && content == f.content {
		return f.config, nil
	}
	config, err := f.build()
	switch {
	case err == nil:
		f.config, f.content, f.reason = config, content, ""
	case f.config == nil:
		return nil, err
	case f.failed != nil && err.Error() != f.reason: // it is tried again at the next look
		f.reason = err.Error()
		f.failed(err)
	}
	return f.config, nil
}

// expires returns the time until which the certificate in use is valid, or zero without one.
func (f *files) expires() time.Time {
	config, err := f.current()
	if err != nil || len(config.Certificates) == 0 || config.Certificates[0].Leaf == nil {
		return time.Time{}
	}
	return config.Certificates[0].Leaf.NotAfter
}

// hash returns a hash of the files. Times and sizes are not enough: a certificate often has
// the size of the one before, and tools keep times.
func (f *files) hash() (sum [sha256.Size]byte) {
	all := sha256.New()
	for _, path := range f.paths {
		text, err := os.ReadFile(path)
		of := sha256.Sum256(text)
		_, _ = all.Write(of[:])
		_, _ = fmt.Fprint(all, err)
	}
	all.Sum(sum[:0])
	return sum
}

// notEmpty returns the paths that are not empty.
func notEmpty(paths ...string) (all []string) {
	for _, path := range paths {
		if path != "" {
			all = append(all, path)
		}
	}
	return all
}

// readPool reads the certificates of authorities.
func readPool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read authorities: %s holds no certificate in PEM", path)
	}
	return pool, nil
}

// holds reports whether the first block in PEM of a file is of a kind.
func holds(path, kind string) bool {
	text, err := os.ReadFile(path)
	block, _ := pem.Decode(text)
	return err == nil && block != nil && strings.HasSuffix(block.Type, kind)
}

// readPair reads a certificate and its key.
func readPair(certPath, keyPath string) (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certPath, keyPath)
	switch text := fmt.Sprint(err); {
	case err != nil && holds(certPath, "PRIVATE KEY") && holds(keyPath, "CERTIFICATE"):
		return pair, fmt.Errorf("read certificate %s and key %s: the first holds the key and the second the certificate: swap them", certPath, keyPath)
	case err != nil && holds(keyPath, "CERTIFICATE"):
		return pair, fmt.Errorf("read key %s: it holds a certificate, and no private key", keyPath)
	case err != nil && holds(certPath, "PRIVATE KEY"):
		return pair, fmt.Errorf("read certificate %s: it holds a private key, and no certificate", certPath)
	case strings.Contains(text, "does not match"):
		return pair, fmt.Errorf("read certificate %s and key %s: the key is of another certificate", certPath, keyPath)
	case strings.Contains(text, "any PEM data in certificate"), strings.Contains(text, "any \"CERTIFICATE\""):
		return pair, fmt.Errorf("read certificate %s: it holds no certificate in PEM", certPath)
	case strings.Contains(text, "any PEM data in key"), strings.Contains(text, "block with type ending in \"PRIVATE KEY\""):
		return pair, fmt.Errorf("read key %s: it holds no private key in PEM", keyPath)
	}
	if err != nil {
		return pair, fmt.Errorf("read certificate %s and key %s: %w", certPath, keyPath, err)
	}
	if pair.Leaf != nil && time.Now().After(pair.Leaf.NotAfter) {
		return pair, fmt.Errorf("read certificate %s: it expired on %s", certPath, pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return pair, nil
}
