package limitimport

import (
	"slices"
	"strings"
)

// listenOf reads the words of a listen: an address, a port or both, and default_server among what follows.
func listenOf(words []nginxWord) listen {
	l := listen{port: "80"}
	address := words[0].text
	switch i := strings.LastIndexByte(address, ':'); {
	case strings.HasPrefix(address, "unix:"):
		l.port = address
	case i >= 0 && !strings.HasSuffix(address, "]"):
		l.port = address[i+1:]
	case strings.Trim(address, "0123456789") == "":
		l.port = address
	}
	for _, w := range words[1:] {
		l.isDefault = l.isDefault || w.text == "default_server" || w.text == "default"
	}
	return l
}

// ports returns where a server listens, which is port 80 unless it says so.
func (s *server) ports() []listen {
	if len(s.listens) == 0 {
		return []listen{{port: "80"}}
	}
	return s.listens
}

// dropHostless drops servers without a name that are the default server of none of their ports: nginx gives them no request of
// a host.
func (n *nginx) dropHostless() {
	defaults := map[string]*nginxContext{}
	said := map[string]bool{} // ports with a default_server
	for _, c := range n.contexts {
		if c.name != "server" || c.server == nil {
			continue
		}
		for _, l := range c.server.ports() {
			if defaults[l.port] == nil || l.isDefault && !said[l.port] {
				defaults[l.port], said[l.port] = c, l.isDefault
			}
		}
	}
	dropped := map[*server]*nginxContext{} // with the default server of one of its ports
	for _, c := range n.contexts {
		if c.name != "server" || c.server == nil || c.server.isNamed() {
			continue
		}
		ports := c.server.ports()
		if !slices.ContainsFunc(ports, func(l listen) bool { return defaults[l.port] == c }) {
			dropped[c.server] = defaults[ports[0].port]
			if !c.returns {
				n.servers--
			}
		}
	}
	n.contexts = slices.DeleteFunc(n.contexts, func(c *nginxContext) bool { return dropped[c.server] != nil })
	n.requests = slices.DeleteFunc(n.requests, func(r limitRequest) bool {
		first := dropped[r.server]
		if first != nil {
			n.remark(r.line, "limit_req is not imported: nginx gives its server, which has no name, no request: that on line %d is the default server of its port", first.line)
		}
		return first != nil
	})
}
