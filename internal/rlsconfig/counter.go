package rlsconfig

import (
	"crypto/sha256"
	"encoding/hex"
)

// Names of counters. The counter of a rule is called
//
//	DOMAIN;LEVEL;LEVEL
//
// where LEVEL is
//
//	KEY=VALUE          of a descriptor with a value
//	KEY:VALUE          of one without: VALUE is the request's
//	KEY=PATTERN:VALUE  of one with a pattern
//	KEY=PATTERN        of one with a pattern and share_threshold
//
// and the counter of a descriptor that brings its own limit
//
//	DOMAIN;;KEY:VALUE;KEY:VALUE
//
// With a prefix both begin with PREFIX: in front of the domain.
//
// All words are escaped, so that two different counters never share a name, and the name can be a
// part of a hash tag. A word that is too long is %# and a part of its SHA-256: no escaped word has
// a # behind a %. A name that is too long as a whole is %## and its SHA-256: requests
// choose how many entries they have.
const (
	// maxWord is the length of the longest word that is in a name as it is.
	maxWord = 256
	// digestBytes is how much of the SHA-256 of a longer one is kept.
	digestBytes = 16
	digestMark  = "%#"
	// maxCounter is the length of the longest name of a counter that is used as it is.
	maxCounter = 1024
	wholeMark  = "%##"
)

// escapes are the characters that are escaped: in all words, or in those of the configuration
// and in keys, which other characters end.
var escapes = [256]struct{ value, key bool }{
	'%': {true, true}, '{': {true, true}, '}': {true, true}, ';': {true, true},
	'=': {false, true}, ':': {false, true},
}

// AddressHasher appends text for the value of an entry that is an address. The text must have
// none of the characters % { } ; = and :, and differ for different values.
type AddressHasher func(dst []byte, value string) []byte

// AppendCounter appends the name of the rule's counter for entries, which must be those for
// which Match returned the rule. The name has no address in it unless hash is nil, and any
// pattern of the configuration as it is.
func (r *Rule) AppendCounter(dst []byte, entries []Entry, hash AddressHasher) []byte {
	begin := len(dst)
	dst = append(dst, r.counter...)
	for i := range r.steps {
		s := &r.steps[i]
		dst = append(dst, s.counter...)
		if s.counts() {
			dst = appendValue(dst, entries[i].Value, s.address, hash)
		}
	}
	return shorten(dst, begin)
}

// AppendCounter appends the name of the counter of a descriptor that brings its own limit,
// whatever rule it meets.
func (d *Domain) AppendCounter(dst []byte, entries []Entry, hash AddressHasher) []byte {
	begin := len(dst)
	dst = append(append(dst, d.counter...), ';')
	for i := range entries {
		dst = appendKey(append(dst, ';'), entries[i].Key)
		dst = append(dst, ':')
		dst = appendValue(dst, entries[i].Value, d.addresses[entries[i].Key], hash)
	}
	return shorten(dst, begin)
}

// Slot returns the name of the hash slot of the rule's counter for entries, which must be those for which
// Match returned the rule: that of the tenant in it, if the domain has a tenant_key, or "".
func (d *Domain) Slot(r *Rule, entries []Entry, hash AddressHasher) string {
	for i := range r.steps {
		if s := &r.steps[i]; d.tenantKey != "" && entries[i].Key == d.tenantKey && (s.counts() || s.kind == exactValue) {
			return d.slotOf(&entries[i], hash)
		}
	}
	return ""
}

// OwnSlot does what Slot does for the counter of a descriptor that brings its own limit.
func (d *Domain) OwnSlot(entries []Entry, hash AddressHasher) string {
	for i := range entries {
		if d.tenantKey != "" && entries[i].Key == d.tenantKey {
			return d.slotOf(&entries[i], hash)
		}
	}
	return ""
}

func (d *Domain) slotOf(e *Entry, hash AddressHasher) string {
	return string(appendValue(append([]byte(d.counter), ';'), e.Value, d.addresses[e.Key], hash))
}

// appendValue appends the value of an entry.
func appendValue(dst []byte, value string, address bool, hash AddressHasher) []byte {
	switch {
	case address && hash != nil:
		return hash(dst, value)
	case len(value) > maxWord:
		return appendDigest(dst, value)
	}
	start := 0
	for i := range len(value) {
		if c := value[i]; escapes[c].value {
			dst = appendEscape(append(dst, value[start:i]...), c)
			start = i + 1
		}
	}
	return append(dst, value[start:]...)
}

// appendKey appends a key, or a word of the configuration.
func appendKey(dst []byte, word string) []byte {
	if len(word) > maxWord {
		return appendDigest(dst, word)
	}
	for i := range len(word) {
		if c := word[i]; escapes[c].key {
			dst = appendEscape(dst, c)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendEscape appends a character as %XX.
func appendEscape(dst []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(dst, '%', digits[c>>4], digits[c&15])
}

// shorten replaces a name that is too long, which is dst from begin.
func shorten(dst []byte, begin int) []byte {
	if len(dst)-begin <= maxCounter {
		return dst
	}
	sum := sha256.Sum256(dst[begin:])
	return hex.AppendEncode(append(dst[:begin], wholeMark...), sum[:])
}

// appendDigest appends the text for a long word.
func appendDigest(dst []byte, word string) []byte {
	begin := len(dst)
	dst = append(dst, word...) // a conversion to bytes might allocate
	sum := sha256.Sum256(dst[begin:])
	dst = append(dst[:begin], digestMark...)
	return hex.AppendEncode(dst, sum[:digestBytes])
}
