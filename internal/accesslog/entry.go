package accesslog

import "time"

// Entry is one parsed line of an access log. Two entries may be compared with
// ==. The strings of an entry share the memory of its line: code that keeps
// one short field of millions of entries should strings.Clone it.
type Entry struct {
	// Line is the line's number in its log, from 1, or 0 when the entry comes
	// from Parse and not from a Reader.
	Line int

	// Time is when the server logged the request, in UTC; Common Log Format has
	// whole seconds.
	Time time.Time

	// RemoteAddr is the client's IPv4 or IPv6 address, or its name on a server
	// that looks names up. It is as written, not checked to be an address.
	RemoteAddr string

	// User is the authenticated user, "" when there is none.
	User string

	// Method is the first word of the request line, always an HTTP token.
	Method string

	// Target is what the request line asks for, never empty: mostly a path
	// with its query string ("/a?b=c"), but also an absolute URL, "*" or
	// "host:port". It may contain spaces and any other byte.
	Target string

	// Proto is the protocol, such as "HTTP/1.1", or "" when the request line
	// has none, as in HTTP/0.9.
	Proto string

	// Referer is the Referer header, "" when absent or in Common Log Format.
	Referer string

	// UserAgent is the User-Agent header, "" when absent or in Common Log
	// Format.
	UserAgent string

	// Status is the response's status code, 0 to 999.
	Status int64

	// Bytes is the size of the response's body in bytes, 0 or more; a "-" in
	// the log is 0.
	Bytes int64
}
