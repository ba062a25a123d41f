package commands

import (
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// SwappedText is the advice about a request with a tenant and an op that stand in the wrong order.
const SwappedText = "the tenant is a route, and the op is none: the order is tenant op ip"

// Swapped reports whether the tenant of a request is a route, such as GET /x or /x, and its op is none: the
// caller has most likely swapped them.
func Swapped(req *limit.Request) bool { return isRoute(req.Tenant) && !isRoute(req.Op) }

// isRoute reports whether a text is a path, or a method of HTTP and a path.
func isRoute(text string) bool {
	method, path, found := strings.Cut(text, " ")
	if !found {
		return strings.HasPrefix(text, "/")
	}
	return limit.IsMethod(method) && strings.HasPrefix(path, "/")
}
