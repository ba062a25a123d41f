package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
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
	stamps  []stamp   // of the files that config or the last failure came from
	checked time.Time // when the stamps were last read
}

// stamp changes when a file does.
type stamp struct {
	modified time.Time
	size     int64
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
	stamps := f.read()
	if f.config != nil && equal(stamps, f.stamps) {
		return f.config, nil
	}
	config, err := f.build()
	f.stamps = stamps
	switch {
	case err == nil:
		f.config = config
	case f.config == nil:
		return nil, err
	case f.failed != nil:
		f.failed(err)
	}
	return f.config, nil
}

// read returns the stamps of the files. A file that is missing has the zero stamp.
func (f *files) read() []stamp {
	stamps := make([]stamp, len(f.paths))
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

func equal(a, b []stamp) bool {
	for i := range a {
		if !a[i].modified.Equal(b[i].modified) || a[i].size != b[i].size {
			return false
		}
	}
	return len(a) == len(b)
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
		return nil, fmt.Errorf("read authorities: %s has no certificate in PEM form", path)
	}
	return pool, nil
}

// readPair reads a certificate and its key.
func readPair(certPath, keyPath string) (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		return pair, fmt.Errorf("read certificate %s and key %s: %w", certPath, keyPath, err)
	}
	if pair.Leaf != nil && time.Now().After(pair.Leaf.NotAfter) {
		return pair, fmt.Errorf("read certificate %s: it expired on %s", certPath, pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return pair, nil
}
