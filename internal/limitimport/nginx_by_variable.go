package limitimport

import (
	"github.com/limitgate/limitgate/limit"
)

// emptyText begins a remark on a limit that counts requests whose key is empty in nginx.
const emptyText = "$%s is the address of the client or empty, by the map on line %d; here requests for which it is empty count too: "

// remarkByVariable remarks on limits by the address that leave it empty by another variable, and says how they count by the key.
func (n *nginx) remarkByVariable() {
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported || r.exempting == nil || r.limit.shadow || !n.isByVariable(r.exempting) {
			continue
		}
		_, _, why := n.exempted(r.exempting, r.variable, r.nested)
		n.remark(r.line, emptyText+"%s%s", limit.Shorten(r.variable), r.exempting.line, why, n.keepPlacesBy(r))
	}
}

// keepPlacesBy says how other limits keep the place of that of a limit_req, or lift it, once that counts by its variable, or
// returns "".
func (n *nginx) keepPlacesBy(r *limitRequest) string {
	var lines []string
	enforced := false
	for _, o := range n.shared {
		if n.compared++; o.shadow || len(lines) > mostNamed || !o.takesPlaceOf(&r.limit) || !o.meets(r.limit.when) {
			continue
		}
		allow := o.allow()
		allow.id, allow.by, allow.group = o.id, []string{word(r.variable)}, r.limit.group
		if _, known := n.nameAdvised(&allow, r.line); !known {
			lines = append(lines, allow.line())
			enforced = enforced || o.action == ""
		}
	}
	if len(lines) == 0 {
		return ""
	}
	n.hash(word(r.variable))
	n.advised = append(n.advised, condition{word(r.variable), ""})
	text := "; others keep its place then, or lift it, by " + named(lines)
	if enforced {
		text += ", in place of their replaces: [" + limit.Shorten(r.limit.id) + "]"
	}
	return text + "; a line that is advised here to lift it has by: [" + word(r.variable) + "] too"
}
