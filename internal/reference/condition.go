package reference

import (
	"net/netip"
	"strings"
)

// condition is one entry of a limit's when.
type condition struct {
	dimension, pattern string
}

// matches reports whether a dimension's value meets the condition: it is the
// pattern, begins with a pattern that ends in "*", or lies in a CIDR block.
func (c condition) matches(value string) bool {
	if c.dimension == "ip" {
		return c.matchesAddress(value)
	}
	if prefix, found := strings.CutSuffix(c.pattern, "*"); found {
		return strings.HasPrefix(value, prefix)
	}
	return value == c.pattern
}

func (c condition) matchesAddress(value string) bool {
	address, err := netip.ParseAddr(value)
	if err != nil {
		return false
	}
	if block, err := netip.ParsePrefix(c.pattern); err == nil {
		return block.Contains(address.Unmap())
	}
	exact, err := netip.ParseAddr(c.pattern)
	return err == nil && exact.Unmap() == address.Unmap()
}

// exact reports whether one value only meets the condition.
//
// Not documented: a block of a single address, such as 192.0.2.1/32, is a
// pattern and not an exact value.
func (c condition) exact() bool {
	if c.dimension == "ip" {
		return !strings.Contains(c.pattern, "/")
	}
	return !strings.HasSuffix(c.pattern, "*")
}

// length is how long a pattern is, 0 for an exact value.
//
// Not documented: the length of a block is the bits of its prefix, and adds to
// the bytes of other patterns.
func (c condition) length() int {
	if c.exact() {
		return 0
	}
	if c.dimension != "ip" {
		return len(c.pattern) - len("*")
	}
	block, err := netip.ParsePrefix(c.pattern)
	if err != nil {
		return 0
	}
	return block.Bits()
}
