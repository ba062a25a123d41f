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

// connect notes limit_conn ZONE NUMBER.
func (n *nginx) connect(words []nginxWord) {
	c := connections{line: words[0].line, located: n.isLocated()}
	if len(words) == 3 {
		c.zone, c.number = words[1].text, words[2].text
	}
	n.connections = append(n.connections, c)
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

// remarkConnections remarks on each limit_conn, with the limit to write in its place. That of a zone outside of locations holds for all
// requests, and others of the zone have a condition. Those of further zones have a group: limits of one level and group would be equally specific.
func (n *nginx) remarkConnections() {
	const about = "limit_conn is not imported: "
	whole := map[string]*connections{} // by zone
	for i := range n.connections {
		if c := &n.connections[i]; !c.located && whole[c.zone] == nil && c.zone != "" {
			whole[c.zone] = c
		}
	}
	ids, levels, groups := names{}, map[string]string{}, map[string]string{} // levels have the zone that has no group, and groups that of a zone
	for i := range n.connections {
		c := &n.connections[i]
		all := whole[c.zone]
		if all != nil && all != c && all.number == c.number {
			n.remark(c.line, about+"the limit for line %d, which is of the same zone, holds here too", all.line)
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
		if all != c && c.zone != "" {
			condition, where = ", when: {op: OP}", ", where OP is the op of the requests that it is for; nginx counts all of a zone together"
		}
		n.remark(c.line, about+"services hold slots by RL.ACQUIRE, and give them back by RL.RELEASE; for these write into a plan {id: %s, by: [%s]%s%s, algorithm: concurrency, slots: %s}%s", id, by, groups[c.zone], condition, slots, where)
	}
}
