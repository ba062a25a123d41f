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

// remarkConnections remarks on each limit_conn, with the limit to write in its place.
func (n *nginx) remarkConnections() {
	ids := names{}
	for _, c := range n.connections {
		by, slots := "tenant", "NUMBER"
		if variables, literal, ok := splitKey(n.connected[c.zone]); ok && !literal && len(variables) == 1 && isAddress(variables[0]) {
			by = "tenant, ip"
		}
		if number, mistake := wholeNumber(c.number); mistake == "" && number <= limit.MaxSlots {
			slots = fmt.Sprint(number)
		}
		n.remark(c.line, "limit_conn is not imported: services hold slots by RL.ACQUIRE, and give them back by RL.RELEASE; for these write into a plan {id: %s, by: [%s], algorithm: concurrency, slots: %s}", ids.unique(word("conn-"+c.zone)), by, slots)
	}
}
