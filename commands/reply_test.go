package commands

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// BenchmarkDecisionReply writes a decision's reply.
func BenchmarkDecisionReply(b *testing.B) {
	d := limit.Decision{Allowed: true, Limit: 600, Remaining: 599, ResetAfter: 82914, Binding: &limit.Limit{ID: "payments"}, Source: limit.SourceStore}
	var r reply
	for b.Loop() {
		r.buf = r.buf[:0]
		r.decision(&d, 7)
	}
	if !strings.HasPrefix(string(r.buf), "*7\r\n:1\r\n") {
		b.Fatalf("%q", r.buf)
	}
}
