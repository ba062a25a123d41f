package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

const (
	// secretPrefix is in front of a secret, and minKey and maxKey bound its bytes, as Standard
	// Webhooks says.
	secretPrefix = "whsec_"
	minKey       = 24
	maxKey       = 64
	// maxSecrets bounds the secrets that sign each request. While one replaces another there are two.
	maxSecrets = 2
	// example is how to make a line of the file.
	example = `printf 'whsec_%s\n' "$(openssl rand -base64 32)" makes a good one`
)

// secrets are the keys of the secret file. They are not safe for concurrent use.
type secrets struct {
	path string
	read func(path string) (string, error)
	log  *slog.Logger

	keys   [][]byte
	text   string // that keys were made of
	reason string // why the present file is not in use, as it was logged; empty if it is
}

// openSecrets reads the secrets of the options.
func openSecrets(o Options) (*secrets, error) {
	s := &secrets{path: o.SecretFile, read: o.ReadFile, log: o.Log}
	return s, s.load()
}

// current returns the keys of the present file, or the earlier ones if it cannot be used.
func (s *secrets) current() [][]byte {
	err := s.load()
	switch {
	case err == nil:
		s.reason = ""
	case err.Error() != s.reason:
		s.reason = err.Error()
		s.log.Error("failed to read the secrets of the webhook, using the earlier ones", "error", err)
	}
	return s.keys
}

// load reads the file, and keeps the keys if it cannot be used.
func (s *secrets) load() error {
	text, err := s.read(s.path)
	if err != nil {
		return err
	}
	if s.keys != nil && text == s.text {
		return nil
	}
	keys, err := parseSecrets(text)
	if err != nil {
		return fmt.Errorf("read secrets of %s: %w", s.path, err)
	}
	s.keys, s.text = keys, text
	return nil
}

var (
	errNoSecret   = errors.New("there is none in it: " + example)
	errManySecret = fmt.Errorf("there are more than %d: leave the new one and the one that it replaces", maxSecrets)
)

// parseSecrets returns the keys of secrets, of which each line has one: whsec_ and 24 to 64 bytes in
// base64. There are one or two, and empty lines do not count. Errors do not contain secrets.
func parseSecrets(text string) (keys [][]byte, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		encoded, ok := strings.CutPrefix(line, secretPrefix)
		if !ok {
			return nil, fmt.Errorf("line %d does not begin with %s: %s", number, secretPrefix, example)
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d is not base64 behind %s: %s", number, secretPrefix, example)
		case len(key) < minKey || len(key) > maxKey:
			return nil, fmt.Errorf("line %d holds %d bytes, and must hold %d to %d: %s", number, len(key), minKey, maxKey, example)
		case len(keys) == maxSecrets:
			return nil, errManySecret
		}
		keys = append(keys, key)
	}
	if keys == nil {
		return nil, errNoSecret
	}
	return keys, nil
}
