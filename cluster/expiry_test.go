package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// take decides one request of a set and returns its items.
func take(t *testing.T, s *Store, set *limit.Set, req limit.Request) []limit.Item {
	t.Helper()
	var b limit.Buffer
	now := time.Now()
	set.Resolve(&req, testAddrs, now.UnixMicro(), &b)
	s.Take(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: 5 * time.Second}, b.Items, b.Calls)
	for i := range b.Items {
		if b.Items[i].Source != limit.SourceStore {
			t.Fatalf("%s was left undecided: %+v", b.Items[i].Name, s.Stats())
		}
	}
	return b.Items
}

// pttl returns the remaining life of a bucket's key, in ms.
func pttl(t *testing.T, c *redis.Client, it *limit.Item) int64 {
	t.Helper()
	d, err := c.PTTL(context.Background(), string(it.Name[:it.KeyLen])).Result()
	if err != nil {
		t.Fatal(err)
	}
	return d.Milliseconds()
}

// TestExpiryNeverMints compares the life of every key with the time that its bucket needs
// to be equivalent to an untouched one: not a millisecond less, and at most a granule more.
// After it is emptied, a bucket of 2000 at 1000/m needs two minutes.
func TestExpiryNeverMints(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	for i, spec := range []spec{
		{ID: "b", By: []string{"tenant", "op"}, Rate: "1000/m", Burst: "2000"},
		{ID: "b", By: []string{"tenant"}, Rate: "1000/m", Burst: "2000"},
		{ID: "b", By: []string{"tenant", "op"}, Rate: "7/h", Burst: "3"},
		{ID: "b", By: []string{"tenant", "op"}, Rate: "1000/m", Algorithm: "sliding_window"},
		{ID: "b", By: []string{"tenant"}, Rate: "1000/m", Algorithm: "sliding_window"},
		{ID: "b", By: []string{"tenant", "op"}, Rate: "1000/m", Algorithm: "fixed_window"},
		{ID: "b", By: []string{"tenant", "op"}, Rate: "1000/day", Algorithm: "fixed_window"},
	} {
		set := compile(t, spec)
		p := &set.Limits[0].Params
		for step, cost := range []int64{1, p.Capacity / 3, p.Capacity - 1 - p.Capacity/3} {
			before := time.Now()
			items := take(t, s, set, limit.Request{Tenant: fmt.Sprintf("expiry-%d", i), Op: "op", Cost: max(1, cost)})
			it := &items[0]
			left := pttl(t, c, it)
			gone := time.Since(before).Milliseconds() + 1
			most := it.Reset + p.Granule()/1000
			// Reset was rounded up, and some time has passed since.
			if least := it.Reset - 1 - gone; left > most || left < least {
				t.Errorf("%s %s, step %d: the key lives %d ms, want %d to %d", p.Algorithm, spec.Rate, step, left, least, most)
			}
		}
	}
}

// TestExpiryArmedSeldom counts how often an expiry is set: a window needs it once, a token
// bucket once in each granule, and neither in each call.
func TestExpiryArmedSeldom(t *testing.T) {
	window := spec{ID: "field", By: []string{"tenant"}, Rate: "1000/1d", Algorithm: "sliding_window"}
	windowKey := spec{ID: "key", By: []string{"tenant", "op"}, Rate: "1000/1d", Algorithm: "sliding_window"}
	bucket := spec{ID: "bucket", By: []string{"tenant"}, Rate: "1000/1d"}
	bucket2 := spec{ID: "bucket2", By: []string{"tenant"}, Rate: "500/1d"}
	bucketKey := spec{ID: "bucket-key", By: []string{"tenant", "op"}, Rate: "1000/1d"}
	// A hundred units of bucket refill within one granule, those of bucket2 within two:
	// each may cross one boundary more.
	for name, c := range map[string]struct {
		specs []spec
		most  int
	}{
		"windows and a bucket": {[]spec{window, windowKey, bucket}, 5},
		"one bucket":           {[]spec{bucket}, 2},
		"fields":               {[]spec{bucket, bucket2}, 4},
		"a field and a key":    {[]spec{bucket, bucketKey}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			specs, most := c.specs, c.most
			node := redistest.Start(t)
			s, c := open(t, node.Addr), client(t, node.Addr)
			set := compile(t, specs...)
			if err := c.ConfigSet(t.Context(), "notify-keyspace-events", "Exg").Err(); err != nil {
				t.Fatal(err)
			}
			events := c.Subscribe(t.Context(), "__keyevent@0__:expire", "end")
			defer func() { _ = events.Close() }()
			if _, err := events.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				take(t, s, set, limit.Request{Tenant: "armed", Op: "op", Cost: 1})
			}
			c.Publish(t.Context(), "end", "")
			expires := 0
			for m := range events.Channel() {
				if m.Channel == "end" {
					break
				}
				if strings.HasPrefix(m.Payload, "lg:t:") {
					expires++
				}
			}
			if expires < 1 || expires > most {
				t.Errorf("100 calls set an expiry %d times, want 1 to %d", expires, most)
			}
			redistest.AssertAllKeysExpire(t, node)
		})
	}
}

