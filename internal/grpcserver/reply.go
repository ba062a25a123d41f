package grpcserver

import (
	"cmp"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/status"
)

// noPrefix is the prefix of a message of no bytes.
var noPrefix [prefixLen]byte

// reply writes the answer of a unary method.
func (c *conn) reply(s *stream) {
	s.calling = false
	if c.streams[s.id] != s { // the client has ended the stream
		c.abandoned--
		c.recycle(s)
		return
	}
	err := s.call.Err
	if err == nil && c.flow.blocked > maxBlocked {
		err = errBlocked
	}
	if err != nil {
		c.refuse(s, err)
		return
	}
	binary.BigEndian.PutUint32(s.call.Reply[1:], uint32(len(s.call.Reply)-prefixLen))
	c.writeHeaders(s)
	s.rest, s.until = s.call.Reply, time.Now().Add(MaxCall)
	c.flow.blocked += int64(len(s.rest))
	if c.writeTrailers(s); c.streams[s.id] == s { // the reply waits for room: the request is not needed for that
		s.data, s.call.Message = nil, nil
	}
	if c.out.Len() > maxOut {
		_ = c.write() // the error is that of the next write, too
	}
}

// refuse answers a request with an error, even if it has not arrived whole.
func (c *conn) refuse(s *stream, err error) {
	s.err = err
	c.flow.blocked -= int64(len(s.rest))
	s.rest = nil
	c.writeTrailers(s)
}

// send writes a message of a stream.
func (c *conn) send(s *stream, message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.streams[s.id] != s:
		return errGone
	case len(s.rest) > 0: // the client has not taken the message before
		c.refuse(s, errBlocked)
		return errBlocked
	}
	s.rest = binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	s.rest, s.until = append(s.rest, message...), time.Now().Add(MaxCall)
	c.flow.blocked += int64(len(s.rest))
	c.writeRest(s)
	return c.wrote()
}

// errGone is the error of a message behind the end of its stream.
var errGone = errors.New("the stream has ended")

// writeTrailers writes the status behind what is left of the messages.
func (c *conn) writeTrailers(s *stream) {
	s.trailing = true
	c.writeRest(s)
}

// writeRest writes as much of the messages as the client takes, and then the status if it is known.
func (c *conn) writeRest(s *stream) {
	for len(s.rest) > 0 {
		n := min(int64(len(s.rest)), maxFrame, c.flow.window, s.window)
		if n <= 0 {
			return
		}
		_ = c.framer.WriteData(s.id, false, s.rest[:n]) // to memory
		s.rest = s.rest[n:]
		c.flow.window -= n
		s.window -= n
		c.flow.blocked -= n
	}
	if !s.trailing {
		return
	}
	c.writeStatus(s)
	if !s.ended { // the client need not send the rest
		_ = c.framer.WriteRSTStream(s.id, http2.ErrCodeNo)
	}
	c.drop(s)
}

// writeHeaders writes the header fields of an answer.
func (c *conn) writeHeaders(s *stream) {
	s.begun = true
	c.addFields(s)
	c.endFields(s, false)
}

func (c *conn) addFields(s *stream) {
	c.addField(":status", cmp.Or(s.httpStatus, "200"))
	c.addField("content-type", "application/grpc")
}

// writeStatus writes the last header fields of an answer, which may be its only ones.
func (c *conn) writeStatus(s *stream) {
	if !s.begun {
		c.addFields(s)
	}
	if s.err == nil {
		c.addField("grpc-status", "0")
	} else {
		st := status.Convert(s.err)
		c.addField("grpc-status", strconv.Itoa(int(st.Code())))
		_ = c.encoder.WriteField(hpack.HeaderField{Name: "grpc-message", Value: encodeMessage(st.Message()), Sensitive: true}) // not for the client's table
	}
	c.endFields(s, true)
}

// addField adds a header field to the next frame.
func (c *conn) addField(name, value string) {
	_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) // to memory
}

// endFields writes the added header fields as a frame.
func (c *conn) endFields(s *stream, last bool) {
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: last})
	c.block.Reset()
}

// maxText bounds the text of a status, in bytes: its fields fit in one frame.
const maxText = 1024

// encodeMessage encodes the text of a status: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
func encodeMessage(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if ch := text[i]; ch >= ' ' && ch <= '~' && ch != '%' {
			b.WriteByte(ch)
		} else {
			b.WriteByte('%')
			b.WriteByte(hexDigits[ch>>4])
			b.WriteByte(hexDigits[ch&15])
		}
	}
	return b.String()
}
