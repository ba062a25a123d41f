package httpapi

import (
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"
)

// AddressRule says where the address of a client is that a gateway asks for.
type AddressRule struct {
	// Header is X-Forwarded-For, Forwarded of RFC 7239, or another header with one address.
	Header string
	// Hops is the number of trusted proxies that have added an entry to Header: the entry of
	// that number counts, from the right. 0 is the peer of the connection.
	Hops int
	// Trusted, unless empty, takes the place of Hops: from the right, the first entry counts
	// that is in none of these networks, or the leftmost if all are. The header counts only if
	// the peer is in one of them, or is on a Unix socket.
	Trusted []netip.Prefix
}

// The maximum of what is read of a header with addresses. What stands before that is ignored.
const (
	maxEntries      = 32
	maxAddressBytes = 4 << 10
)

// client returns the address of the client, which is not valid if none can be trusted.
func (s *Server) client(ctx *fasthttp.RequestCtx, peer netip.Addr) netip.Addr {
	r := &s.opts.Addresses
	if r.isPeer() {
		return peer
	}
	var lines []string
	for _, line := range ctx.Request.Header.PeekAll(r.Header) {
		lines = append(lines, string(line))
	}
	return r.find(lines, peer)
}

// isPeer reports whether no header counts.
func (r *AddressRule) isPeer() bool { return r.Hops == 0 && len(r.Trusted) == 0 }

// find returns the address that the lines of the header have, or that of the peer. An entry that
// is no address is never passed over: with it there is none, as what stands before it may be
// forged.
func (r *AddressRule) find(lines []string, peer netip.Addr) netip.Addr {
	if r.isPeer() {
		return peer
	}
	entries := r.entries(lines)
	if len(r.Trusted) == 0 {
		if r.Hops > len(entries) {
			return peer
		}
		return entries[len(entries)-r.Hops]
	}
	if peer.IsValid() && !r.trusts(peer) || len(entries) == 0 {
		return peer
	}
	for i := len(entries) - 1; i > 0; i-- {
		if !entries[i].IsValid() || !r.trusts(entries[i]) {
			return entries[i]
		}
	}
	return entries[0]
}

func (r *AddressRule) trusts(addr netip.Addr) bool {
	for _, p := range r.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// entries returns the entries of all lines in their order, maxEntries at most from the right. An
// entry that is no address is not valid.
func (r *AddressRule) entries(lines []string) (all []netip.Addr) {
	joined := strings.Join(lines, ",")
	if len(joined) > maxAddressBytes {
		joined = joined[len(joined)-maxAddressBytes:]
	}
	if joined == "" {
		return nil
	}
	split, parse := splitPlain, parseEntry
	if strings.EqualFold(r.Header, "Forwarded") {
		split, parse = splitQuoted, parseForwarded
	}
	parts := split(joined)
	for _, part := range parts[max(0, len(parts)-maxEntries):] {
		all = append(all, parse(part))
	}
	return all
}

func splitPlain(text string) []string { return strings.Split(text, ",") }

// splitQuoted splits at commas outside of quoted strings (RFC 9110, section 5.6.4).
func splitQuoted(text string) (parts []string) { return splitOutside(text, ',') }

// splitOutside splits at a separator outside of quoted strings.
func splitOutside(text string, separator byte) (parts []string) {
	begin, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == separator:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

// parseForwarded returns the address of an element of Forwarded (RFC 7239): that of its parameter
// for. A name such as unknown or _hidden is no address.
func parseForwarded(element string) netip.Addr {
	for _, pair := range splitOutside(element, ';') {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(name, "for") {
			if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
				value = strings.ReplaceAll(value[1:len(value)-1], `\`, "")
			}
			return parseEntry(value)
		}
	}
	return netip.Addr{}
}

// parseEntry returns the address of an entry, which may have a port, brackets and blanks around
// it. An IPv4 address in the form of IPv6 is the IPv4 address. A zone belongs to one host, and is
// left out.
func parseEntry(entry string) netip.Addr {
	entry = strings.TrimSpace(entry)
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(entry, "["), "]"))
	if err != nil {
		with, err := netip.ParseAddrPort(entry)
		if err != nil {
			return netip.Addr{}
		}
		addr = with.Addr()
	}
	return addr.Unmap().WithZone("")
}
