package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// request is the body of any operation. A field that is missing is nil.
type request struct {
	Tenant, Op, IP, ID, Bypass, Limit *string
	Dims                              map[string]string
	// These are integers as they were written; the command checks them.
	Cost, Estimate, Actual, TTL []byte
}

// given returns the names of the fields that are there.
func (r *request) given() (names []string) {
	for _, f := range [...]struct {
		name  string
		there bool
	}{
		{"tenant", r.Tenant != nil},
		{"op", r.Op != nil},
		{"ip", r.IP != nil},
		{"cost", r.Cost != nil},
		{"dims", r.Dims != nil},
		{"id", r.ID != nil},
		{"bypass", r.Bypass != nil},
		{"limit", r.Limit != nil},
		{"estimate", r.Estimate != nil},
		{"actual", r.Actual != nil},
		{"ttl_ms", r.TTL != nil},
	} {
		if f.there {
			names = append(names, f.name)
		}
	}
	return names
}

// checkFields checks the names of the fields of a request.
func (o *operation) checkFields(given []string) error {
	for _, name := range given {
		if !slices.Contains(o.fields, name) {
			return o.unknown(name)
		}
	}
	for _, name := range o.required {
		if !slices.Contains(given, name) {
			return fmt.Errorf("%s is missing: %s", name, o.example)
		}
	}
	return nil
}

// unknown returns the error for a field that an operation does not have.
func (o *operation) unknown(name string) error {
	if near := limit.Nearest(name, o.fields); near != "" && near != name {
		return fmt.Errorf("there is no field %q; did you mean %s?", cut(name), near)
	}
	return fmt.Errorf("there is no field %q; the fields of %s are %s", cut(name), o.name, strings.Join(o.fields, ", "))
}

// decodeQuery reads query parameters into a request; dim.NAME is a dimension. The error is a
// sentence for the client.
func (o *operation) decodeQuery(query []byte) (r request, err error) {
	values, err := url.ParseQuery(string(query))
	if err != nil {
		return r, errors.New("the query cannot be read: " + cut(err.Error()))
	}
	for name, all := range values {
		if len(all) > 1 {
			return r, fmt.Errorf("%q is there twice", cut(name))
		}
		if err := r.set(name, all[0]); err != nil {
			return r, o.unknown(name)
		}
	}
	return r, o.checkFields(r.given())
}

var errUnknownParameter = errors.New("unknown parameter")

// set sets the field that a query parameter names.
func (r *request) set(name, value string) error {
	if dim, ok := strings.CutPrefix(name, "dim."); ok {
		if r.Dims == nil {
			r.Dims = map[string]string{}
		}
		r.Dims[dim] = value
		return nil
	}
	switch name {
	case "tenant":
		r.Tenant = &value
	case "op":
		r.Op = &value
	case "ip":
		r.IP = &value
	case "cost":
		r.Cost = []byte(value)
	case "limit":
		r.Limit = &value
	default:
		return errUnknownParameter
	}
	return nil
}

// maxShown is the maximum number of bytes of a client's text that an error repeats.
const maxShown = 64

// cut shortens a text of a client, and leaves out what is not printable.
func cut(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '�' {
			return '?'
		}
		return r
	}, text)
}
