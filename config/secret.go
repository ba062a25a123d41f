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
	secret, err := readSecretFile(path)
	if err == nil && len(secret) < limit.MinSecretBytes {
		err = fmt.Errorf("%s holds %d bytes, and at least %d are needed: openssl rand -hex 32 makes a good one",
			path, len(secret), limit.MinSecretBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	return []byte(secret), nil
}

// readSecretFile reads a file that is for this process only, without one newline at the end.
func readSecretFile(path string) (string, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if err := checkSecretMode(info); err != nil {
		return "", fmt.Errorf("%s %w", path, err)
	}
	// Two bytes more than allowed: a newline, and one to detect a longer file.
	content, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+2))
	if err != nil {
		return "", err
	}
	secret := strings.TrimSuffix(string(content), "\n")
	if len(secret) > maxSecretBytes {
		return "", fmt.Errorf("%s holds more than %d bytes: is it the right file?", path, maxSecretBytes)
	}
	return secret, nil
}

// checkSecretMode returns an error for a file that every user may use.
func checkSecretMode(info fs.FileInfo) error {
	const others = 0o007
	if mode := info.Mode().Perm(); mode&others != 0 {
		return fmt.Errorf("is open to every user of this machine (mode %04o): chmod 600 it, or in Kubernetes mount it with defaultMode: 0400", mode)
	}
	return nil
}

// ReadWebhookSecrets reads the secrets that sign events: the content of the file at path without
// one newline at the end, at most 4 KiB. The file must be a regular one that other users may
// neither read, write nor execute. Errors contain the path and never the content.
func ReadWebhookSecrets(path string) (string, error) {
	content, err := readSecretFile(path)
	if err != nil {
		return "", fmt.Errorf("read secrets: %w", err)
	}
	return content, nil
}

// ReadPassword reads the password of a user of Redis: the content of the file at path without
// one newline at the end, 1 byte to 4 KiB. The file must be a regular one that other users may
// neither read, write nor execute. Errors contain the path and never the content.
func ReadPassword(path string) (string, error) {
	content, err := readSecretFile(path)
	if err == nil && content == "" {
		err = fmt.Errorf("%s is empty: write the password into it", path)
	}
	switch {
	case err != nil:
	case strings.HasSuffix(content, "\r"):
		err = fmt.Errorf("%s ends with a carriage return, as lines of Windows do, which would be part of the password: remove it", path)
	case strings.Contains(content, "\n"):
		err = fmt.Errorf("%s has several lines: write the password alone into it", path)
	}
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return content, nil
}
