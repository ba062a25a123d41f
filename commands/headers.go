package commands

import (
	"github.com/tidwall/redcon"

	"github.com/limitgate/limitgate/internal/httpfields"
	"github.com/limitgate/limitgate/limit"
)

// headers appends the HTTP header fields for a decision, as a flat list of names and values: those
// of httpfields.Draft11. Without a limit the list is empty.
func (r *reply) headers(d *limit.Decision) {
	var room [httpfields.MaxFields]httpfields.Field
	var values [httpfields.MaxBytes]byte
	fields := httpfields.Draft11.Append(room[:0], values[:0], d, nil) // no field of it has the time
	r.array(2 * len(fields))
	for _, f := range fields {
		r.buf = redcon.AppendBulk(redcon.AppendBulk(r.buf, f.Name), f.Value)
	}
}
