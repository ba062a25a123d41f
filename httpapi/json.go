package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// decoders have buffers that each body needs.
var decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(bytes.NewBuffer(nil)) }}

// decode reads a body into requests: an object, or a list of them where the operation decides.
// List reports a list. The error is a sentence for the client.
func (o *operation) decode(body []byte) (requests []request, list bool, err error) {
	d := decoders.Get().(*jsontext.Decoder)
	d.Reset(bytes.NewBuffer(body))
	defer func() {
		d.Reset(bytes.NewBuffer(nil)) // it keeps no body
		decoders.Put(d)
	}()
	switch d.PeekKind() {
	case '{':
		var r request
		err = o.decodeObject(d, &r)
		requests = []request{r}
	case '[':
		if !o.decides() {
			return nil, false, errors.New("this operation takes one object, and no list")
		}
		requests, err = o.decodeList(d)
		list = true
	default:
		if len(bytes.TrimSpace(body)) == 0 || json.Valid(body) {
			return nil, false, errors.New("a JSON object is needed: " + o.example)
		}
		_, err = d.ReadValue()
	}
	if err == nil {
		if _, err = d.ReadToken(); errors.Is(err, io.EOF) {
			return requests, list, nil
		}
		err = errors.New("one JSON value is a body, and more follows it")
	}
	return nil, list, syntaxOf(err)
}

// decodeList reads a list of requests.
func (o *operation) decodeList(d *jsontext.Decoder) (requests []request, err error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		if len(requests) == maxList {
			return nil, errors.New(tooLong)
		}
		if kind := d.PeekKind(); kind != '{' && kind != 0 {
			return nil, fmt.Errorf("request %d is %s: an object belongs there", len(requests), kindNames[kind])
		}
		var r request
		if err := o.decodeObject(d, &r); err != nil {
			if syntax := new(jsontext.SyntacticError); !errors.As(err, &syntax) {
				err = fmt.Errorf("request %d: %w", len(requests), err)
			}
			return nil, err
		}
		requests = append(requests, r)
	}
	_, err = d.ReadToken()
	return requests, err
}

// decodeObject reads one request. Names count as they are written, and once.
func (o *operation) decodeObject(d *jsontext.Decoder, r *request) error {
	err := members(d, func(name string) error {
		if !slices.Contains(o.fields, name) {
			return o.unknown(name)
		}
		text, number := r.field(name)
		switch {
		case text != nil:
			return readText(d, name, text)
		case number != nil:
			return readInteger(d, name, number)
		default:
			return r.readDims(d)
		}
	})
	if err != nil {
		return err
	}
	return o.checkFields(r.given())
}

// field returns where the text or the integer of a name belongs; of dims both are nil.
func (r *request) field(name string) (text **string, number *[]byte) {
	switch name {
	case "tenant":
		return &r.Tenant, nil
	case "op":
		return &r.Op, nil
	case "ip":
		return &r.IP, nil
	case "id":
		return &r.ID, nil
	case "bypass":
		return &r.Bypass, nil
	case "limit":
		return &r.Limit, nil
	case "cost":
		return nil, &r.Cost
	case "estimate":
		return nil, &r.Estimate
	case "actual":
		return nil, &r.Actual
	case "ttl_ms":
		return nil, &r.TTL
	}
	return nil, nil
}

// members reads an object, and calls read for each of its members, which reads its value.
func members(d *jsontext.Decoder, read func(name string) error) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := read(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// kindNames are the kinds of JSON values, for errors.
var kindNames = map[jsontext.Kind]string{'n': "null", 'f': "false", 't': "true", '"': "a text", '0': "a number", '{': "an object", '[': "a list"}

// readText reads a text; null is as if it were missing.
func readText(d *jsontext.Decoder, name string, to **string) error {
	switch kind := d.PeekKind(); kind {
	case '"', 'n', 0:
		token, err := d.ReadToken()
		if err != nil || kind == 'n' {
			return err
		}
		text := token.String()
		*to = &text
		return nil
	default:
		return fmt.Errorf("%s is %s: a text belongs there", cut(name), kindNames[kind])
	}
}

// readInteger reads a number; null is as if it were missing.
func readInteger(d *jsontext.Decoder, name string, to *[]byte) error {
	switch kind := d.PeekKind(); kind {
	case '0', 'n', 0:
		value, err := d.ReadValue()
		if err != nil || kind == 'n' {
			return err
		}
		*to = bytes.Clone(value)
		return nil
	default:
		return fmt.Errorf("%s is %s: an integer belongs there", name, kindNames[kind])
	}
}

// readDims reads the dimensions.
func (r *request) readDims(d *jsontext.Decoder) error {
	switch kind := d.PeekKind(); kind {
	case '{', 0:
	case 'n':
		_, err := d.ReadToken()
		return err
	default:
		return fmt.Errorf(`dims is %s: names with texts belong there, such as {"user": "u1"}`, kindNames[kind])
	}
	r.Dims = map[string]string{}
	return members(d, func(name string) error {
		var value *string
		if err := readText(d, "dims."+name, &value); err != nil {
			return err
		}
		if value != nil {
			r.Dims[name] = *value
		}
		return nil
	})
}

// syntaxOf turns an error of the syntax into a sentence, and leaves others.
func syntaxOf(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the body is not JSON: it ends too early")
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return fmt.Errorf("%s is there twice in one object", cut(syntax.JSONPointer.LastToken()))
	case errors.As(err, &syntax):
		return fmt.Errorf("the body is not JSON: %s at byte %d", cut(strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")), syntax.ByteOffset)
	}
	return err
}
