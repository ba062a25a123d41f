package accesslog

import "strings"

// pathOf is the path of a request's target, without query string, fragment and,
// for an absolute URL, scheme and host. It is "/" instead of "". A target that
// is no path, "*" or "host:port", is returned as it is.
func pathOf(target string) string {
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	if _, rest, ok := cutScheme(target); ok {
		_, target = cutAuthority(rest)
	}
	if target == "" {
		return "/"
	}
	return target
}

// firstSegments is path without the segments after the first n, without empty
// segments and without a slash at the end, so that no client gets a second
// operation by writing a slash twice. It is "/" instead of "".
func firstSegments(path string, n int) string {
	var b strings.Builder
	b.Grow(min(len(path), maxWord))
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" {
			continue
		}
		if n == 0 {
			break
		}
		n--
		if b.Len() > 0 || path[0] == '/' {
			b.WriteByte('/')
		}
		b.WriteString(segment)
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// cutScheme takes a scheme and "://" off s. It reports false if s does not
// begin so: "/go?to=http://host/" does not.
func cutScheme(s string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(s, "://")
	if !ok || scheme == "" {
		return "", s, false
	}
	for i := range len(scheme) {
		c := scheme[i] | 0x20 // Lower case, for letters.
		isLetter := 'a' <= c && c <= 'z'
		if !isLetter && (i == 0 || !strings.Contains("0123456789+-.", scheme[i:i+1])) {
			return "", s, false
		}
	}
	return scheme, rest, true
}

// cutAuthority splits the text after a scheme before the first slash, question mark or
// number sign.
func cutAuthority(s string) (authority, rest string) {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// hostOfURL is the host of an absolute URL in lower case, without user name and
// port and without the brackets of an IPv6 address, or "".
func hostOfURL(s string) string {
	_, rest, ok := cutScheme(s)
	if !ok {
		return ""
	}
	host, _ := cutAuthority(rest)
	host = host[strings.LastIndexByte(host, '@')+1:]
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.ToLower(host)
}
