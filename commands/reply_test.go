package commands

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// BenchmarkDecisionReply writes a decision's reply.
func BenchmarkDecisionReply(b *testing.B) {
	d := limit.Decision{Allowed: true, Limit: 600, Remaining: 599, ResetAfter: 82914, Binding: &limit.Limit{ID: "payments"}, Source: limit.SourceStore}
	s := Session{scratch: new(scratch)}
	for b.Loop() {
		s.out.buf = s.out.buf[:0]
		s.decision(&d, 7)
	}
	if !strings.HasPrefix(string(s.out.buf), "*7\r\n:1\r\n") {
		b.Fatalf("%q", s.out.buf)
	}
}

// TestDecisionFrames checks that replies do not depend on the decisions before: with many limits
// that share a frame, limits of one id, and shares of a limit that change.
func TestDecisionFrames(t *testing.T) {
	limits := []*limit.Limit{nil}
	for i := range 3 * numFrames {
		limits = append(limits, &limit.Limit{ID: fmt.Sprint("limit", i%100), Ordinal: i - 1})
	}
	numbers := []int64{-1, 0, 1, 99, 600, math.MaxInt64}
	s := Session{scratch: new(scratch)}
	for range 20_000 {
		d := limit.Decision{
			Allowed: rand.N(2) == 0, Limit: numbers[rand.N(len(numbers))], Remaining: numbers[rand.N(len(numbers))], RetryAfter: numbers[rand.N(len(numbers))],
			ResetAfter: numbers[rand.N(len(numbers))], Binding: limits[rand.N(len(limits))], Source: limit.Source(1 + rand.N(int(limit.NumSources)-1)),
		}
		allowed := 0
		if d.Allowed {
			allowed = 1
		}
		want := fmt.Sprintf("*8\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n",
			allowed, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, len(d.LimitID()), d.LimitID(), len(d.Source.String()), d.Source)
		s.out.buf = s.out.buf[:0]
		if s.decision(&d, 8); string(s.out.buf) != want {
			t.Fatalf("%q, want %q", s.out.buf, want)
		}
	}
}
