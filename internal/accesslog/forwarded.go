package accesslog

import (
	"net/netip"
	"strings"
)

// cutHost takes HOST, and the space behind it, off a line. A list of addresses, as X-Forwarded-For has it, is one host.
func cutHost(s string) (host, rest string, ok bool) {
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
// neither private nor of the machine itself, or the first if all are. A text without an address is returned as it is.
func clientOf(list string) string {
	if !strings.Contains(list, ",") {
		return list
	}
	client := list
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if addr, err := netip.ParseAddr(text); err == nil && (client == list || !addr.IsPrivate() && !addr.IsLoopback()) {
			client = text
		}
	}
	return client
}
