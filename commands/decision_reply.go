package commands

import (
	"strconv"

	"github.com/limitgate/limitgate/limit"
)

// numFrames is how many frames a scratch keeps: enough for the limits that bind most decisions of
// a busy connection. A power of two.
const numFrames = 64

// decisionFrame has the parts of a reply to RL.CHECK that are the same for many decisions.
type decisionFrame struct {
	binding  *limit.Limit
	capacity int64
	source   limit.Source
	allowed  bool
	head     []byte // up to the limit; empty if the frame is unused
	tail     []byte // from the limit_id on
}

// fits reports whether the frame is that of a decision.
func (f *decisionFrame) fits(d *limit.Decision) bool {
	return f.binding == d.Binding && f.capacity == d.Limit && f.source == d.Source && f.allowed == d.Allowed && len(f.head) > 0
}

// render makes the frame that of a decision.
func (f *decisionFrame) render(d *limit.Decision) {
	head, tail := reply{buf: f.head[:0]}, reply{buf: f.tail[:0]}
	if d.Allowed {
		head.integer(1)
	} else {
		head.integer(0)
	}
	head.integer(d.Limit)
	tail.bulk(d.LimitID())
	tail.bulk(d.Source.String())
	*f = decisionFrame{d.Binding, d.Limit, d.Source, d.Allowed, head.buf, tail.buf}
}

// frame returns the frame of a decision.
func (s *scratch) frame(d *limit.Decision) *decisionFrame {
	n := uint(d.Source) << 1
	if d.Allowed {
		n++
	}
	if d.Binding != nil {
		n += uint(d.Binding.Ordinal) * 7
	}
	f := &s.frames[n%numFrames]
	if !f.fits(d) {
		f.render(d)
	}
	return f
}

// decision appends the reply of RL.CHECK: allowed, limit, remaining, retry_after_ms,
// reset_after_ms, limit_id, source. The reply has elements elements, at most 9; the caller
// appends the others.
func (s *Session) decision(d *limit.Decision, elements int) {
	f := s.frame(d)
	buf := append(s.out.buf, '*', '0'+byte(elements), '\r', '\n')
	buf = append(append(buf, f.head...), ':')
	buf = append(strconv.AppendInt(buf, d.Remaining, 10), "\r\n:"...)
	buf = append(strconv.AppendInt(buf, d.RetryAfter, 10), "\r\n:"...)
	buf = append(strconv.AppendInt(buf, d.ResetAfter, 10), "\r\n"...)
	s.out.buf = append(buf, f.tail...)
}
