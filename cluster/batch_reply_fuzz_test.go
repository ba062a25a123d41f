package cluster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

func repliesOf(b []byte, seed uint64) *resp.Reader {
	return resp.NewReader(redistest.NewPieces(b, seed))
}

// numberReply turns arbitrary bytes into a well-formed reply to a batch, with a number or
// an error in each expected place.
func numberReply(bt *batch, b []byte) []byte {
	next := func() int64 {
		if len(b) < 9 {
			return int64(len(b))
		}
		n := int64(binary.LittleEndian.Uint64(b)) >> (b[8] % 64)
		b = b[9:]
		return n % 1e18
	}
	var out []byte
	for i := range bt.commands {
		n, body := 1, fmt.Appendf(nil, ":%d\r\n", next())
		for r := bt.commands[i].first; r >= 0; r = bt.runs[r].next {
			for g := bt.runs[r].first; g >= 0; g = bt.coalesced[g].next {
				numbers := 0
				for j := range bt.coalesced[g].items {
					numbers += stateNumbers(&bt.coalesced[g].items[j].Limit.Params, false)
				}
				switch {
				case next()%8 == 7:
					body = append(body, []string{"-ERR no\r\n", "$7\r\nLGCLOCK\r\n"}[next()&1]...)
					n++
					continue
				case bt.runs[r].op == opRefund:
					numbers = 1
				}
				for range numbers {
					body = fmt.Appendf(body, ":%d\r\n", next())
				}
				n += numbers
			}
		}
		out = append(resp.AppendArray(out, n), body...)
	}
	return out
}

// FuzzSettle answers batches of all kinds of calls with arbitrary bytes, or with a reply of
// arbitrary numbers. Every call is answered once in any case, and no verdict is impossible.
func FuzzSettle(f *testing.F) {
	for i, text := range redistest.Replies {
		f.Add([]byte(text), uint8(i), uint64(i))
		f.Add(bytes.Repeat([]byte(text), 20), uint8(16*i), uint64(2*i+1))
	}
	set := compile(f,
		spec{ID: "bucket", By: []string{"tenant"}, Rate: "100/s"},
		spec{ID: "huge", By: []string{"tenant", "user"}, Rate: "1099511627775/366d"},
		spec{ID: "sliding", By: []string{"tenant", "op"}, Rate: "100/m", Algorithm: "sliding_window"},
		spec{ID: "month", By: []string{"tenant", "op"}, Rate: "100/month", Algorithm: "fixed_window"},
		spec{ID: "ip", By: []string{"region"}, Rate: "9/h", Algorithm: "fixed_window", Mode: "shadow"},
	)
	f.Fuzz(func(t *testing.T, b []byte, kind uint8, seed uint64) {
		requests := someNodeRequests(set, kind)
		bt := newBatch()
		bt.opts = batchOptions{acrossSlots: kind&1 > 0, declared: kind&2 > 0, separate: kind&4 > 0}
		calls := 0
		for _, nr := range requests {
			calls += len(nr.calls)
			if !bt.addRequest(nr, time.Now()) {
				t.Fatal("not on board")
			}
		}
		bt.encode("sha")
		if seed&1 == 1 {
			b = numberReply(bt, b)
		}
		reported := 0
		tell := func(error, []limit.Item) { reported++ }
		in := repliesOf(b, seed)
		for i := range bt.commands {
			if err := bt.readReply(&bt.commands[i], in, tell); err != nil {
				for i := range bt.commands {
					bt.failCommand(&bt.commands[i], err, true, tell)
				}
				break
			}
		}
		for _, nr := range requests {
			calls -= checkNodeRequest(t, nr)
		}
		if calls != reported {
			t.Fatalf("%d calls are undecided, and %d were reported", calls, reported)
		}
	})
}

// someNodeRequests returns node requests of several callers, with equal and different
// calls.
func someNodeRequests(set *limit.Set, kind uint8) []*nodeRequest {
	var requests []*nodeRequest
	for i := range 3 {
		nr := new(nodeRequest)
		var b limit.Buffer
		for j := range 4 {
			req := limit.Request{Tenant: []string{"a", "b"}[j%2], Cost: int64(1 + i*j%3)}
			if kind&8 > 0 {
				req.Op = "GET /a"
			}
			if kind&16 > 0 || j == 3 {
				req.Dims = []limit.Dim{{Name: "region", Value: "eu"}, {Name: "user", Value: "u"}}
			}
			set.Resolve(&req, testAddrs, time.Now().UnixMicro(), &b)
		}
		b.Items[0].LeaseWanted = int64(i) // more such checks, if there are units
		nr.reset(op(kind>>5%3), route{}, b.Items, time.Now().Add(time.Hour))
		nr.calls = append(nr.calls, b.Calls...)
		nr.open = len(nr.calls)
		nr.request = &request{done: func(uint64) {}}
		nr.request.open.Store(1)
		requests = append(requests, nr)
	}
	return requests
}

// checkNodeRequest checks an answered node request, and returns the number of its calls
// that are decided or to be retried.
func checkNodeRequest(t *testing.T, nr *nodeRequest) int {
	t.Helper()
	if nodes := nr.request.open.Load(); nr.open != 0 || nodes != 0 {
		t.Fatalf("%d calls open, %d nodes", nr.open, nodes)
	}
	decided := nr.refunds + len(nr.retries)
	for _, c := range nr.calls {
		items := nr.items[c.First:c.Last]
		for i := range items {
			if items[i].Source != items[0].Source {
				t.Fatal("a call is decided in part")
			}
			v := items[i].Verdict
			if more := items[i].LeaseGranted; more < 0 || more > items[0].LeaseWanted || more > 0 && !v.Allowed && items[i].Enforced() {
				t.Fatalf("%d more checks of %d: %+v", more, items[0].LeaseWanted, v)
			}
			if v.Remaining < 0 || v.Wait < bucket.Never || v.Allowed && v.Wait != 0 || v.Reset < 0 || v.Remaining > math.MaxInt64/2 {
				t.Fatalf("impossible: %+v", v)
			}
		}
		if items[0].Source != limit.SourceNone {
			decided++
		}
	}
	return decided
}
