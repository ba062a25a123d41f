package commands

import (
	"slices"
	"strconv"

	"github.com/tidwall/redcon"
)

// reply appends RESP to a buffer, in the client's version of the protocol. The wire
// format is that of redis.io/docs/latest/develop/reference/protocol-spec.
type reply struct {
	buf   []byte
	resp3 bool
}

func (r *reply) number(prefix byte, n int64) {
	r.buf = append(r.buf, prefix)
	r.buf = strconv.AppendInt(r.buf, n, 10)
	r.buf = append(r.buf, '\r', '\n')
}

func (r *reply) integer(n int64) { r.buf = redcon.AppendInt(r.buf, n) }

func (r *reply) array(n int) { r.buf = redcon.AppendArray(r.buf, n) }

// mapping begins a map of n pairs, in RESP2 an array of 2n.
func (r *reply) mapping(n int) {
	if r.resp3 {
		r.number('%', int64(n))
		return
	}
	r.array(2 * n)
}

// set begins a set of n members, in RESP2 an array.
func (r *reply) set(n int) {
	if r.resp3 {
		r.number('~', int64(n))
		return
	}
	r.array(n)
}

func (r *reply) bulk(s string) { r.buf = redcon.AppendBulkString(r.buf, s) }

// text appends a bulk string, marked as plain text in RESP3.
func (r *reply) text(s string) {
	if !r.resp3 {
		r.bulk(s)
		return
	}
	r.number('=', int64(len(s)+4))
	r.buf = append(r.buf, "txt:"...)
	r.buf = append(r.buf, s...)
	r.buf = append(r.buf, '\r', '\n')
}

// frame turns the bytes from begin on into a text.
func (r *reply) frame(begin int) {
	n := len(r.buf) - begin
	header := reply{resp3: r.resp3}
	if r.resp3 {
		header.number('=', int64(n+4))
		header.buf = append(header.buf, "txt:"...)
	} else {
		header.number('$', int64(n))
	}
	r.buf = slices.Insert(r.buf, begin, header.buf...)
	r.buf = append(r.buf, '\r', '\n')
}

func (r *reply) simple(s string) {
	r.buf = append(r.buf, '+')
	r.buf = append(r.buf, s...)
	r.buf = append(r.buf, '\r', '\n')
}

func (r *reply) ok() { r.simple("OK") }

func (r *reply) null() {
	if r.resp3 {
		r.buf = append(r.buf, "_\r\n"...)
		return
	}
	r.buf = redcon.AppendNull(r.buf)
}

// error appends an error. Text begins with its code word; client data in it must have
// been passed through quote.
func (r *reply) error(text string) {
	r.buf = append(r.buf, '-')
	for i := range len(text) {
		if c := text[i]; c == '\r' || c == '\n' {
			r.buf = append(r.buf, ' ')
		} else {
			r.buf = append(r.buf, c)
		}
	}
	r.buf = append(r.buf, '\r', '\n')
}

// double appends a number, in RESP2 as a text.
func (r *reply) double(v float64) {
	if !r.resp3 {
		r.bulk(strconv.FormatFloat(v, 'f', -1, 64))
		return
	}
	r.buf = append(r.buf, ',')
	r.buf = strconv.AppendFloat(r.buf, v, 'f', -1, 64)
	r.buf = append(r.buf, '\r', '\n')
}

// pair appends a name and a number or a text.
func (r *reply) pair(name string, value any) {
	r.bulk(name)
	switch v := value.(type) {
	case int64:
		r.integer(v)
	case int:
		r.integer(int64(v))
	case float64:
		r.double(v)
	case bool:
		if v {
			r.integer(1)
		} else {
			r.integer(0)
		}
	case string:
		r.bulk(v)
	default:
		r.null()
	}
}

// maxQuoted is the maximum number of a client's bytes that an error repeats.
const maxQuoted = 64

// quote returns at most 64 bytes of client data, with everything but printable ASCII
// escaped.
func quote(b []byte) string {
	cut := len(b) > maxQuoted
	if cut {
		b = b[:maxQuoted]
	}
	text := escape(b)
	if cut {
		text += "..."
	}
	return text
}

// escape returns bytes with everything but printable ASCII escaped.
func escape(b []byte) string {
	out := make([]byte, 0, len(b)+3)
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			out = append(out, '\\', 'x', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			continue
		}
		out = append(out, c)
	}
	return string(out)
}
