package limit

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"
)

// valueCacheSize bounds the cached hashed values of dimensions, of at most MaxNameBytes each: those of the callers of a
// moment, since several limits may have the value of one request in their names.
const valueCacheSize = 1 << 12

type hashedValue struct {
	value string
	text  [HashedAddrLen]byte
}

// AppendValue appends the text that represents the value of a dimension that is declared as hashed.
func (h *AddrHasher) AppendValue(dst []byte, value string) []byte {
	k := h.keyed.Load()
	slot := &k.values[maphash.String(k.seed, value)%valueCacheSize]
	known := slot.Load()
	if known == nil || known.value != value {
		known = &hashedValue{value: strings.Clone(value)} // it may alias a command
		k.appendHash(known.text[:0], "value of a dimension ", value)
		slot.Store(known)
	}
	return append(dst, known.text[:]...)
}

// FitValue returns the value of a dimension that a client's own protocol has, such as a header: one that no check can have,
// since it is too long or no text, becomes its beginning with "sha256-" and its SHA-256 behind it, so that no request passes
// a limit by it. Conditions on its first fitBytes bytes hold.
func FitValue(value string) string {
	if value == "" || CheckName(value) == nil {
		return value
	}
	begin := value[:min(len(value), fitBytes)]
	for begin != "" && CheckName(begin) != nil {
		begin = begin[:len(begin)-1]
	}
	sum := sha256.Sum256([]byte(value))
	return begin + fitMark + hex.EncodeToString(sum[:])
}

const (
	fitMark  = "sha256-"
	fitBytes = MaxNameBytes - len(fitMark) - 2*sha256.Size
)
