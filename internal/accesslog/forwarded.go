package accesslog

import (
	"net/netip"
	"strings"
)

// cutHost takes HOST, and the space behind it, off a line. A list of addresses, as X-Forwarded-For has it, is one host, in quotes too.
func cutHost(s string) (host, rest string, ok bool) {
	if list, found := strings.CutPrefix(s, `"`); found {
		if host, rest, ok = strings.Cut(list, `" `); ok && host != "" {
			return clientOf(host), rest, true
		}
	}
	for at := 0; ; {
		end := strings.IndexByte(s[at:], ' ')
		if end < 0 {
			return s, "", false
		}
		at += end + 1
		if host := s[:at-1]; !strings.HasSuffix(host, ",") {
			return clientOf(host), s[at:], true
		}
	}
}

// clientOf returns the client of a list of addresses, to which each proxy on the way has added the one before it: the last that is
// neither of a network of its own nor of the machine itself, or the first if all are. A text without an address is returned as it is.
func clientOf(list string) string {
	if !strings.Contains(list, ",") {
		return list
	}
	client := list
	for text := range strings.SplitSeq(list, ",") {
		text = withoutPort(strings.TrimSpace(text))
		if addr, err := netip.ParseAddr(text); err == nil && (client == list || isPublic(addr.Unmap())) {
			client = text
		}
	}
	return client
}

// carrierGrade are the addresses between the routers of a provider, https://www.rfc-editor.org/rfc/rfc6598.
var carrierGrade = netip.MustParsePrefix("100.64.0.0/10")

// isPublic reports whether an address is one that a client in the internet has.
func isPublic(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !carrierGrade.Contains(addr)
}
