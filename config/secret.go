package config

import (
	"bytes"
	"fmt"
	"os"

	"github.com/limitgate/limitgate/limit"
)

// maxSecretBytes bounds a secret file: a larger one is some other file.
const maxSecretBytes = 4 << 10

// ReadSecret reads the secret that addresses are hashed with: at least
// limit.MinSecretBytes bytes, in a file that others on the machine cannot read.
// A newline at its end does not count.
func ReadSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("read secret: %s can be read by everybody on this machine: chmod 600 it", path)
	}
	if info.Size() > maxSecretBytes {
		return nil, fmt.Errorf("read secret: %s has %d bytes: a secret has at most %d", path, info.Size(), maxSecretBytes)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	secret := bytes.TrimSuffix(bytes.TrimSuffix(content, []byte("\n")), []byte("\r"))
	if len(secret) < limit.MinSecretBytes {
		return nil, fmt.Errorf("read secret: %s has %d bytes: a secret has at least %d, make one with head -c 32 /dev/urandom | base64", path, len(secret), limit.MinSecretBytes)
	}
	return secret, nil
}
