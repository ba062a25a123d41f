package limitimport

import (
	"slices"
	"strings"
)

// listenOf reads the words of a listen: an address, a port or both, and default_server among what follows.
func listenOf(words []nginxWord) listen {
	address, l := words[0].text, listen{}
	switch {
	case strings.HasPrefix(address, "unix:"):
		l.at = address
	case strings.Trim(address, "0123456789") == "":
		l.at = "*:" + address
	default:
		host, port := address, "80"
		if i := strings.LastIndexByte(address, ':'); i >= 0 && !strings.HasSuffix(address, "]") {
			host, port = address[:i], address[i+1:]
		}
		if host == "0.0.0.0" || host == "[::]" { // a server with both has one of them as a rule
			host = "*"
		}
		l.at = host + ":" + port
	}
	for _, w := range words[1:] {
		l.isDefault = l.isDefault || w.text == "default_server" || w.text == "default"
	}
	return l
}

// ports returns the addresses and ports where a server listens, which is port 80 unless it says so.
func (s *server) ports() []listen {
	if len(s.listens) == 0 {
		return []listen{{at: "*:80"}}
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
			if defaults[l.at] == nil || l.isDefault && !said[l.at] {
				defaults[l.at], said[l.at] = c, l.isDefault
			}
		}
	}
	dropped := map[*server]*nginxContext{} // with the default server of one of its ports
	for _, c := range n.contexts {
		if c.name != "server" || c.server == nil || c.server.isNamed() {
			continue
		}
		ports := c.server.ports()
		if !slices.ContainsFunc(ports, func(l listen) bool { return defaults[l.at] == c }) {
			dropped[c.server] = defaults[ports[0].at]
			if !c.returns {
				n.servers--
			}
		}
	}
	n.contexts = slices.DeleteFunc(n.contexts, func(c *nginxContext) bool { return dropped[c.server] != nil })
	n.requests = slices.DeleteFunc(n.requests, func(r limitRequest) bool {
		first := dropped[r.server]
		if first != nil {
			n.remark(r.line, "limit_req is not imported: nginx gives its server, which has no name, no request: that on line %d is the default server of its address and port", first.line)
		}
		return first != nil
	})
}
