package jwks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// fetchTimeout bounds a read of a JWKS by https, which delays the next one.
	fetchTimeout = 10 * time.Second
	// maxRedirects is how many redirects an issuer needs at most.
	maxRedirects = 3
)

// IsURL reports whether a JWKS is named by a URL, and not by a path.
func IsURL(name string) bool { return strings.Contains(name, "://") }

// read returns the text of the JWKS.
func (k *Keys) read(ctx context.Context) ([]byte, error) {
	name := k.options.JWKS
	if !IsURL(name) {
		text, err := k.options.ReadFile(name, maxJWKS)
		if err != nil {
			return nil, fmt.Errorf("read JWKS: %w", err)
		}
		return text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, fmt.Errorf("read JWKS: %w", err)
	}
	response, err := k.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read JWKS: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read JWKS: %s replied %s", name, response.Status)
	}
	return bounded(response.Body)
}

// bounded reads at most maxJWKS bytes.
func bounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxJWKS+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read JWKS: %w", err)
	case len(text) > maxJWKS:
		return nil, fmt.Errorf("read JWKS: it has more than %d bytes", maxJWKS)
	}
	return text, nil
}

// newClient returns a client that follows redirects to https only.
func newClient() *http.Client {
	return &http.Client{CheckRedirect: func(request *http.Request, via []*http.Request) error {
		switch {
		case request.URL.Scheme != "https":
			return errors.New("it redirects to a URL that is not https")
		case len(via) > maxRedirects:
			return errors.New("it redirects too often")
		}
		return nil
	}}
}
