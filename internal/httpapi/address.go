package httpapi

import (
	"bytes"
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
	if len(r.Trusted) > 0 && peer.IsValid() && !r.trusts(peer) {
		s.warnings.untrusted()
	}
	return r.find(ctx.Request.Header.PeekAll(r.Header), peer)
}

// isPeer reports whether no header counts.
func (r *AddressRule) isPeer() bool { return r.Hops == 0 && len(r.Trusted) == 0 }

// find returns the address that the lines of the header have, or that of the peer. An entry that
// is no address is never passed over: with it there is none, as what stands before it may be
// forged.
func (r *AddressRule) find(lines [][]byte, peer netip.Addr) netip.Addr {
	if r.isPeer() || len(r.Trusted) > 0 && peer.IsValid() && !r.trusts(peer) {
		return peer
	}
	w := walker{lines: lines, quoted: strings.EqualFold(r.Header, "Forwarded")}
	found := peer
	for n := 1; ; n++ {
		entry, ok := w.next()
		switch {
		case !ok && len(r.Trusted) > 0:
			return found // the leftmost, as all are trusted, or the peer without any
		case !ok:
			return peer
		case len(r.Trusted) == 0 && n < r.Hops:
			continue
		}
		found = parseEntry(entry)
		if w.quoted {
			found = parseForwarded(entry)
		}
		if len(r.Trusted) == 0 || !found.IsValid() || !r.trusts(found) {
			return found
		}
	}
}

func (r *AddressRule) trusts(addr netip.Addr) bool {
	for _, p := range r.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// walker returns the entries of lines from the right, maxEntries at most within the last
// maxAddressBytes.
type walker struct {
	lines  [][]byte // not read yet
	line   []byte   // the rest of the line being read
	open   bool     // line is being read
	quoted bool     // entries may have quoted strings, with commas
	n      int
	read   int // bytes
}

// next returns the next entry. An empty line has none.
func (w *walker) next() (entry string, ok bool) {
	for !w.open {
		if len(w.lines) == 0 {
			return "", false
		}
		w.line, w.lines = w.lines[len(w.lines)-1], w.lines[:len(w.lines)-1]
		w.open = len(w.line) > 0
	}
	begin := bytes.LastIndexByte(w.line, ',')
	if w.quoted {
		begin = lastOutside(w.line, ',')
	}
	entry = string(w.line[begin+1:])
	if w.open = begin >= 0; w.open {
		w.line = w.line[:begin]
	}
	w.n++
	if w.read += len(entry) + 1; w.n > maxEntries || w.read > maxAddressBytes {
		return "", false
	}
	return entry, true
}

// lastOutside returns the last place of a separator outside of quoted strings (RFC 9110, section
// 5.6.4), or -1. It looks from the right: what a trusted proxy has added is well-formed, whatever
// its client sent before, such as a quote that does not end.
func lastOutside(text []byte, separator byte) int {
	quoted := false
	for i := len(text) - 1; i >= 0; i-- {
		switch c := text[i]; {
		case c == '"' && (!quoted || !escaped(text[:i])):
			quoted = !quoted
		case !quoted && c == separator:
			return i
		}
	}
	return -1
}

// escaped reports whether a backslash before it escapes what follows a text.
func escaped(text []byte) bool {
	n := 0
	for n < len(text) && text[len(text)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// parseForwarded returns the address of an element of Forwarded (RFC 7239): that of its parameter
// for. A name such as unknown or _hidden is no address.
func parseForwarded(element string) netip.Addr {
	for rest := []byte(element); rest != nil; {
		begin := lastOutside(rest, ';')
		name, value, _ := strings.Cut(strings.TrimSpace(string(rest[begin+1:])), "=")
		if rest = rest[:max(begin, 0)]; begin < 0 {
			rest = nil
		}
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