// TestScriptFlush checks that flushed scripts are loaded again without affecting callers.
func TestScriptFlush(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "100/366d", Algorithm: "fixed_window"})
	for i := range 3 {
		if err := c.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		items := take(t, s, set, limit.Request{Tenant: "flush", Cost: 1})
		if left := items[0].Remaining; left != int64(99-i) {
			t.Errorf("after flush %d: %d left, want %d", i, left, 99-i)
		}
	}
	if n := s.Stats().ScriptLoads; n != 3 {
		t.Errorf("%d script loads, want one after each flush", n)
	}
}

// TestForeignValues checks that values of other programs under a bucket's key, and values
// in a later format, are left unchanged and counted.
func TestForeignValues(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant", "op"}, Rate: "100/d"})
	// Six doubles of 2^50: a period that the maths cannot handle.
	huge := "\x01" + strings.Repeat("\x00\x00\x00\x00\x00\x00\x10\x43", 6)
	for op, kind := range map[string]ErrorKind{"list": KindWrongType, "future": KindFormat, "huge": KindFormat} {
		req := limit.Request{Tenant: "foreign", Op: op, Cost: 1}
		var b limit.Buffer
		set.Resolve(&req, testAddrs, 0, &b)
		key := string(b.Items[0].Name)
		if op == "list" {
			c.RPush(context.Background(), key, "x")
		} else {
			c.Set(context.Background(), key, map[string]string{"future": "\x09????", "huge": huge}[op], time.Minute)
		}
		now := time.Now()
		s.Take(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: 5 * time.Second}, b.Items, b.Calls)
		if b.Items[0].Source != limit.SourceNone {
			t.Errorf("%s: decided by %s", op, b.Items[0].Source)
		}
		if n := s.Stats().Undecided[kind]; n < 1 {
			t.Errorf("%s: counted %d of kind %s: %v", op, n, kind, s.Stats().Undecided)
		}
		if kindOf := c.Type(context.Background(), key).Val(); op == "list" && kindOf != "list" {
			t.Errorf("the list became a %s", kindOf)
		}
		c.Del(context.Background(), key)
	}
}

// TestClockOutsideBounds checks that a proxy with a clock off by months decides calendar
// windows by the store's clock.
func TestClockOutsideBounds(t *testing.T) {
	node := redistest.SharedNode(t)
	s := open(t, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "3/day", Algorithm: "fixed_window"})
	for i, off := range []time.Duration{0, -100 * 24 * time.Hour, 400 * 24 * time.Hour, time.Hour} {
		req := limit.Request{Tenant: "off", Cost: 1}
		var b limit.Buffer
		set.Resolve(&req, testAddrs, time.Now().Add(off).UnixMicro(), &b)
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		it := &b.Items[0]
		if it.Source != limit.SourceStore || it.Allowed != (i < 3) || it.Remaining != max(0, int64(2-i)) {
			t.Errorf("clock off by %s: %+v by %s", off, it.Verdict, it.Source)
		}
	}
}

