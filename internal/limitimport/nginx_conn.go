package limitimport

import (
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// connectZone notes limit_conn_zone KEY zone=NAME:SIZE.
// Source: https://nginx.org/en/docs/http/ngx_http_limit_conn_module.html
func (n *nginx) connectZone(words []nginxWord) {
	if len(words) < 3 {
		return
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(words[2].text, "zone="), ":")
	n.connected[name] = words[1].text
}

// connect remarks on limit_conn ZONE NUMBER, with the limit to write in its place.
func (n *nginx) connect(words []nginxWord) {
	id, slots := "connections", "20"
	if len(words) == 3 {
		id = word(words[1].text)
		if number, mistake := wholeNumber(words[2].text); mistake == "" && number <= limit.MaxSlots {
			slots = words[2].text
		}
	}
	by := "tenant"
	if variables, _, ok := splitKey(n.keyOfConnections(words)); ok && len(variables) == 1 {
		switch variable := variables[0]; {
		case isAddress(variable):
			by = "tenant, ip"
		case variable == "server_name" || variable == "host":
			by = "tenant, " + variable
		}
	}
	n.remark(words[0].line, "limit_conn is not imported: %s", fmt.Sprintf("services hold slots by RL.ACQUIRE, and give them back by RL.RELEASE; for these write into a plan {id: %s, by: [%s], algorithm: concurrency, slots: %s}", id, by, slots))
}

// keyOfConnections returns the key of the zone of a limit_conn, or "".
func (n *nginx) keyOfConnections(words []nginxWord) string {
	if len(words) < 2 {
		return ""
	}
	return n.connected[words[1].text]
}
