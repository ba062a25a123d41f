package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// request is the body of any operation. A field that is missing is nil.
type request struct {
	Tenant   *string           `json:"tenant"`
	Op       *string           `json:"op"`
	IP       *string           `json:"ip"`
	Cost     integer           `json:"cost"`
	Dims     map[string]string `json:"dims"`
	ID       *string           `json:"id"`
	Bypass   *string           `json:"bypass"`
	Limit    *string           `json:"limit"`
	Estimate integer           `json:"estimate"`
	Actual   integer           `json:"actual"`
	TTL      integer           `json:"ttl_ms"`
}

// integer is a JSON number as it was written; the command checks it.
type integer []byte

// UnmarshalJSON takes a number. The error of anything else has no position: decodeError adds it.
func (n *integer) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if c := b[0]; c != '-' && (c < '0' || c > '9') {
		return errNoInteger
	}
	*n = append([]byte(nil), b...)
	return nil
}

var errNoInteger = errors.New("cost, estimate, actual and ttl_ms are integers")

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

// decode reads a body into requests: an object, or a list of them where the operation decides.
// List reports a list. The error is a sentence for the client.
func (o *operation) decode(body []byte) (requests []request, list bool, err error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil, false, errors.New("a JSON object is needed: " + o.example)
	}
	if list = body[0] == '['; list {
		if !o.decides() {
			return nil, false, errors.New("this operation takes one object, and no list")
		}
		err = strictly(body, &requests)
	} else {
		requests = make([]request, 1)
		err = strictly(body, &requests[0])
	}
	if err != nil {
		return nil, list, o.decodeError(err)
	}
	if len(requests) > maxList {
		return nil, list, errors.New(tooLong)
	}
	for i := range requests {
		if err := o.checkFields(requests[i].given()); err != nil {
			if list {
				err = fmt.Errorf("request %d: %w", i, err)
			}
			return nil, list, err
		}
	}
	return requests, list, nil
}

// strictly decodes one JSON value without unknown fields.
func strictly(body []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if d.More() {
		return errors.New("one JSON value is a body, and more follows it")
	}
	return nil
}

// decodeError turns an error of the decoder into a sentence.
func (o *operation) decodeError(err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the body is not JSON: it ends too early")
	case errors.As(err, &wrong) && wrong.Field == "":
		return errors.New("a JSON object is needed: " + o.example)
	case errors.As(err, &wrong) && wrong.Field == "dims":
		return errors.New(`dims has names with texts: {"user": "u1"}`)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s is a %s: a text belongs there", cut(wrong.Field), wrong.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("the body is not JSON: %s at byte %d", cut(syntax.Error()), syntax.Offset)
	}
	if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return o.unknown(strings.Trim(name, `"`))
	}
	return errors.New(cut(strings.TrimPrefix(err.Error(), "json: ")))
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
		r.Cost = integer(value)
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
