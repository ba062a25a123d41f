package rlsconfig

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// TypeURL is the type of the resources of DecodeXDS.
const TypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

const (
	// maxResources and maxResourceBytes bound the resources of one configuration.
	maxResources     = 10_000
	maxResourceBytes = 64 << 20
	// maxMetadataDepth bounds the messages in each other of metadata, two for each level.
	maxMetadataDepth = 2 * maxDepth
)

// DecodeXDS compiles resources of xDS, each the value of an Any with the TypeURL. In a Problem the
// name of the resource is in place of the file.
//
// The message is decoded here field by field, because the generated packages that are published
// lack quota_mode and metadata. It has no share_threshold and no value_to_metric.
func DecodeXDS(resources [][]byte, opts Options) (*Config, Problems) {
	r := &report{}
	size := 0
	for _, resource := range resources {
		size += len(resource)
	}
	if len(resources) > maxResources || size > maxResourceBytes {
		r.stop(place{file: "xDS"}, "there are %d resources of %d bytes, and at most %d of %d bytes", len(resources), size, maxResources, maxResourceBytes)
	}
	var docs []*document
	for i, resource := range resources {
		if r.stopped {
			break
		}
		docs = append(docs, decodeResource(resource, i, r))
	}
	return compile(docs, opts, r)
}

// decodeResource returns the document of the resource with an index.
func decodeResource(resource []byte, index int, r *report) *document {
	doc := &document{at: place{file: fmt.Sprintf("resource %d", index+1)}}
	d := &xdsDecoder{r}
	err := fields(resource, func(f field) error {
		if f.number == 1 && f.kind == protowire.BytesType && len(f.bytes) > 0 {
			doc.at.file = string(f.bytes)
		}
		return nil
	})
	if err == nil {
		err = d.config(resource, doc)
	}
	if err != nil {
		r.fail(doc.at, "not readable as a RateLimitConfig: %s", err)
		doc.domain.broken, doc.descriptors = true, nil // they may lack fields
	}
	return doc
}

// errMalformed is returned for bytes that are no message. The text of protowire's error differs
// from build to build.
var errMalformed = errors.New("the message is malformed")

// field is a field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	varint uint64
	bytes  []byte
}

// fields calls read for each field of a message.
func fields(message []byte, read func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMalformed
		}
		f := field{number: number, kind: kind}
		message = message[n:]
		switch kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		if err := read(f); err != nil {
			return err
		}
	}
	return nil
}

// setFlag sets a flag to that of a field.
func setFlag(to *bool, f field) {
	if f.kind == protowire.VarintType {
		*to = protowire.DecodeBool(f.varint)
	}
}

// xdsDecoder turns messages into documents. Unknown fields, and those of another type, are left out,
// as by every reader of protocol buffers.
type xdsDecoder struct{ *report }

// text sets text to that of a field.
func (d *xdsDecoder) text(to *text, f field, at place) {
	switch {
	case f.kind != protowire.BytesType:
	case !utf8.Valid(f.bytes):
		d.fail(at, "it is not text in UTF-8")
		to.broken = true
	default:
		to.value = string(f.bytes)
	}
}

// config decodes a RateLimitConfig.
func (d *xdsDecoder) config(message []byte, doc *document) error {
	return fields(message, func(f field) error {
		switch {
		case f.number == 1:
			d.text(&text{}, f, doc.at.in("name"))
		case f.number == 2:
			d.text(&doc.domain, f, doc.at.in("domain"))
		case f.number == 3 && f.kind == protowire.BytesType:
			at := doc.at.in("descriptors").element(len(doc.descriptors))
			return d.addTo(&doc.descriptors, f.bytes, at, 1)
		}
		return nil
	})
}

// addTo appends a RateLimitDescriptor at a depth, from 1.
func (d *xdsDecoder) addTo(specs *[]descriptorSpec, message []byte, at place, depth int) error {
	if !d.addDescriptor(at, depth) {
		return nil
	}
	spec := descriptorSpec{at: at}
	err := d.descriptor(message, &spec, depth)
	*specs = append(*specs, spec)
	return err
}

// descriptor decodes a RateLimitDescriptor.
func (d *xdsDecoder) descriptor(message []byte, spec *descriptorSpec, depth int) error {
	return fields(message, func(f field) error {
		switch {
		case f.number == 1:
			d.text(&spec.key, f, spec.at.in("key"))
		case f.number == 2:
			d.text(&spec.value, f, spec.at.in("value"))
		case f.number == 3 && f.kind == protowire.BytesType:
			if spec.policy == nil {
				spec.policy = &policySpec{at: spec.at.in("rate_limit")}
			}
			return d.policy(f.bytes, spec.policy)
		case f.number == 4 && f.kind == protowire.BytesType:
			at := spec.at.in("descriptors").element(len(spec.descriptors))
			return d.addTo(&spec.descriptors, f.bytes, at, depth+1)
		case f.number == 5:
			setFlag(&spec.shadow, f)
		case f.number == 6:
			setFlag(&spec.detailedMetric, f)
		case f.number == 7:
			setFlag(&spec.quota, f)
		case f.number == 8 && f.kind == protowire.BytesType:
			d.metadata(spec, f.bytes)
		}
		return nil
	})
}

// metadata decodes a google.protobuf.Struct. If a descriptor has several, they are merged.
func (d *xdsDecoder) metadata(spec *descriptorSpec, message []byte) {
	var s structpb.Struct
	if err := (proto.UnmarshalOptions{RecursionLimit: maxMetadataDepth}).Unmarshal(message, &s); err != nil {
		d.fail(spec.at.in("metadata"), "it is not a Struct, or nests deeper than %d levels", maxMetadataDepth/2)
		return
	}
	if spec.metadata == nil {
		spec.metadata = map[string]any{}
	}
	for key, value := range s.GetFields() {
		spec.metadata[key] = value.AsInterface()
	}
}

// policy decodes a RateLimitPolicy.
func (d *xdsDecoder) policy(message []byte, spec *policySpec) error {
	return fields(message, func(f field) error {
		switch {
		case f.number == 1 && f.kind == protowire.VarintType:
			spec.unit.value = unitText(f.varint)
		case f.number == 2 && f.kind == protowire.VarintType:
			spec.requestsPerUnit = uint32(f.varint)
		case f.number == 3:
			setFlag(&spec.unlimited, f)
		case f.number == 4:
			d.text(&spec.name, f, spec.at.in("name"))
		case f.number == 5 && f.kind == protowire.BytesType:
			replaced := replaceSpec{at: spec.at.in("replaces").element(len(spec.replaces))}
			err := fields(f.bytes, func(f field) error {
				if f.number == 1 {
					d.text(&replaced.name, f, replaced.at.in("name"))
				}
				return nil
			})
			spec.replaces = append(spec.replaces, replaced)
			return err
		}
		return nil
	})
}

// unitText returns the name of a unit of RateLimitUnit, or the number of an undefined one.
func unitText(number uint64) string {
	switch {
	case number == 0:
		return ""
	case number < uint64(len(units)):
		return units[number].name
	}
	return strconv.FormatInt(int64(int32(number)), 10)
}
