package users

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// secret is the SHA-256 of a generated password, which is too long to be guessed.
type secret [sha256.Size]byte

// parseSecret parses 64 hexadecimal digits.
func parseSecret(text string) (s secret, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(s) {
		return s, false
	}
	copy(s[:], b)
	return s, true
}

// match reports whether sum is that of the password, in equal time for all.
func (s secret) match(sum [sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(sum[:], s[:]) == 1
}

// password is the Argon2id hash of a password that was chosen, see RFC 9106.
type password struct {
	text    string // as in the file
	memory  uint32 // KiB
	passes  uint32
	threads uint8
	salt    []byte
	hash    []byte
}

// Bounds of the parameters in a file, so that a slip of the pen does not take the memory or
// the processors of a proxy. The defaults are those that OWASP recommends.
const (
	maxMemory  = 64 << 10 // KiB
	maxPasses  = 10
	maxThreads = 4
	maxSalt    = 64
	minHash    = 16
	maxHash    = 64

	defaultMemory  = 19 << 10
	defaultPasses  = 2
	defaultThreads = 1
	defaultSalt    = 16
	defaultHash    = 32
)

var errPHC = errors.New("it is not a hash of Argon2id; limitgate hash-password --stdin makes one")

// parsePassword parses $argon2id$v=19$m=M,t=T,p=P$SALT$HASH, the PHC string format.
func parsePassword(text string) (p password, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, errPHC
	}
	p.text = text
	n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.threads)
	if err != nil || n != 3 || parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", p.memory, p.passes, p.threads) {
		return p, errPHC
	}
	if p.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil || len(p.salt) > maxSalt {
		return p, errPHC
	}
	if p.hash, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil || len(p.hash) < minHash || len(p.hash) > maxHash {
		return p, errPHC
	}
	if p.threads < 1 || p.threads > maxThreads || p.passes < 1 || p.passes > maxPasses || p.memory < 8*uint32(p.threads) || p.memory > maxMemory {
		return p, fmt.Errorf("the parameters %s are out of bounds: m is at most %d, t at most %d, p at most %d", parts[3], maxMemory, maxPasses, maxThreads)
	}
	return p, nil
}

// match reports whether given is the password. It takes as long, and as much memory, as the
// parameters say.
func (p *password) match(given string) bool {
	sum := argon2.IDKey([]byte(given), p.salt, p.passes, p.memory, p.threads, uint32(len(p.hash)))
	return subtle.ConstantTimeCompare(sum, p.hash) == 1
}

// GenerateSecret returns a password of 256 random bits and the rule with its hash.
func GenerateSecret() (password, rule string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	password = hex.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(password))
	return password, "#" + hex.EncodeToString(sum[:])
}

// HashPassword returns the rule with the hash of a password that was chosen.
func HashPassword(chosen string) (rule string) {
	salt := make([]byte, defaultSalt)
	_, _ = rand.Read(salt) // never fails
	hash := argon2.IDKey([]byte(chosen), salt, defaultPasses, defaultMemory, defaultThreads, defaultHash)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, defaultMemory, defaultPasses, defaultThreads, encode(salt), encode(hash))
}
