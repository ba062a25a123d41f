package limitimport

import (
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// connections is a limit_conn.
type connections struct {
	zone, number string
	line         int
	located      bool // it stands in a location
	served       bool // it stands in a server
}

// connectZone notes limit_conn_zone KEY zone=NAME:SIZE.
// Source: https://nginx.org/en/docs/http/ngx_http_limit_conn_module.html
func (n *nginx) connectZone(words []nginxWord) {
	if len(words) < 3 {
		return
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(words[2].text, "zone="), ":")
	n.connected[name] = words[1].text
}

const notConnected = "limit_conn is not imported: "

// connect notes limit_conn ZONE NUMBER.
func (n *nginx) connect(words []nginxWord) {
	if len(words) != 3 {
		n.remark(words[0].line, notConnected+"nginx takes limit_conn ZONE NUMBER")
		return
	}
	n.connections = append(n.connections, connections{
		zone: words[1].text, number: words[2].text, line: words[0].line, located: n.isLocated(), served: n.server != nil,
	})
}

// isLocated reports whether the context is a location, or is in one.
func (n *nginx) isLocated() bool {
	for c := n.context; c != nil; c = c.outer {
		if c.name == "location" {
			return true
		}
	}
	return false
}

// isPart reports whether a limit_conn holds for a part of the requests.
func (n *nginx) isPart(c *connections) bool { return c.located || c.served && n.servers > 1 }

// remarkConnections remarks on each limit_conn, with the limit to write in its place. That of a zone outside of locations, and of one server
// among several, holds for all requests, and others of the zone have a condition. Those of further zones have a group: limits of one level
// and group would be equally specific.
func (n *nginx) remarkConnections() {
	whole := map[string]*connections{} // by zone
	for i := range n.connections {
		if c := &n.connections[i]; !n.isPart(c) && whole[c.zone] == nil {
			whole[c.zone] = c
		}
	}
	ids, levels, groups := names{}, map[string]string{}, map[string]string{} // levels have the zone that has no group, and groups that of a zone
	for i := range n.connections {
		c := &n.connections[i]
		all := whole[c.zone]
		if all != nil && all != c && all.number == c.number {
			n.remark(c.line, notConnected+"the limit for line %d, which is of the same zone, holds here too", all.line)
			continue
		}
		by, slots := "tenant", "NUMBER"
		if variables, literal, ok := splitKey(n.connected[c.zone]); ok && !literal && len(variables) == 1 && isAddress(variables[0]) {
			by = "tenant, ip"
		}
		if number, mistake := wholeNumber(c.number); mistake == "" && number <= limit.MaxSlots {
			slots = fmt.Sprint(number)
		}
		id, condition, where := ids.unique(word("conn-"+c.zone)), "", ""
		if of, taken := levels[by]; !taken {
			levels[by] = c.zone
		} else if of != c.zone && groups[c.zone] == "" {
			groups[c.zone] = ", group: " + id
		}
		if all != c {
			condition, where = n.partOf(c)
		}
		n.remark(c.line, notConnected+"services hold slots by RL.ACQUIRE, and give them back by RL.RELEASE; for these write into a plan {id: %s, by: [%s]%s%s, algorithm: concurrency, slots: %s}%s", id, by, groups[c.zone], condition, slots, where)
	}
}

// partOf returns the condition of a limit_conn that holds for a part of the requests, with placeholders, and their meanings.
func (n *nginx) partOf(c *connections) (condition, where string) {
	ofServer := c.served && n.servers > 1
	const op, host = "OP is the op of the requests that it is for", "HOST is what services send as the host of this server"
	switch {
	case ofServer && c.located:
		condition, where = "{host: HOST, op: OP}", host+", and "+op
	case c.located:
		condition, where = "{op: OP}", op
	default:
		condition, where = "{host: HOST}", host
	}
	return ", when: " + condition, ", where " + where + "; nginx counts all of a zone together"
}
