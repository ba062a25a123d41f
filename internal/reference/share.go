package reference

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// parseShare returns a percentage as a number of ten thousandths, and 0 for none.
func parseShare(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return int(percent*100 + 0.5), err
}

// forRequest returns the limit with the mode that it has for a request: a limit with a share is
// enforced in the buckets of that share, and a shadow of the others.
func (l *limits) forRequest(r Request, rule *limit) *limit {
	if rule.share == 0 {
		return rule
	}
	its := *rule
	if its.mode = "shadow"; l.bucketPosition(r, rule) < float64(rule.share)/10_000 {
		its.mode = "enforce"
	}
	return &its
}

// bucketPosition returns a number from 0 up to 1 that depends on the limit and the bucket alone.
//
// Not documented: it is the FNV-1a hash of the id, the tenant and the values in the order of by, each
// followed by a zero byte, times a constant; the upper half of that counts.
func (l *limits) bucketPosition(r Request, rule *limit) float64 {
	hash := fnv.New64a()
	add := func(texts ...string) {
		for _, text := range texts {
			fmt.Fprintf(hash, "%s\x00", text)
		}
	}
	add(rule.id)
	for _, chain := range rule.by {
		if chain == "tenant" {
			add(r.Tenant)
		}
	}
	for _, chain := range rule.by {
		if chain != "tenant" {
			add(l.hashedValue(r, chain)...)
		}
	}
	_, low := bits.Mul64(hash.Sum64(), 0x9e3779b97f4a7c15)
	return float64(low>>32) / (1 << 32)
}

// hashedValue returns what stands for a request's value of an entry of by in the hash.
func (l *limits) hashedValue(r Request, chain string) []string {
	dimensions := strings.Split(chain, "|")
	for i, dimension := range dimensions {
		value, present := l.value(r, dimension)
		switch {
		case !present:
			continue
		case dimension == "ip":
			return []string{clientBytes(value)}
		case len(dimensions) > 1:
			return []string{fmt.Sprintf("=%d:", i), value}
		}
		return []string{"=", value}
	}
	return []string{""}
}

// clientBytes returns the sixteen bytes of the address that stands for a client.
func clientBytes(value string) string {
	address, err := netip.ParseAddr(value)
	if err != nil {
		return value
	}
	bytes := address.As16()
	if !address.Unmap().Is4() {
		binary.BigEndian.PutUint64(bytes[8:], 0)
	}
	return string(bytes[:])
}
