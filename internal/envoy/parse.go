package envoy

import (
	"unicode/utf8"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/limit"
)

// The errors of messages that are not requests.
var (
	errMessage   = status.Error(codes.InvalidArgument, "the message is malformed")
	errManyInOne = status.Errorf(codes.InvalidArgument, "a request has at most %d descriptors, and these %d entries", limit.MaxDescriptors, maxEntries)
)

// parser parses the messages of requests. It reuses the memory of the request before.
type parser struct {
	req         rls.RateLimitRequest
	descriptors []*ratelimit.RateLimitDescriptor
	entries     []*ratelimit.RateLimitDescriptor_Entry
	nEntries    int // used ones
}

// parse parses a message. The request is valid until the next call. parse refuses a request with too many
// descriptors or entries before it allocates any: they are two bytes each in a message, and a hundred in
// memory.
func (p *parser) parse(message []byte) (*rls.RateLimitRequest, error) {
	if p.parseUsual(message) {
		return &p.req, nil
	}
	if err := checkCounts(message); err != nil {
		return nil, err
	}
	req := new(rls.RateLimitRequest)
	if proto.Unmarshal(message, req) != nil {
		return nil, errMessage
	}
	return req, nil
}

// The numbers of the fields of requests:
// https://github.com/envoyproxy/envoy/blob/main/api/envoy/service/ratelimit/v3/rls.proto and
// https://github.com/envoyproxy/envoy/blob/main/api/envoy/extensions/common/ratelimit/v3/ratelimit.proto
const (
	domainField      protowire.Number = 1
	descriptorsField protowire.Number = 2
	hitsField        protowire.Number = 3
	entriesField     protowire.Number = 1
	keyField         protowire.Number = 1
	valueField       protowire.Number = 2
)

// The bounds of requests that parser.parseUsual takes, and whose memory it keeps.
const (
	maxUsualDescriptors = 16
	maxUsualEntries     = 64
)

// parseUsual parses a message as proto.Unmarshal does, in a fraction of the time, if its descriptors have entries
// alone, and not too many. It returns false for any other, and for one that is malformed.
func (p *parser) parseUsual(message []byte) bool {
	text := string(message) // all strings of the request are parts of it
	req := &p.req
	req.Domain, req.Descriptors, req.HitsAddend, p.nEntries = "", p.descriptors[:0], 0, 0
	for at := 0; at < len(text); {
		field, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			return false
		}
		at += n
		if field == hitsField && kind == protowire.VarintType {
			hits, n := protowire.ConsumeVarint(message[at:])
			if n < 0 {
				return false
			}
			req.HitsAddend, at = uint32(hits), at+n
			continue
		}
		begin, end, ok := bytesAt(message, at, kind)
		switch {
		case !ok:
			return false
		case field == domainField:
			if req.Domain = text[begin:end]; !utf8.ValidString(req.Domain) {
				return false
			}
		case field == descriptorsField && len(req.Descriptors) < maxUsualDescriptors:
			if !p.parseDescriptor(message[:end], text, begin) {
				return false
			}
		default:
			return false
		}
		at = end
	}
	p.descriptors = req.GetDescriptors()
	return true
}

// bytesAt returns the bounds of a field of bytes, whose tag was before at.
func bytesAt(message []byte, at int, kind protowire.Type) (begin, end int, ok bool) {
	if kind != protowire.BytesType {
		return 0, 0, false
	}
	value, n := protowire.ConsumeBytes(message[at:])
	if n < 0 {
		return 0, 0, false
	}
	return at + n - len(value), at + n, true
}

// parseDescriptor adds the descriptor that begins at at, and ends with the message.
func (p *parser) parseDescriptor(message []byte, text string, at int) bool {
	n := len(p.req.GetDescriptors())
	if n == cap(p.req.Descriptors) {
		p.req.Descriptors = append(p.req.Descriptors, nil)
	}
	p.req.Descriptors = p.req.Descriptors[:n+1]
	if p.req.Descriptors[n] == nil {
		p.req.Descriptors[n] = new(ratelimit.RateLimitDescriptor)
	}
	d := p.req.GetDescriptors()[n]
	d.Entries = d.Entries[:0]
	for at < len(message) {
		field, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 || field != entriesField || p.nEntries == maxUsualEntries {
			return false
		}
		begin, end, ok := bytesAt(message, at+n, kind)
		if !ok {
			return false
		}
		e := p.newEntry()
		if !parseEntry(e, message[:end], text, begin) {
			return false
		}
		d.Entries, at = append(d.Entries, e), end
	}
	return true
}

// newEntry returns an empty entry.
func (p *parser) newEntry() *ratelimit.RateLimitDescriptor_Entry {
	if p.nEntries == len(p.entries) {
		p.entries = append(p.entries, new(ratelimit.RateLimitDescriptor_Entry))
	}
	e := p.entries[p.nEntries]
	p.nEntries++
	e.Key, e.Value = "", ""
	return e
}

// parseEntry parses the entry that begins at at, and ends with the message.
func parseEntry(e *ratelimit.RateLimitDescriptor_Entry, message []byte, text string, at int) bool {
	for at < len(message) {
		field, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			return false
		}
		begin, end, ok := bytesAt(message, at+n, kind)
		if !ok || !utf8.ValidString(text[begin:end]) {
			return false
		}
		switch field {
		case keyField:
			e.Key = text[begin:end]
		case valueField:
			e.Value = text[begin:end]
		default:
			return false
		}
		at = end
	}
	return true
}

// reset forgets the strings of the request.
func (p *parser) reset() {
	p.req.Domain = ""
	for _, e := range p.entries[:p.nEntries] {
		e.Key, e.Value = "", ""
	}
	p.nEntries = 0
}

// checkCounts returns an error for the message of a request with too many descriptors or entries.
func checkCounts(message []byte) error {
	descriptors, entries := 0, 0
	return eachField(message, descriptorsField, func(descriptor []byte) error {
		if descriptors++; descriptors > limit.MaxDescriptors {
			return errManyInOne
		}
		return eachField(descriptor, entriesField, func([]byte) error {
			if entries++; entries > maxEntries {
				return errManyInOne
			}
			return nil
		})
	})
}

// eachField calls do with each value of a field that is a message.
func eachField(message []byte, field protowire.Number, do func(value []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMessage
		}
		message = message[n:]
		if number == field && kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return errMessage
			}
			if err := do(value); err != nil {
				return err
			}
			message = message[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return errMessage
		}
		message = message[n:]
	}
	return nil
}
