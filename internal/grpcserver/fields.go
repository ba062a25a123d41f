package grpcserver

import (
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fieldReader reads the header fields of a request, which may come in several frames.
type fieldReader struct {
	decoder *hpack.Decoder
	id      uint32
	// ended reports that the client sends nothing behind the fields.
	ended bool
	// encoded and size are the lengths of the fields so far, compressed and not.
	encoded, size int

	method, path, contentType, encoding string
	// regular reports a field that is not one of HTTP/2's own, which come first. Malformed reports fields that
	// HTTP/2 forbids.
	regular, malformed bool
}

// maxEncoded bounds the compressed fields of a request with their frames: there may be many, and empty ones.
const maxEncoded = 2 * maxHeaderList

func (r *fieldReader) init() {
	r.decoder = hpack.NewDecoder(initialTable, r.add)
	r.decoder.SetMaxStringLength(maxHeaderList)
}

// initialTable is the size of the table of header fields that HTTP/2 begins with.
const initialTable = 4096

// begin begins to read the fields of a stream.
func (r *fieldReader) begin(id uint32, ended bool) {
	*r = fieldReader{decoder: r.decoder, id: id, ended: ended}
}

// read reads a part of the fields. The error ends the connection: without a part, later fields have no
// meaning.
func (r *fieldReader) read(part []byte) error {
	if r.encoded += frameHeader + len(part); r.encoded > maxEncoded {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	if _, err := r.decoder.Write(part); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	return nil
}

// add takes a field, and forgets those that this package does not need.
func (r *fieldReader) add(f hpack.HeaderField) {
	if r.size += int(f.Size()); r.size > maxHeaderList {
		return
	}
	if f.IsPseudo() {
		r.malformed = r.malformed || r.regular
	} else {
		r.regular = true
	}
	switch f.Name {
	case ":method":
		r.set(&r.method, f.Value)
	case ":path":
		r.set(&r.path, f.Value)
	case "content-type":
		r.contentType = f.Value
	case "grpc-encoding":
		r.encoding = f.Value
	case "connection":
		r.malformed = true
	}
}

// set takes a field that may come once.
func (r *fieldReader) set(field *string, value string) {
	r.malformed = r.malformed || *field != ""
	*field = value
}

// check returns the status of HTTP for a request, and the error of gRPC unless it may be answered. Statuses
// of HTTP other than 200 are for clients that do not speak gRPC.
func (r *fieldReader) check() (httpStatus string, err error) {
	switch kind, ok := strings.CutPrefix(r.contentType, "application/grpc"); {
	case r.size > maxHeaderList:
		return "200", errHeaders
	case r.method != "POST":
		return "405", status.Error(codes.Internal, "a request of gRPC has the method POST")
	case !ok || kind != "" && kind[0] != '+' && kind[0] != ';':
		return "415", status.Error(codes.InvalidArgument, "a request of gRPC has the content-type application/grpc")
	case r.encoding != "" && r.encoding != "identity":
		return "200", errEncoding
	}
	return "200", nil
}

// onFields handles the fields of a stream when all have arrived: they begin a request, or end one.
func (c *conn) onFields() error {
	r := &c.fields
	if err := r.decoder.Close(); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	if r.id <= c.lastID {
		return c.onTrailers()
	}
	if r.id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.lastID = r.id
	switch {
	case c.ending.step >= endFinal: // the client sends this request again, on another connection
	case len(c.streams)+c.abandoned >= maxStreams:
		return http2.StreamError{StreamID: r.id, Code: http2.ErrCodeRefusedStream}
	case r.malformed || r.path == "" && r.size <= maxHeaderList:
		return http2.StreamError{StreamID: r.id, Code: http2.ErrCodeProtocol}
	default:
		c.beginRequest(c.open(r.id))
	}
	return nil
}

// onTrailers handles fields behind a message.
func (c *conn) onTrailers() error {
	r := &c.fields
	s := c.streams[r.id]
	switch {
	case s == nil || s.ended:
		return http2.StreamError{StreamID: r.id, Code: http2.ErrCodeStreamClosed}
	case !r.ended:
		return http2.StreamError{StreamID: r.id, Code: http2.ErrCodeProtocol}
	default:
		c.onData(s, nil, true)
		return nil
	}
}

// beginRequest begins a request, or refuses it.
func (c *conn) beginRequest(s *stream) {
	r, opts := &c.fields, &c.server.opts
	s.ended = r.ended
	var err error
	s.httpStatus, err = r.check()
	s.unary, s.streaming = opts.Unary[r.path], opts.Streaming[r.path]
	switch {
	case err != nil:
	case s.unary == nil && s.streaming == nil:
		err = errMethod
	case c.flow.blocked > maxBlocked:
		err = errBlocked
	case s.ended:
		err = errNoMessage
	}
	if err != nil {
		c.refuse(s, err)
		return
	}
	s.path = r.path
}
