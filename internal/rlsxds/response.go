package rlsxds

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	// maxResources bounds the resources of a response. A server has a few for each listener. Without the
	// bound, a message of empty ones would take many times its own length in memory.
	maxResources = 10_000
	// maxWord bounds a version and a nonce, in bytes: each request repeats them.
	maxWord = 1 << 10
)

// codec encodes requests, and decodes responses only as far as this package reads them. The memory of a
// response is thus bounded by the length of its message.
type codec struct{}

// Name implements encoding.Codec.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (codec) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }

// Unmarshal implements encoding.Codec.
func (codec) Unmarshal(data []byte, v any) error { return v.(*response).parse(data) }

// response is a DiscoveryResponse.
type response struct {
	version, nonce string
	kind           []byte // the type of all resources
	resources      []resource
	tooMany        bool // there are more
}

// resource is an Any.
type resource struct{ kind, value []byte }

// The numbers of the fields of DiscoveryResponse and of Any.
const (
	fieldVersion   protowire.Number = 1
	fieldResources protowire.Number = 2
	fieldType      protowire.Number = 4
	fieldNonce     protowire.Number = 5

	fieldAnyType  protowire.Number = 1
	fieldAnyValue protowire.Number = 2
)

// parse reads a message, of which the response keeps parts.
func (r *response) parse(data []byte) error {
	err := eachBytes(data, func(number protowire.Number, value []byte) (err error) {
		switch number {
		case fieldVersion:
			r.version, err = word(value)
		case fieldNonce:
			r.nonce, err = word(value)
		case fieldType:
			r.kind = value
		case fieldResources:
			err = r.addResource(value)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("parse response: %w", err)
	}
	return nil
}

// addResource reads a resource. Those that are too many are read too: one that cannot be read ends the
// stream, wherever it is.
func (r *response) addResource(data []byte) error {
	var one resource
	err := eachBytes(data, func(number protowire.Number, value []byte) error {
		switch number {
		case fieldAnyType:
			one.kind = value
		case fieldAnyValue:
			one.value = value
		}
		return nil
	})
	if r.tooMany = r.tooMany || len(r.resources) == maxResources; !r.tooMany {
		r.resources = append(r.resources, one)
	}
	return err
}

// eachBytes calls f for each field of a message that has bytes, and skips others.
func eachBytes(data []byte, f func(number protowire.Number, value []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return protowire.ParseError(n)
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if err := f(number, value[:len(value):len(value)]); err != nil {
			return err
		}
	}
	return nil
}

var errWord = fmt.Errorf("its version or nonce is not UTF-8 of at most %d bytes", maxWord)

// word reads a version or a nonce.
func word(value []byte) (string, error) {
	if len(value) > maxWord || !utf8.Valid(value) {
		return "", errWord
	}
	return string(value), nil
}

var errTooMany = fmt.Errorf("there are more than %d resources", maxResources)

// errType is returned for a response of another type.
var errType = errors.New("not a RateLimitConfig")

// values returns the bytes of the resources.
func (r *response) values() ([][]byte, error) {
	switch {
	case string(r.kind) != configType:
		return nil, fmt.Errorf("%w: the response is of %.100q", errType, r.kind)
	case r.tooMany:
		return nil, errTooMany
	}
	all := make([][]byte, len(r.resources))
	for i, one := range r.resources {
		if string(one.kind) != configType {
			return nil, fmt.Errorf("%w: resource %d is of %.100q", errType, i+1, one.kind)
		}
		all[i] = one.value
	}
	return all, nil
}