// TestSlots reads from the real cluster the slots of the buckets of 20,002 requests with
// random and hostile tenants, ops and users: all buckets of a request are in one slot, the
// one computed here, and no two buckets share a name.
func TestSlots(t *testing.T) {
	cl := redistest.SharedCluster(t)
	c := client(t, cl.Nodes[0].Addr)
	set := compile(t,
		spec{ID: "a", By: []string{"tenant"}, Rate: "1/s"},
		spec{ID: "b", By: []string{"tenant", "op"}, Rate: "1/s"},
		spec{ID: "c", By: []string{"tenant", "user"}, Rate: "1/s"},
		spec{ID: "d", By: []string{"tenant", "op", "user"}, Rate: "1/s"},
	)
	seen := map[string]string{}
	for requests := range slices.Chunk(hostileRequests(20_000), 1000) {
		pipe := c.Pipeline()
		var want []uint16
		var replies []*redis.IntCmd
		for _, req := range requests {
			var b limit.Buffer
			set.Resolve(&req, testAddrs, 0, &b)
			user := req.Dims[0].Value
			for i, counted := range [][]string{{}, {req.Op}, {user}, {req.Op, user}} {
				it := &b.Items[i]
				bucket := fmt.Sprintf("%s of %q for %q", it.Limit.ID, req.Tenant, counted)
				if other, ok := seen[string(it.Name)]; ok && other != bucket {
					t.Fatalf("%s and %s are both called %q", other, bucket, it.Name)
				}
				seen[string(it.Name)] = bucket
				want = append(want, it.HashSlot())
				replies = append(replies, pipe.ClusterKeySlot(context.Background(), string(it.Name[:it.KeyLen])))
			}
		}
		if _, err := pipe.Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i, r := range replies {
			if r.Val() != int64(want[i]) {
				t.Fatalf("a bucket of %+v: slot %d, the cluster returns %d", requests[i/4], want[i], r.Val())
			}
			if want[i] != want[i/4*4] {
				t.Fatalf("the buckets of %+v lie in slots %d and %d", requests[i/4], want[i/4*4], want[i])
			}
		}
	}
	if buckets := 10_001 + 3*20_002; len(seen) != buckets {
		t.Errorf("%d names, want %d", len(seen), buckets)
	}
}

// hostileRequests returns n requests of half as many tenants, each with an op and a user of
// its own, and two requests with equal concatenations of op and user.
func hostileRequests(n int) []limit.Request {
	names := hostileNames(n)
	request := func(tenant, op, user string) limit.Request {
		return limit.Request{Tenant: tenant, Op: op, Dims: []limit.Dim{{Name: "user", Value: user}}, Cost: 1}
	}
	requests := []limit.Request{request("t", "x;user=y", "z"), request("t", "x", "y;user=z")}
	for i := range n {
		requests = append(requests, request(names[i/2], names[n-1-i], names[(i+n/3)%n]))
	}
	return requests
}

// hostileNames returns n different tenants, many of them composed of parts of keys.
func hostileNames(n int) []string {
	alphabet := []string{"{", "}", "%", ":", ";", "=", "a", "7B", "%7D", "lg:t:{", "é", " ", "*", "\\"}
	names := make([]string, 0, n)
	for i := range n {
		var b strings.Builder
		for x := i; ; x /= len(alphabet) {
			b.WriteString(alphabet[x%len(alphabet)])
			if x < len(alphabet) {
				break
			}
		}
		if b.WriteString("#"); i%2 == 0 {
			b.WriteString(strconv.Itoa(i))
		} else {
			b.WriteString("{" + strconv.Itoa(i) + "}")
		}
		names = append(names, b.String())
	}
	return names
}

// agreeSecret makes a store agree on a secret as Open does, and returns the secret.
func agreeSecret(tb testing.TB, s *Store, proposal []byte) ([]byte, error) {
	tb.Helper()
	secret, err := s.agree(tb.Context(), s.top.Load(), proposal)
	if err == nil {
		s.adopt(secret)
	}
	return secret, err
}

// TestAgreeSecret checks that proxies of one store hash alike, that the secret expires
// unless it is prolonged, and that it is restored after the store lost it.
func TestAgreeSecret(t *testing.T) {
	node := redistest.Start(t)
	a, b, c := open(t, node.Addr), open(t, node.Addr), client(t, node.Addr)
	mine := []byte("0123456789abcdef0123456789abcdef")
	first, err := agreeSecret(t, a, mine)
	if err != nil || string(first) != string(mine) {
		t.Fatalf("the first proxy got %q, %v", first, err)
	}
	second, err := agreeSecret(t, b, []byte("another secret of enough bytes.."))
	if err != nil || string(second) != string(mine) {
		t.Errorf("the second proxy got %q, %v", second, err)
	}
	redistest.AssertAllKeysExpire(t, node)
	c.FlushAll(t.Context())
	a.secretKept.Store(0)
	a.keepSecret(t.Context())
	if third, err := agreeSecret(t, b, []byte("a third secret of enough bytes...")); err != nil || string(third) != string(mine) {
		t.Errorf("after the store lost it: %q, %v", third, err)
	}
	c.Set(t.Context(), secretKey, "!", 0)
	if _, err := agreeSecret(t, b, mine); err == nil {
		t.Error("something else under the key is taken for a secret")
	}
}
