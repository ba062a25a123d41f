package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

// batchOf returns a batch of one call with one bucket.
func batchOf(t *testing.T, s spec) (*batch, *nodeRequest) {
	t.Helper()
	var b limit.Buffer
	compile(t, s).Resolve(&limit.Request{Tenant: "t", Cost: 1}, nil, 0, &b)
	nr := new(nodeRequest)
	nr.reset(opTake, route{}, b.Items, time.Now().Add(time.Hour))
	nr.calls, nr.open = b.Calls, 1
	bt := newBatch()
	bt.opts = batchOptions{acrossSlots: true}
	bt.addRequest(nr, time.Now())
	bt.encode("sha")
	return bt, nr
}

// TestReplyOfAnotherLength checks that a reply with more or fewer numbers than expected is
// an error: the bytes after it would be read as another reply.
func TestReplyOfAnotherLength(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: false, 2: true, 3: false, 1000: false} {
		bt, nr := batchOf(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1/d", Burst: "10"})
		b := fmt.Appendf(resp.AppendArray(nil, n), ":%d\r\n", time.Now().UnixMicro())
		b = append(b, strings.Repeat(":1\r\n", max(1, n-1))...)
		err := bt.readReply(&bt.commands[0], repliesOf(b, 1), func(error, []limit.Item) { t.Error("a failure was reported") })
		if want && (err != nil || nr.items[0].Source != limit.SourceStore) || !want && !errors.Is(err, resp.ErrReply) {
			t.Errorf("%d numbers for a time and a level: %v", n, err)
		}
	}
}

// TestImpossibleNumbers checks that a state which the script never replies is no decision,
// even if its numbers are well formed. The replies after it still count.
func TestImpossibleNumbers(t *testing.T) {
	const now, day = 1_700_000_000_000_000, 86_400_000_000
	start := int64(now - now%day)
	for _, tc := range []struct {
		algorithm, burst string
		now              int64
		numbers          []int64
		possible         bool
	}{
		{"token_bucket", "10", now, []int64{5 * day}, true},
		{"token_bucket", "10", now, []int64{10 * day}, true},
		{"token_bucket", "10", now, []int64{-3 * day}, true}, // overdrawn
		{"token_bucket", "10", now, []int64{11 * day}, false},
		{"token_bucket", "10", now, []int64{-999_999_999_999_999_999}, false},
		{"token_bucket", "10", -1, []int64{5 * day}, false},
		{"token_bucket", "10", 999_999_999_999_999_999, []int64{5 * day}, false},
		{"sliding_window", "", now, []int64{start, start + day, 1, 2, 0, 0}, true},
		{"sliding_window", "", now, []int64{start, start + day, -1, 2, 0, 0}, false},
		{"sliding_window", "", now, []int64{start, start + day, 1, -2, 0, 0}, false},
		{"sliding_window", "", now, []int64{start, start + day, 1, 2, 0, 999_999_999_999_999_999}, false},
		{"sliding_window", "", now, []int64{start, start, 1, 2, 0, 0}, false},
		{"fixed_window", "", now, []int64{now + 1, now + day, 1, 0, 0, 0}, false},
		{"fixed_window", "", now, []int64{now - day, now, 1, 0, 0, 0}, false},
		{"fixed_window", "", now, []int64{start, start + day, 1, 0, 1, start + 1}, true},
	} {
		bt, nr := batchOf(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1/d", Algorithm: tc.algorithm, Burst: tc.burst})
		reply := fmt.Appendf(resp.AppendArray(nil, 1+len(tc.numbers)), ":%d\r\n", tc.now)
		for _, n := range tc.numbers {
			reply = fmt.Appendf(reply, ":%d\r\n", n)
		}
		var reported error
		err := bt.readReply(&bt.commands[0], repliesOf(reply, 1), func(err error, _ []limit.Item) { reported = err })
		decided := nr.items[0].Source == limit.SourceStore
		if err != nil || decided != tc.possible || kindOf(reported).ofBucket() == tc.possible {
			t.Errorf("%s at %d: %v: %v, decided %v, reported %v", tc.algorithm, tc.now, tc.numbers, err, decided, reported)
		}
	}
}
