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
	c := connections{line: words[0].line}
	if len(words) == 3 {
		c.zone, c.number = words[1].text, words[2].text
	}
	n.connections = append(n.connections, c)
}

// remarkConnections remarks on each limit_conn, with the limit to write in its place. Those of further zones have a group, and further ones
// of a zone a condition: limits of one level and group would be equally specific.
func (n *nginx) remarkConnections() {
	const about = "limit_conn is not imported: "
	ids, levels := names{}, map[string]bool{}
	known, groups := map[string]connections{}, map[string]string{} // by zone
	for _, c := range n.connections {
		first, again := known[c.zone]
		again = again && c.zone != ""
		if again && first.number == c.number {
			n.remark(c.line, about+"the limit for line %d, which is of the same zone, holds here too", first.line)
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
		if again {
			condition, where = ", when: {op: OP}", ", where OP is the op of the requests that it is for"
		} else {
			known[c.zone] = c
			if levels[by] {
				groups[c.zone] = ", group: " + id
			}
			levels[by] = true
		}
		n.remark(c.line, about+"services hold slots by RL.ACQUIRE, and give them back by RL.RELEASE; for these write into a plan {id: %s, by: [%s]%s%s, algorithm: concurrency, slots: %s}%s", id, by, groups[c.zone], condition, slots, where)
	}
}
