package envoy

import (
	"strconv"
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/limitgate/limitgate/memory"
)

// TestWaits checks how long a client has to wait after a denial: until all limits that deny it admit it, also
// one that was asked for nothing.
func TestWaits(t *testing.T) {
	const waits = `
version: 1
domains:
  mesh:
    rules:
      a: {algorithm: token_bucket, also: [{id: fast, rate: 5/m, algorithm: token_bucket}]}
      b: {algorithm: sliding_window}
      remote_address: {algorithm: token_bucket}
      dark: {algorithm: token_bucket}
      q2: {algorithm: token_bucket}
      q1: {algorithm: token_bucket, also: [{id: first, rate: 1/300d, algorithm: token_bucket}]}
`
	const day = 24 * 60 * 60
	for _, c := range []struct {
		first, then string
		least, most int64 // seconds; 0 is none
	}{
		{"a=1 hits=5", "a=1", 72 * day, 73 * day}, // the year's limit, and not that of a minute
		{"a=2 hits=5", "a=2 hits=0", 72 * day, 73 * day},
		{"b=1 hits=3", "b=1 hits=0", 30 * day, 731 * day},
		{"remote_address=3 hits=3,a=3 hits=5", "remote_address=3,a=3", 121 * day, 122 * day}, // the longer of two
		{"a=4", "a=4,a=4 hits=9", 0, 0},                                                      // more hits than the limit holds
		{"q1=1", "q1=1", 299 * day, 300 * day},
		{"q1=5", "q1=5 hits=2", 0, 0},                                  // its further limit never holds 2
		{"q1=2 hits=2,q2=2 hits=4", "q2=2,q1=2", 90 * day, 92 * day},   // the shorter one of quotas
		{"a=6 hits=5,dark=6 hits=2", "a=6,dark=6", 72 * day, 73 * day}, // a shadow denies nothing
	} {
		s := extended(t, memory.New(memory.Options{}), time.Second, waits)
		ask(t, s, c.first, 0)
		req := &rls.RateLimitRequest{Domain: "mesh"}
		for text := range strings.SplitSeq(c.then, ",") {
			req.Descriptors = append(req.Descriptors, descriptor(t, text))
		}
		resp, err := s.ShouldRateLimit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		seconds := int64(0)
		for _, h := range resp.GetResponseHeadersToAdd() {
			seconds, _ = strconv.ParseInt(h.GetValue(), 10, 64)
		}
		if resp.GetOverallCode() != rls.RateLimitResponse_OVER_LIMIT || seconds < c.least || seconds > c.most {
			t.Errorf("%s, then %s: %s after %d s, want %d to %d", c.first, c.then, resp.GetOverallCode(), seconds, c.least, c.most)
		}
	}
}
