package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// field is a field of a body.
type field uint8

// The fields.
const (
	fieldTenant field = iota
	fieldOp
	fieldIP
	fieldCost
	fieldDims
	fieldID
	fieldBypass
	fieldLimit
	fieldEstimate
	fieldActual
	fieldTTL
	numFields
)

// fieldNames are the names of the fields.
var fieldNames = [numFields]string{"tenant", "op", "ip", "cost", "dims", "id", "bypass", "limit", "estimate", "actual", "ttl_ms"}

// fieldOf returns the field of a name.
func fieldOf(name []byte) (field, bool) {
	for f, known := range fieldNames {
		if string(name) == known {
			return field(f), true
		}
	}
	return 0, false
}

// isNumber reports whether a field is an integer, which the command checks; dims are pairs, and all
// others texts.
func (f field) isNumber() bool {
	return f == fieldCost || f == fieldEstimate || f == fieldActual || f == fieldTTL
}

// request is the body of any operation. It has parts of the body, which must outlive it.
type request struct {
	values [numFields][]byte // nil if the field is missing
	dims   [][2][]byte       // names and values
	given  uint16            // a bit for each field that is there
}

// has reports whether a field is there.
func (r *request) has(f field) bool { return r.given&(1<<f) != 0 }

// namesOf returns the names of fields.
func namesOf(fields []field) (names []string) {
	for _, f := range fields {
		names = append(names, fieldNames[f])
	}
	return names
}

// checkRequired checks that a request has what its operation needs.
func (o *operation) checkRequired(r *request) error {
	for _, f := range o.required {
		if !r.has(f) {
			return fmt.Errorf("%s is missing: %s", fieldNames[f], o.example)
		}
	}
	return nil
}

// How a dimension is written in a body and in a query.
const (
	dimInBody  = `stands in dims, such as {"user": "u1"}`
	dimInQuery = "is a parameter such as dim.user=u1"
)

// otherFields are names that other limiters have for fields.
var otherFields = map[string]string{
	"operation": "op", "route": "op", "resource": "op", "endpoint": "op", "client": "tenant", "account": "tenant", "organization": "tenant",
	"address": "ip", "client_ip": "ip", "remote_addr": "ip", "units": "cost", "amount": "cost", "weight": "cost", "tokens": "cost", "dimensions": "dims", "cost": "estimate",
	"ttl": "ttl_ms", "px": "ttl_ms", "expires": "ttl_ms", "ttl_seconds": "ttl_ms",
}

// unknown returns the error for a field that an operation does not have. DimForm says how a dimension is written.
func (o *operation) unknown(name, dimForm string) error {
	names := namesOf(o.fields)
	if dimForm == dimInQuery && slices.Contains(o.fields, fieldDims) {
		names = slices.DeleteFunc(names, func(n string) bool { return n == fieldNames[fieldDims] })
		if name == "dim" || name == "dims" {
			return fmt.Errorf("there is no field %q; a dimension %s", name, dimForm)
		}
	}
	if meant := otherFields[name]; slices.Contains(names, meant) {
		return fmt.Errorf("there is no field %q; did you mean %s?", name, meant)
	}
	if near := limit.DidYouMean(name, names); near != "" {
		return fmt.Errorf("there is no field %q%s", limit.Shorten(name), near)
	}
	dims := ""
	if slices.Contains(o.fields, fieldDims) {
		dims = "; a dimension " + dimForm
	}
	return fmt.Errorf("there is no field %q; the fields of %s are %s%s", limit.Shorten(name), o.name, strings.Join(names, ", "), dims)
}

// decodeQuery reads query parameters into a request; dim.NAME is a dimension. The error is a
// sentence for the client.
func (o *operation) decodeQuery(query []byte) (r request, err error) {
	values, err := url.ParseQuery(string(query))
	if err != nil {
		return r, errors.New("the query cannot be read: " + limit.Shorten(err.Error()))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all := values[name]
		if len(all) > 1 {
			return r, fmt.Errorf("%q is there twice", limit.Shorten(name))
		}
		if dim, isDim := strings.CutPrefix(name, "dim."); isDim {
			r.dims = append(r.dims, [2][]byte{[]byte(dim), []byte(all[0])})
			continue
		}
		f, ok := fieldOf([]byte(name))
		if !ok || f == fieldDims || !slices.Contains(o.fields, f) {
			return r, o.unknown(name, dimInQuery)
		}
		r.values[f] = append([]byte{}, all[0]...)
		r.given |= 1 << f
	}
	if len(r.dims) > 0 && !slices.Contains(o.fields, fieldDims) {
		return r, o.unknown("dims", dimInQuery)
	}
	return r, o.checkRequired(&r)
}
