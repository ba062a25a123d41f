package limit

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
)

const (
	// hashedAddrBytes is how much of the HMAC is kept: 96 bits. Among 2^40 addresses a
	// collision by accident is not to be expected.
	hashedAddrBytes = 12
	// HashedAddrLen is the length of a hashed address as text.
	HashedAddrLen = hashedAddrBytes * 4 / 3
	// DefaultIPv4Bits is how many bits of an IPv4 address make one client by default.
	DefaultIPv4Bits = 32
	// DefaultIPv6Bits is how many bits of an IPv6 address make one client by default: a
	// provider assigns a prefix of this length to one customer.
	DefaultIPv6Bits = 64
	// MinSecretBytes is the length of the shortest secret with which addresses are
	// hashed.
	MinSecretBytes = 16
	// addrCacheSize bounds the cached hashed addresses: an HMAC costs more than the rest
	// of a decision. A full cache takes 14 MiB.
	addrCacheSize = 1 << 18
)

// AddrHasher turns addresses, and values of dimensions that are declared as hashed, into the text that represents
// them in bucket names: the HMAC-SHA-256, cut to 96 bits. It never returns a raw address or value. It is safe for
// concurrent use.
type AddrHasher struct {
	bits     Prefixes
	keyed    atomic.Pointer[keyedHasher]
	previous *AddrHasher // see Previous
}

// keyedHasher hashes with one secret.
type keyedHasher struct {
	seed maphash.Seed
	macs sync.Pool // of hash.Hash, ready to be written to
	// cache is direct-mapped: an address evicts the one with the same index.
	cache [addrCacheSize]atomic.Pointer[hashedAddr]
	// values is the same for values of dimensions.
	values [valueCacheSize]atomic.Pointer[hashedValue]
}

type hashedAddr struct {
	addr netip.Addr
	text [HashedAddrLen]byte
}

// RandomSecret returns a random secret.
func RandomSecret() []byte {
	secret := make([]byte, 2*MinSecretBytes)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// Prefixes are how many leading bits of an address make one client: addresses that agree in
// them are the same. Zero stands for the default.
type Prefixes struct {
	IPv4 int // up to 32
	IPv6 int // up to 128
}

// orDefault returns the numbers of bits that count.
func (p Prefixes) orDefault() Prefixes {
	return Prefixes{cmp.Or(p.IPv4, DefaultIPv4Bits), cmp.Or(p.IPv6, DefaultIPv6Bits)}
}

// NewAddrHasher returns a hasher that groups addresses by their prefixes. All proxies that
// share a store need the same secret and prefixes.
func NewAddrHasher(secret []byte, bits Prefixes) (*AddrHasher, error) {
	if len(secret) < MinSecretBytes {
		return nil, errors.New("make address hasher: the secret must have at least 16 bytes")
	}
	bits = bits.orDefault()
	if bits.IPv4 < 1 || bits.IPv4 > 32 || bits.IPv6 < 1 || bits.IPv6 > 128 {
		return nil, errors.New("make address hasher: a prefix must have 1 to 32 bits of an IPv4 address, or 1 to 128 of an IPv6 address")
	}
	h := &AddrHasher{bits: bits}
	h.Rekey(secret)
	return h, nil
}

// Rotate makes the hasher one with a new secret, in place of the previous one: until all proxies
// have it, and the windows of all limits have passed, the buckets of both secrets count. It must
// be called before the hasher is used.
func (h *AddrHasher) Rotate(previous []byte) error {
	other, err := NewAddrHasher(previous, h.bits)
	if err != nil {
		return err
	}
	h.previous = other
	return nil
}

// Previous returns the hasher with the secret before the last rotation, or nil.
func (h *AddrHasher) Previous() *AddrHasher { return h.previous }

// Fingerprint names the prefixes and the secret, by a hash: hashers of one fingerprint hash alike.
func (h *AddrHasher) Fingerprint() string {
	return fmt.Sprintf("IPv4 prefix %d, IPv6 prefix %d, secret %.8s", h.bits.IPv4, h.bits.IPv6, h.AppendText(nil, "fingerprint"))
}

// Rekey makes later calls of Append hash with another secret. It must be as long as that
// of NewAddrHasher, and the caller must not change it afterwards.
func (h *AddrHasher) Rekey(secret []byte) {
	k := &keyedHasher{seed: maphash.MakeSeed()}
	k.macs.New = func() any { return hmac.New(sha256.New, secret) }
	h.keyed.Store(k)
}

// Append appends the text that represents addr. The address must be valid.
func (h *AddrHasher) Append(dst []byte, addr netip.Addr) []byte {
	bits := h.bits.IPv6
	if addr.Is4() {
		bits = h.bits.IPv4
	}
	if bits < addr.BitLen() {
		if prefix, err := addr.Prefix(bits); err == nil {
			addr = prefix.Addr()
		}
	}
	k := h.keyed.Load()
	slot := &k.cache[maphash.Comparable(k.seed, addr)%addrCacheSize]
	known := slot.Load()
	if known == nil || known.addr != addr {
		known = k.hash(addr)
		slot.Store(known)
	}
	return append(dst, known.text[:]...)
}

func (k *keyedHasher) hash(addr netip.Addr) *hashedAddr {
	mac, _ := k.macs.Get().(hash.Hash)
	defer k.macs.Put(mac)
	raw := addr.As16()
	if addr.Is4() {
		mac.Write(raw[12:])
	} else {
		mac.Write(raw[:])
	}
	var sum [sha256.Size]byte
	out := &hashedAddr{addr: addr}
	base64.RawURLEncoding.Encode(out.text[:], mac.Sum(sum[:0])[:hashedAddrBytes])
	mac.Reset()
	return out
}

// AppendText appends the text that represents an address which a client wrote as text, with a prefix
// for example: texts that differ are different clients.
func (h *AddrHasher) AppendText(dst []byte, text string) []byte {
	return h.keyed.Load().appendHash(dst, "text of an address ", text) // longer than an address: no hash is one of Append
}

// appendHash appends the hash of a text of a kind.
func (k *keyedHasher) appendHash(dst []byte, kind, text string) []byte {
	mac, _ := k.macs.Get().(hash.Hash)
	defer k.macs.Put(mac)
	_, _ = io.WriteString(mac, kind)
	_, _ = io.WriteString(mac, text)
	var sum [sha256.Size]byte
	dst = base64.RawURLEncoding.AppendEncode(dst, mac.Sum(sum[:0])[:hashedAddrBytes])
	mac.Reset()
	return dst
}
