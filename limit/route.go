package limit

import "strings"

// RouteOf returns an op with {id} in place of each segment of its path that has a digit, but not of a
// version such as v1. A query is cut off. A method of gRPC is a route: its package may have a version.
func RouteOf(op string) string {
	op, _, _ = strings.Cut(op, "?")
	begin := strings.IndexByte(op, '/')
	if begin < 0 || begin == 0 && strings.Count(op, "/") == 2 && strings.Contains(op, ".") {
		return op
	}
	segments := strings.Split(op[begin:], "/")
	for i, s := range segments {
		if strings.ContainsAny(s, "0123456789") && !isVersion(s) {
			segments[i] = "{id}"
		}
	}
	return op[:begin] + strings.Join(segments, "/")
}

// isVersion reports whether a segment is v and at most two digits.
func isVersion(s string) bool {
	return len(s) >= 2 && len(s) <= 3 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}
