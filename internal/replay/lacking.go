package replay

import (
	"fmt"
	"maps"
	"slices"
)

// noWord is what a template makes of a line that has none of its fields.
const noWord = "-"

// manyLack is the part of the lines, as a divisor, from which on a warning says that they lack the tenant: a log
// of a site with a login has some lines without a user.
const manyLack = 10

// lacking counts the lines that have no value for a template.
type lacking struct {
	requests, tenant int64
	dims             map[string]int64
}

// addDim counts a line without a value for a dimension.
func (l *lacking) addDim(name string) {
	if l.dims == nil {
		l.dims = map[string]int64{}
	}
	l.dims[name]++
}

// warn calls opts.Warn for templates that name what the log lacks.
func (l *lacking) warn(opts *Options) {
	if opts.Warn == nil || l.requests == 0 {
		return
	}
	switch tenant := opts.Tenant.String(); {
	case tenant == noWord:
	case l.tenant == l.requests:
		opts.Warn(fmt.Sprintf("no line of the log has a value for --tenant %s: all requests are of one tenant, -", tenant))
	case l.tenant > 0 && l.tenant >= l.requests/manyLack:
		opts.Warn(fmt.Sprintf("%d of %d lines have no value for --tenant %s: they are of one tenant, -", l.tenant, l.requests, tenant))
	}
	for _, name := range slices.Sorted(maps.Keys(l.dims)) {
		if l.dims[name] == l.requests {
			opts.Warn(fmt.Sprintf("no line of the log has a value for --dim %s=%s: no request has that dimension", name, opts.Dims[name]))
		}
	}
}
