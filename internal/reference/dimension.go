package reference

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// value returns a request's value of a dimension. A value that is not declared, in a
// dimension that declares its values, counts as absent.
func (l *limits) value(r Request, dimension string) (value string, present bool) {
	switch dimension {
	case "tenant":
		value = r.Tenant
	case "op":
		value = r.Op
	case "ip":
		value = r.IP
	default:
		value = r.Dims[dimension]
	}
	if values, declared := l.declared[dimension]; declared && !slices.Contains(values, value) {
		return "", false
	}
	return value, value != ""
}

// counted returns the value by which a limit counts a request in one entry of its by: the
// kind and the value of the first dimension of a chain that is present.
func (l *limits) counted(r Request, chain string) (counted string, present bool) {
	for dimension := range strings.SplitSeq(chain, "|") {
		value, present := l.value(r, dimension)
		if !present {
			continue
		}
		if dimension == "ip" {
			value = network(value)
		}
		return fmt.Sprintf("%s=%q", dimension, value), true
	}
	return "none", false
}

// network returns the network as which an address is counted: for an IPv6 address its
// first 64 bits, and for one with a mapped IPv4 address that address.
func network(value string) string {
	address, err := netip.ParseAddr(value)
	if err != nil {
		return value
	}
	if address = address.Unmap(); address.Is6() {
		return netip.PrefixFrom(address, 64).Masked().String()
	}
	return address.String()
}

// bucketKey returns the name of the bucket of a request for a limit, and the first
// dimension that the request lacks. All requests that lack the same dimensions have the
// same bucket.
func (l *limits) bucketKey(r Request, rule *limit) (key, lacks string) {
	var counted []string
	for _, chain := range rule.by {
		c, present := l.counted(r, chain)
		if !present && lacks == "" {
			lacks = chain
		}
		counted = append(counted, chain+": "+c)
	}
	return fmt.Sprintf("%s %s{%s}", rule.terms.algorithm, rule.id, strings.Join(counted, ", ")), lacks
}
