package limit

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds on the fields of a request.
const (
	// MaxNameBytes bounds tenants, dimension names and dimension values.
	MaxNameBytes = 256
	// MaxOpBytes bounds operations, which often contain paths.
	MaxOpBytes = 1024
	// MaxDims bounds the extra dimensions of one request.
	MaxDims = 16
)

// IdempotencyTTL is for how long the answer to a request with an ID is recorded: clients
// retry within seconds.
const IdempotencyTTL = 10 * time.Second

// Dim is an extra dimension of a request: user=u1, region=eu.
type Dim struct{ Name, Value string }

// TraceDim is the dimension of a request whose value is the W3C trace context of its caller, and the
// header that has it in HTTP. Spans use it also where no limit does.
const TraceDim = "traceparent"

// Request is a request to take Cost units now. An empty Op, or an invalid Addr, means
// that the request has none.
type Request struct {
	Tenant string
	Op     string
	Addr   netip.Addr // never an IPv4-mapped IPv6 address, never one with a zone
	Dims   []Dim
	Cost   int64 // 1 to MaxCost
	// ID, unless empty, identifies the request among its tenant's. For IdempotencyTTL
	// after it was admitted, a request with the same ID, limits and cost gets the same
	// answer and takes nothing more. Denials are not recorded: a retry after a denial is
	// decided anew.
	ID string
	// Hold, unless HoldNone, records the request's charge under its ID, which it must
	// have, for HoldFor, MinHold to MaxHold, so that it can be settled. Fresh reports
	// that the ID was made for this request, so that there can be no recorded answer.
	Hold    Hold
	HoldFor time.Duration
	Fresh   bool
	// BypassToken, unless empty, is a token that may let the request pass the limits. Bypass
	// reports that it does: no limit applies.
	BypassToken string
	Bypass      bool
	// Inline, unless nil, is the only limit that applies, see NewInlineLimit. It has a
	// bucket for each Key, which is 1 to MaxKeyBytes of any bytes. No other limit applies
	// then.
	Inline *Limit
	Key    string
	// Descriptors, unless nil, are the only buckets of the request. No limit of a set applies then.
	Descriptors []Descriptor
}

// CarriesLimits reports whether the request carries its limits: no limit of a set applies to it.
func (r *Request) CarriesLimits() bool { return r.Inline != nil || r.Descriptors != nil }

var (
	errEmpty   = errors.New("it is empty")
	errControl = errors.New("it has control characters")
	errUTF8    = errors.New("it is not UTF-8")
	errAddr    = errors.New("it is not an IPv4 or IPv6 address")
	errZone    = errors.New("an address with a zone means nothing outside its host")
	errPort    = errors.New("it is an address with a port: leave out the port")
	errNetwork = errors.New("it is a network: an address of it is needed")
	errBracket = errors.New("an address has no brackets: leave them out")
	errList    = errors.New("it is a list: one address is needed, that of the client")
)

// CheckName returns an error unless name can be a tenant, or a dimension's name or value:
// 1 to MaxNameBytes bytes of UTF-8 without control characters.
func CheckName(name string) error { return checkText(name, MaxNameBytes) }

// CheckOp returns an error unless op can be an operation: 1 to MaxOpBytes bytes of UTF-8
// without control characters.
func CheckOp(op string) error { return checkText(op, MaxOpBytes) }

func checkText(s string, most int) error {
	if s == "" {
		return errEmpty
	}
	if len(s) > most {
		return fmt.Errorf("it has %d bytes, at most %d", len(s), most)
	}
	ascii := true
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return errControl
		}
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if ascii {
		return nil
	}
	if !utf8.ValidString(s) {
		return errUTF8
	}
	for _, r := range s {
		if r >= 0x80 && r < 0xa0 {
			return errControl
		}
	}
	return nil
}

// ParseAddr parses an IPv4 or IPv6 address. It turns an IPv4-mapped IPv6 address into the
// IPv4 address. A zone, a port, a network and a list are errors.
func ParseAddr(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, mistakeInAddr(s)
	}
	if addr.Zone() != "" {
		return netip.Addr{}, errZone
	}
	return addr.Unmap(), nil
}

// mistakeInAddr returns the reason that s is no address.
func mistakeInAddr(s string) error {
	if _, err := netip.ParseAddrPort(s); err == nil {
		return errPort
	}
	if _, err := netip.ParsePrefix(s); err == nil {
		return errNetwork
	}
	if inner, found := strings.CutPrefix(s, "["); found {
		if _, err := ParseAddr(strings.TrimSuffix(inner, "]")); err == nil {
			return errBracket
		}
	}
	if first, _, found := strings.Cut(s, ","); found {
		if _, err := ParseAddr(strings.TrimSpace(first)); err == nil {
			return errList
		}
	}
	return errAddr
}

// Dimension returns the value of an extra dimension, or false.
func (r *Request) Dimension(name string) (string, bool) {
	for i := range r.Dims {
		if r.Dims[i].Name == name {
			return r.Dims[i].Value, true
		}
	}
	return "", false
}

// ReservedDim reports whether name belongs to a positional argument, in any case of
// letters, so that no extra dimension may have it.
func ReservedDim(name string) bool {
	return strings.EqualFold(name, "tenant") || strings.EqualFold(name, "op") || strings.EqualFold(name, "ip")
}
