package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// HTTP are the settings of checks over HTTP.
type HTTP struct {
	// Listen is the host:port, or UnixPrefix and the path of a socket; empty is off.
	Listen string
	// Gateway is one of HTTPGateways. Headers is one of HTTPHeaders.
	Gateway, Headers string
	// TenantHeader and CostHeader are names of headers; each may be empty.
	TenantHeader, CostHeader string
	// DimHeaders are names of headers by those of the dimensions whose values they have.
	DimHeaders []DimHeader
	// AddressHeader is the header with addresses of clients, and TrustedHops which entry of it
	// counts, from the right, 0 to 32. TrustedCIDRs, unless empty, are the networks of proxies
	// instead.
	AddressHeader string
	TrustedHops   int
	TrustedCIDRs  []netip.Prefix
}

// DimHeader is a header with the value of a dimension.
type DimHeader struct{ Dim, Header string }

// defaultTrustedHops is for a gateway that adds the address of its client to the header.
const defaultTrustedHops = 1

// defaultAddressHeader is the header that most gateways have.
const defaultAddressHeader = "X-Forwarded-For"

// UnixPrefix precedes the path of a Unix socket in HTTP.Listen.
const UnixPrefix = "unix:"

// The gateways that ask over HTTP, and the sets of header fields of answers.
var (
	HTTPGateways = []string{"auto", "nginx", "caddy", "traefik", "envoy", "haproxy", "kong", "apisix"}
	HTTPHeaders  = []string{"draft-11", "draft-03", "legacy", "off"}
)

// httpSettings are the settings of checks over HTTP.
func httpSettings(s *Settings) settings {
	h := &s.HTTP
	return settings{
		{
			name: "http.listen", short: "http", group: groupHTTP,
			usage: "where checks over HTTP are answered, a host:port or unix: and a path; empty switches it off", value: optional(httpAddress(&h.Listen), &h.Listen),
		},
		{
			name: "http.gateway", group: groupHTTP, initial: "auto",
			usage: "auto, nginx, caddy, traefik, envoy, haproxy, kong or apisix, which asks at /check",
			value: withArg("NAME", textChoice(&h.Gateway, HTTPGateways)),
		},
		{
			name: "http.tenant_header", group: groupHTTP,
			usage: "the header with the tenant at /check; the value of one for credentials is hashed", value: optional(noCookie(headerName(&h.TenantHeader)), &h.TenantHeader),
		},
		{
			name: "http.cost_header", group: groupHTTP,
			usage: "the header with the cost at /check, which clients must not be able to set", value: optional(headerName(&h.CostHeader), &h.CostHeader),
		},
		{
			name: "http.dim_headers", group: groupHTTP,
			usage: "headers with dimensions at /check", value: dimHeaders(&h.DimHeaders),
		},
		{
			name: "http.address_header", group: groupHTTP, initial: defaultAddressHeader,
			usage: "the header with addresses of clients at /check; Forwarded is read as RFC 7239 says", value: headerName(&h.AddressHeader),
		},
		{
			name: "http.trusted_hops", group: groupHTTP, initial: strconv.Itoa(defaultTrustedHops),
			usage: "how many proxies added an address to it: that entry counts, from the right; 0 is the peer", value: whole(&h.TrustedHops, 0, 32),
		},
		{
			name: "http.trusted_cidrs", group: groupHTTP,
			usage: "networks of proxies: from the right, the first address in none of them counts instead", value: networks(&h.TrustedCIDRs),
		},
		{
			name: "http.headers", group: groupHTTP, initial: "draft-11",
			usage: "the fields about limits in answers", value: textChoice(&h.Headers, HTTPHeaders),
		},
	}
}

// withArg is a value with another name of its text in help.
func withArg(arg string, v value) value {
	v.arg = arg
	return v
}

// textChoice is a choice of texts that mean themselves.
func textChoice(to *string, of []string) value {
	var options []option[string]
	for _, w := range of {
		options = append(options, word(w, w))
	}
	return choice(to, options...)
}

// httpAddress parses an address to listen on, which may be a Unix socket.
func httpAddress(to *string) value {
	return value{arg: "HOST:PORT|unix:PATH", read: func(text string) error {
		path, unix := strings.CutPrefix(text, UnixPrefix)
		if unix && !filepath.IsAbs(path) {
			return fmt.Errorf("%s has no absolute path; write for example unix:/run/limitgate/http.sock", Quote(text))
		}
		if unix && len(path) > maxSocketPath {
			return fmt.Errorf("the path of a Unix socket has at most %d bytes", maxSocketPath)
		}
		switch {
		case unix:
		case strings.HasPrefix(text, "/"):
			return fmt.Errorf("%s is a path; write unix:%s for a Unix socket", Quote(text), plain(text))
		default:
			if err := checkAddress(text, 0, "8080"); err != nil {
				return err
			}
		}
		*to = text
		return nil
	}}
}

