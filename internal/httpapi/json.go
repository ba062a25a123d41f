package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// decoders have buffers that each body needs.
var decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(bytes.NewBuffer(nil)) }}

// decode reads a body into requests, which have parts of it: an object, or a list of them where the
// operation decides. List reports a list. The error is a sentence for the client.
func (o *operation) decode(body []byte) (requests []request, list bool, err error) {
	d := reader{decoders.Get().(*jsontext.Decoder), body}
	d.Reset(bytes.NewBuffer(body))
	defer func() {
		d.Reset(bytes.NewBuffer(nil)) // it keeps no body
		decoders.Put(d.Decoder)
	}()
	switch d.PeekKind() {
	case '{':
		requests = make([]request, 1)
		err = o.decodeObject(&d, &requests[0])
	case '[':
		if !o.decides() {
			return nil, false, errors.New("this operation takes one object, and no list")
		}
		requests, err = o.decodeList(&d)
		list = true
	default:
		if len(bytes.TrimSpace(body)) == 0 || json.Valid(body) {
			return nil, false, errors.New("a JSON object is needed: " + o.example)
		}
		return nil, false, errors.New("the body is not JSON: a JSON object is needed: " + o.example)
	}
	if err == nil {
		if _, err = d.ReadToken(); errors.Is(err, io.EOF) {
			return requests, list, nil
		}
		err = errors.New("one JSON value is a body, and more follows it")
	}
	return nil, list, o.syntaxOf(err, body)
}

// decodeList reads a list of requests.
func (o *operation) decodeList(d *reader) (requests []request, err error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		if len(requests) == maxList {
			return nil, errors.New(tooLong)
		}
		if kind := d.PeekKind(); kind != '{' && kind != 0 {
			return nil, fmt.Errorf("request %d of the list is %s: an object belongs there", len(requests)+1, kindNames[kind])
		}
		requests = append(requests, request{})
		if err := o.decodeObject(d, &requests[len(requests)-1]); err != nil {
			if syntax := new(jsontext.SyntacticError); !errors.As(err, &syntax) {
				err = fmt.Errorf("request %d of the list: %w", len(requests), err)
			}
			return nil, err
		}
	}
	_, err = d.ReadToken()
	return requests, err
}

// decodeObject reads one request. Names count as they are written, and once.
func (o *operation) decodeObject(d *reader, r *request) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.readText()
		if err != nil {
			return err
		}
		f, ok := fieldOf(name)
		if !ok || !slices.Contains(o.fields, f) {
			return o.unknown(string(name), dimInBody)
		}
		if err := r.read(d, f); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	return o.checkRequired(r)
}

// read reads the value of a field; null is as if the field were missing.
func (r *request) read(d *reader, f field) (err error) {
	kind := d.PeekKind()
	switch {
	case kind == 'n':
		_, err := d.ReadToken()
		return err
	case f == fieldDims && (kind == '{' || kind == 0):
		err = r.readDims(d)
	case f == fieldDims:
		return fmt.Errorf(`dims is %s: names with texts belong there, such as {"user": "u1"}`, kindNames[kind])
	case f.isNumber() && (kind == '0' || kind == 0):
		if r.values[f], err = d.readRaw(); err == nil {
			err = checkSpelling(f, r.values[f])
		}
	case f.isNumber():
		return d.notNumber(fieldNames[f], kind)
	case kind == '"' || kind == 0:
		r.values[f], err = d.readText()
	default:
		return d.notText(fieldNames[f], kind)
	}
	r.given |= 1 << f
	return err
}

// checkSpelling returns an error for a whole number that is not written in digits.
func checkSpelling(f field, value []byte) error {
	if bytes.IndexFunc(value, func(c rune) bool { return c < '0' || c > '9' }) < 0 {
		return nil
	}
	if n, err := strconv.ParseFloat(string(value), 64); err == nil && n == math.Trunc(n) && n >= 1 && n <= bucket.MaxCost {
		return fmt.Errorf("%s is %s: write %d", fieldNames[f], limit.Shorten(string(value)), int64(n))
	}
	return nil // the command refuses it
}

