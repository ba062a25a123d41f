package config

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxSecretBytes is the maximum size of a secret; a larger file is not the secret.
const maxSecretBytes = 4 << 10

// ReadSecret reads the secret with which addresses are hashed: the content of the file at
// path without one newline at the end, 16 bytes to 4 KiB. The file must be a regular one
// that other users may neither read, write nor execute. Errors contain the path and never
// the content.
func ReadSecret(path string) ([]byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := checkSecretMode(info); err != nil {
		return nil, fmt.Errorf("read secret: %s %w", path, err)
	}
	// Two bytes more than allowed: a newline, and one to detect a longer file.
	content, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+2))
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	secret := strings.TrimSuffix(string(content), "\n")
	switch {
	case len(secret) < limit.MinSecretBytes:
		return nil, fmt.Errorf("read secret: %s holds %d bytes, and at least %d are needed: openssl rand -hex 32 makes a good one",
			path, len(secret), limit.MinSecretBytes)
	case len(secret) > maxSecretBytes:
		return nil, fmt.Errorf("read secret: %s holds more than %d bytes: is it the right file?", path, maxSecretBytes)
	}
	return []byte(secret), nil
}

// checkSecretMode returns an error for a file that every user may use.
func checkSecretMode(info fs.FileInfo) error {
	const others = 0o007
	if mode := info.Mode().Perm(); mode&others != 0 {
		return fmt.Errorf("is open to every user of this machine (mode %04o): chmod 600 it, or in Kubernetes mount it with defaultMode: 0400", mode)
	}
	return nil
}
