package limitimport

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// A route is of one service at most. Plugins of a route have a condition on its service, too: without that, they
// would seem to meet requests of plugins of other services.

// readRoutes reads the services of routes, "" of a name that routes of several services have.
func (k *kong) readRoutes(root *yaml.Node) {
	read := func(routes []*yaml.Node, service func(route *yaml.Node) string) {
		for _, r := range routes {
			name, of := scalar(r, "name"), service(r)
			if before, known := k.services[name]; known && before != of {
				of, k.several[name] = "", true
			}
			k.services[name] = of
		}
	}
	for _, s := range items(root, "services") {
		name := scalar(s, "name")
		if k.entities += len(items(s, "routes")); k.entities > maxKongEntities {
			return
		}
		read(items(s, "routes"), func(*yaml.Node) string { return name })
	}
	read(items(root, "routes"), func(r *yaml.Node) string {
		name := k.entityOf(r, kongScopes[0])
		return cmp.Or(k.ids[condition{"service", name}], name)
	})
}

// entityOf returns the name of the entity that a field of n is about, its id if a name has been given for that, or "".
func (k *kong) entityOf(n *yaml.Node, s kongScope) string {
	return cmp.Or(nameOf(n, s.entity), k.ids[condition{s.dimension, scalar(value(n, s.entity), "id")}])
}

// withService adds the condition on the service of a route to the conditions of a plugin, and reports whether a request
// can meet them all.
func (k *kong) withService(line int, scope []condition) ([]condition, bool) {
	at := slices.IndexFunc(scope, func(c condition) bool { return c.dimension == "route" })
	if at < 0 || k.services[scope[at].pattern] == "" {
		return scope, true
	}
	of := condition{"service", k.services[scope[at].pattern]}
	i := slices.IndexFunc(scope, func(c condition) bool { return c.dimension == "service" })
	if i < 0 {
		return slices.Insert(scope, at, of), true
	}
	if scope[i] != of {
		k.remark(line, "a plugin is not imported: it is of service %s and of route %s, which is of service %s", limit.Shorten(scope[i].pattern), limit.Shorten(scope[at].pattern), limit.Shorten(of.pattern))
	}
	return scope, scope[i] == of
}
