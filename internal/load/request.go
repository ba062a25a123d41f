package load

import (
	"bytes"
	"strconv"
)

// Hole is the placeholder in a word of a request for the number of a key.
const Hole = "#######"

// Request is a command in RESP, complete except for the numbers in its holes.
type Request struct {
	text  []byte
	holes []int // offsets of the holes
}

// NewRequest encodes a command whose words may have a Hole each.
func NewRequest(words ...string) *Request {
	r := &Request{text: strconv.AppendInt([]byte{'*'}, int64(len(words)), 10)}
	r.text = append(r.text, "\r\n"...)
	for _, w := range words {
		r.text = strconv.AppendInt(append(r.text, '$'), int64(len(w)), 10)
		r.text = append(r.text, "\r\n"...)
		if at := bytes.Index([]byte(w), []byte(Hole)); at >= 0 {
			r.holes = append(r.holes, len(r.text)+at)
		}
		r.text = append(append(r.text, w...), "\r\n"...)
	}
	return r
}

// append appends the request for a key.
func (r *Request) append(dst []byte, key uint32) []byte {
	begin := len(dst)
	dst = append(dst, r.text...)
	for _, at := range r.holes {
		putNumber(dst[begin+at:begin+at+len(Hole)], key)
	}
	return dst
}

// putNumber fills a hole.
func putNumber(hole []byte, n uint32) {
	for i := len(hole) - 1; i >= 0; i-- {
		hole[i] = '0' + byte(n%10)
		n /= 10
	}
}

// Fill returns a word with the number in place of its Hole.
func Fill(word string, key uint32) string {
	b := []byte(word)
	if at := bytes.Index(b, []byte(Hole)); at >= 0 {
		putNumber(b[at:at+len(Hole)], key)
	}
	return string(b)
}