// readDims reads the dimensions. One whose value is null is missing.
func (r *request) readDims(d *reader) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.readText()
		if err != nil {
			return err
		}
		switch kind := d.PeekKind(); kind {
		case 'n':
			_, err = d.ReadToken()
		case '"', 0:
			var value []byte
			value, err = d.readText()
			r.dims = append(r.dims, [2][]byte{name, value})
		default:
			return d.notText("dims."+limit.Shorten(string(name)), kind)
		}
		if err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// reader reads a body.
type reader struct {
	*jsontext.Decoder
	body []byte
}

// notText returns the error for a value of another kind that stands next, in the place of a text.
func (d *reader) notText(name string, kind jsontext.Kind) error {
	if kind != '0' {
		return fmt.Errorf("%s is %s: a text belongs there", name, kindNames[kind])
	}
	number, err := d.readRaw()
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is a number: write the text %q", name, limit.Shorten(string(number)))
}

// notNumber returns the error of a value that is no number. A text of digits is one without its quotes.
func (d *reader) notNumber(name string, kind jsontext.Kind) error {
	if kind == '"' {
		text, err := d.readText()
		if err != nil {
			return err
		}
		if meant := limit.MeantNumber(string(text)); meant > 0 {
			return fmt.Errorf("%s is a text: write the number %d, without quotes", name, meant)
		}
	}
	return fmt.Errorf("%s is %s: an integer belongs there", name, kindNames[kind])
}

// readRaw reads a value as it is written, and returns that part of the body.
func (d *reader) readRaw() ([]byte, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.InputOffset())
	return d.body[end-len(value) : end : end], nil
}

// readText reads a text. It is a part of the body unless it has escapes.
func (d *reader) readText() ([]byte, error) {
	raw, err := d.readRaw()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote([]byte{}, raw)
}

// kindNames are the kinds of JSON values, for errors.
var kindNames = map[jsontext.Kind]string{'n': "null", 'f': "false", 't': "true", '"': "a text", '0': "a number", '{': "an object", '[': "a list"}

// bareName matches a name of an object without double quotes.
var bareName = regexp.MustCompile(`[{,]\s*'?([A-Za-z_][\w.-]*)'?\s*:`)

// unquoted returns the name without double quotes at which an error of the syntax of a body is, or "".
func unquoted(body []byte, at int64) string {
	for _, m := range bareName.FindAllSubmatchIndex(body, maxBareNames) {
		if begin := int64(m[2]); at == begin || at == begin-1 && body[at] == '\'' || at > begin && at < int64(m[3]) && isLiteral(body[m[2]]) {
			return string(body[m[2]:m[3]])
		}
	}
	return ""
}

// isLiteral reports whether a byte begins true, false or null, which the error is about if a name begins so.
func isLiteral(b byte) bool { return b == 't' || b == 'f' || b == 'n' }

// maxBareNames bounds the names that unquoted looks at.
const maxBareNames = 100

// syntaxOf turns an error of the syntax of a body into a sentence, with an example of a body, and leaves others.
func (o *operation) syntaxOf(err error, body []byte) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the body is not JSON: it ends too early; write for example " + o.example)
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return fmt.Errorf("%s is there twice in one object", limit.Shorten(syntax.JSONPointer.LastToken()))
	case errors.As(err, &syntax):
		if name := limit.Shorten(unquoted(body, syntax.ByteOffset)); name != "" {
			return fmt.Errorf("the body is not JSON: the name %s has no double quotes: write \"%[1]s\", for example %s", name, o.example)
		}
		return fmt.Errorf("the body is not JSON: %s at byte %d; write for example %s", limit.Shorten(strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")), syntax.ByteOffset, o.example)
	}
	return err
}