// maxSocketPath is what sockaddr_un of Linux and others has room for.
const maxSocketPath = 103

// headerName parses the name of a header: a token of RFC 9110.
func headerName(to *string) value {
	return value{arg: "NAME", shape: stringOnly, read: func(text string) error {
		if !isHeaderName(text) {
			return fmt.Errorf("%s is not the name of a header; write for example X-Api-Key", Quote(text))
		}
		*to = text
		return nil
	}}
}

// noCookie refuses headers whose values a client can vary at will.
func noCookie(v value) value {
	read := v.read
	v.read = func(text string) error {
		for _, header := range []string{"Cookie", "User-Agent", "Referer"} {
			if strings.EqualFold(text, header) {
				return fmt.Errorf("clients put anything into %s, and each value would be a tenant: name another header, which the gateway sets", header)
			}
		}
		return read(text)
	}
	return v
}

// maxHeaderName bounds the name of a header, in bytes.
const maxHeaderName = 128

func isHeaderName(text string) bool {
	return text != "" && len(text) <= maxHeaderName && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// dimHeaders parses a list of DIMENSION=HEADER.
func dimHeaders(to *[]DimHeader) value {
	return value{arg: "DIM=HEADER,...", shape: stringList, read: func(text string) error {
		var all []DimHeader
		for item := range strings.SplitSeq(text, ",") {
			if text == "" {
				break
			}
			dim, header, _ := strings.Cut(strings.TrimSpace(item), "=")
			switch {
			case limit.CheckName(dim) != nil || !isHeaderName(header):
				return fmt.Errorf("%s is not DIM=HEADER; write for example user=X-User-Id", Quote(item))
			case limit.ReservedDim(dim):
				return errReservedDimHeader
			case slices.ContainsFunc(all, func(d DimHeader) bool { return d.Dim == dim }):
				return fmt.Errorf("%s has two headers; name one", Quote(dim))
			case len(all) == limit.MaxDims:
				return fmt.Errorf("a request has at most %d dimensions", limit.MaxDims)
			}
			all = append(all, DimHeader{dim, header})
		}
		*to = all
		return nil
	}}
}

var errReservedDimHeader = errors.New("tenant, op and ip have settings of their own: http.tenant_header, http.gateway and http.address_header")

// networks parses a list of networks or addresses.
func networks(to *[]netip.Prefix) value {
	return value{arg: "CIDR,...", shape: stringList, read: func(text string) error {
		var all []netip.Prefix
		for item := range strings.SplitSeq(text, ",") {
			if text == "" {
				break
			}
			item = strings.TrimSpace(item)
			p, err := netip.ParsePrefix(item)
			if err != nil {
				addr, err := netip.ParseAddr(item)
				if err != nil {
					return fmt.Errorf("%s is not a network; write for example 10.0.0.0/8", Quote(item))
				}
				if addr.Zone() != "" {
					return fmt.Errorf("%s has a zone, which no network has; write it without %%%s", Quote(item), addr.Zone())
				}
				if addr.IsUnspecified() {
					return fmt.Errorf("%s is one address, and no network; write %[1]s/0 if all addresses are meant, which lets every client name an address", item)
				}
				if bits := looksLikeNetwork(addr); bits > 0 {
					return fmt.Errorf("%s is one address, and looks like a network without its length; write for example %[1]s/%d, or %[1]s/%[3]d for that address", item, bits, addr.BitLen())
				}
				p = netip.PrefixFrom(addr, addr.BitLen())
			}
			if p.Addr().Is4In6() {
				return fmt.Errorf("%s is a network of IPv4 in the form of IPv6; write its IPv4 form", Quote(item))
			}
			all = append(all, p.Masked())
		}
		*to = all
		return nil
	}}
}

// looksLikeNetwork returns the length of the network that an address most likely means, as its last octet, or of IPv6
// its second half, is 0; 0 for other addresses.
func looksLikeNetwork(addr netip.Addr) (bits int) {
	if addr.Is4In6() {
		return 0
	}
	b := addr.AsSlice()
	zeros := len(b) - len(bytes.TrimRight(b, "\x00"))
	switch {
	case addr.Is4():
		if zeros > 0 {
			return 8 * (len(b) - zeros)
		}
	case zeros >= len(b)/2:
		return 4 * len(b)
	}
	return 0
}
