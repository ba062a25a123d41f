package commands

import (
	"net/netip"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// SwappedText is the advice about a request with a tenant and an op that stand in the wrong order.
const SwappedText = "the tenant is a route, and the op is no route: the order is tenant op ip"

// AddressFirstText is the advice about a request with a tenant and an ip that stand in the wrong order.
const AddressFirstText = "the tenant is an address, and there is no ip: the order is tenant op ip"

// AddressFirst reports whether the tenant of a request is an address, and it has no ip.
func AddressFirst(req *limit.Request) bool {
	_, err := netip.ParseAddr(req.Tenant)
	return err == nil && !req.Addr.IsValid()
}

// AddressAsOpText is the advice about a request with an address in the place of its op.
const AddressAsOpText = "the op is an address, and there is no ip: the order is tenant op ip, with - for no op"

// AddressAsOp reports whether the op of a request is an address, and it has no ip: the op was most likely left out.
func AddressAsOp(req *limit.Request) bool {
	if req.Addr.IsValid() || Swapped(req) {
		return false
	}
	_, err := netip.ParseAddr(req.Op)
	return err == nil
}

// Swapped reports whether the tenant of a request is a route, such as GET /x or /x, and its op is no route: the
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
