package limitimport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/internal/httpfields"
	"github.com/limitgate/limitgate/limit"
)

// noteHeader notes that a dimension has the values of a header, which may be for credentials, or for addresses.
func (d *draft) noteHeader(dimension, header string) {
	if httpfields.IsCredential(header) || httpfields.IsAddress(header) {
		d.hash(dimension)
	}
}

// hash notes that names of buckets do not have the values of a dimension.
func (d *draft) hash(dimension string) {
	if d.secret == nil {
		d.secret = map[string]bool{}
	}
	d.secret[dimension] = true
}

// writeDimensions writes the dimensions of the file if names of buckets would have secrets otherwise, or lint would take a
// condition for a mistake. A file that declares one declares all.
func (d *draft) writeDimensions(b *strings.Builder) {
	used, secret, mistaken := map[string]bool{}, map[string]bool{}, false
	for _, l := range slices.Concat(d.tenant, d.shared) {
		for name := range strings.SplitSeq(strings.Join(l.by, "|"), "|") {
			used[name] = true
			if l.action == "" && (d.secret[name] || limit.LooksSecret(name)) {
				secret[name] = true
			}
		}
		for _, c := range l.when {
			used[c.dimension] = true
			mistaken = mistaken || limit.MistakenDim(c.dimension)
		}
	}
	for _, c := range d.advised {
		if used[c.dimension] = true; d.secret[c.dimension] {
			secret[c.dimension] = true
		}
	}
	if len(secret) == 0 && !mistaken {
		return
	}
	b.WriteString("dimensions:\n")
	for _, name := range slices.Sorted(maps.Keys(used)) {
		switch {
		case name == "", limit.ReservedDim(name):
		case secret[name]:
			fmt.Fprintf(b, "  %s: {hash: true} # names of buckets do not have its values\n", plain(name))
		default:
			fmt.Fprintf(b, "  %s: {}\n", plain(name))
		}
	}
}
