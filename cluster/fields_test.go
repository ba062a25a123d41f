package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// TestFieldsSize checks how many bytes the string of a tenant takes: up to 44 Redis needs
// one allocation for it, 105 bytes with a short key; and 140 with two buckets in 79.
func TestFieldsSize(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	for tenant, want := range map[string]struct {
		set  *limit.Set
		most int64
	}{
		"size-one": {compile(t, spec{ID: "tenant", By: []string{"tenant"}, Rate: "1/s", Burst: "1000000000"}), 44},
		"size-two": {compile(t, spec{ID: "rate", By: []string{"tenant"}, Rate: "100/s"}, spec{ID: "day", By: []string{"tenant"}, Rate: "1000/d"}), 79},
	} {
		take(t, s, want.set, limit.Request{Tenant: tenant, Cost: 1})
		if n := c.StrLen(t.Context(), limit.TenantKey(tenant)).Val(); n == 0 || n > want.most {
			t.Errorf("%s takes %d bytes, want at most %d: %q", tenant, n, want.most, c.Get(t.Context(), limit.TenantKey(tenant)).Val())
		}
	}
}

// manyFields is a limits file whose plan has limits of every algorithm, by tenant alone and
// by an op with declared values, of which each request meets some.
const manyFields = `
version: 1
default_plan: p
max_levels: 64
dimensions:
  op: {values: [a, b, c, d, e, f, g, h, i, j, k, l, m]}
plans:
  p:
    - {id: rate, group: rate, by: [tenant], rate: 3/s, burst: 40}
    - {id: day, group: day, by: [tenant], rate: 100000/d}
    - {id: op, group: op, by: [tenant, op], rate: 1/s, burst: 20}
    - {id: only-a, group: only-a, when: {op: a}, by: [tenant], rate: 10/m}
    - {id: only-b, group: only-b, when: {op: b}, by: [tenant], rate: 10/m, algorithm: sliding_window}
    - {id: only-c, group: only-c, when: {op: c}, by: [tenant, op], rate: 9/h, algorithm: fixed_window}
    - {id: month, group: month, when: {op: d}, by: [tenant], rate: 50/month, algorithm: fixed_window}
    - {id: huge, group: huge, when: {op: e}, by: [tenant], rate: 1099511627776/366d, mode: shadow}
`

// TestFieldsTogether drives batches of calls of a few tenants through one script, in which
// calls share strings in all ways, beside the maths of package limit. Every value outlives
// its buckets, and no key is without an expiry.
func TestFieldsTogether(t *testing.T) {
	for _, formats := range [][]int{{writeFormat}, {1, writeFormat}} {
		t.Run(fmt.Sprint(formats), func(t *testing.T) { fieldsTogether(t, formats) })
	}
}

func fieldsTogether(t *testing.T, formats []int) {
	node := redistest.Start(t)
	c := client(t, node.Addr)
	set := compileFile(t, manyFields)
	random := rand.New(rand.NewPCG(storetest.Seed(t), 1))
	var stores []*Store
	for _, format := range formats {
		s, err := openWith(t.Context(), Options{Addrs: []string{node.Addr}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second}, onFakeClockIn(t, format))
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, running(t, s))
	}
	twin, now := storetest.Twin{}, time.Now().UnixMicro()
	ops := 6
	full := map[string]int64{} // by key: when all its buckets are as good as untouched
	for round := range 600 {
		if round == 300 { // from here on the tenants have more fields than a string
			ops = 14
		}
		now += random.Int64N(500_000)
		do(t, c, clockArgs(now))
		var b limit.Buffer
		for range 1 + random.IntN(12) {
			set.Resolve(&limit.Request{
				Tenant: fmt.Sprint("t", random.IntN(4)), Op: string(rune('a' + random.IntN(ops))), Cost: 1 + random.Int64N(4),
			}, testAddrs, now, &b)
		}
		want := make([]limit.Item, len(b.Items))
		copy(want, b.Items)
		stores[random.IntN(len(stores))].Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		for _, call := range b.Calls {
			twin.Decide(want[call.First:call.Last], now, true)
			for i := call.First; i < call.Last; i++ {
				got, w := &b.Items[i], &want[i]
				if got.Source != limit.SourceStore || got.Verdict != w.Verdict {
					t.Fatalf("round %d: %s by %s:\nLua %+v\nGo  %+v", round, got.Name, got.Source, got.Verdict, w.Verdict)
				}
				key := string(got.Name[:got.KeyLen])
				full[key] = max(full[key], now/1000+got.Reset)
			}
		}
		for key, at := range full {
			if ends := c.PExpireTime(t.Context(), key).Val().Milliseconds(); ends < at-1 && at > now/1000 {
				t.Fatalf("round %d: %s expires at %d, its buckets are full at %d", round, key, ends, at)
			}
		}
	}
}

// compileFile returns the set of a limits file.
func compileFile(tb testing.TB, text string) *limit.Set {
	tb.Helper()
	set, _, err := config.ParseLimits("limits.yaml", []byte(text), limit.CompileOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func do(tb testing.TB, c *redis.Client, words []string) {
	tb.Helper()
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	if err := c.Do(tb.Context(), args...).Err(); err != nil {
		tb.Fatal(err)
	}
}

// TestFieldsMove checks that the buckets of a hash that the release before this one wrote
// move to a string in one write, with their expiry; unless one of them cannot be read, which
// then stays, beside the others.
func TestFieldsMove(t *testing.T) {
	node := redistest.SharedNode(t)
	c := client(t, node.Addr)
	set := compileFile(t, manyFields)
	open := func(format int) *Store {
		s, err := openWith(t.Context(), Options{Addrs: []string{node.Addr}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second}, newDecideScript(format))
		if err != nil {
			t.Fatal(err)
		}
		return running(t, s)
	}
	before, now := open(1), open(3)
	for _, unreadable := range []bool{false, true} {
		tenant := fmt.Sprint("moves-", unreadable)
		key := limit.TenantKey(tenant)
		for _, op := range []string{"a", "b", "c", "d", "e"} {
			take(t, before, set, limit.Request{Tenant: tenant, Op: op, Cost: 1})
		}
		if kind := c.Type(t.Context(), key).Val(); kind != "hash" {
			t.Fatalf("the release before writes a %s", kind)
		}
		if unreadable {
			c.HSet(t.Context(), key, ":only-b;s", "\x01?")
		}
		ttl := c.PTTL(t.Context(), key).Val()
		items := take(t, now, set, limit.Request{Tenant: tenant, Op: "a", Cost: 1})
		if left := items[1].Remaining; left != 100_000-6 {
			t.Errorf("unreadable %t: %d units left of a day, want %d", unreadable, left, 100_000-6)
		}
		want := "string"
		if unreadable {
			want = "hash"
		}
		if kind := c.Type(t.Context(), key).Val(); kind != want {
			t.Errorf("unreadable %t: a %s, want a %s", unreadable, kind, want)
		}
		if after := c.PTTL(t.Context(), key).Val(); after < ttl-time.Minute {
			t.Errorf("unreadable %t: the key expires in %s, before in %s", unreadable, after, ttl)
		}
		items = take(t, before, set, limit.Request{Tenant: tenant, Op: "c", Cost: 1})
		for i := range items {
			if it := &items[i]; it.Limit.ID == "only-c" && it.Remaining != 9-2 || it.Limit.ID == "day" && it.Remaining != 100_000-7 {
				t.Errorf("unreadable %t: %d units left of %s", unreadable, it.Remaining, it.Limit.ID)
			}
		}
	}
}

// TestFieldsReset checks that a reset of one limit removes its fields of a string, and of a
// hash, and no others.
func TestFieldsReset(t *testing.T) {
	node := redistest.SharedNode(t)
	c := client(t, node.Addr)
	set := compileFile(t, manyFields)
	for _, format := range []int{1, writeFormat} {
		s, err := openWith(t.Context(), Options{Addrs: []string{node.Addr}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second}, newDecideScript(format))
		if err != nil {
			t.Fatal(err)
		}
		running(t, s)
		tenant := fmt.Sprint("reset-", format)
		for _, op := range []string{"a", "b", "c", "d", "e", "a"} {
			take(t, s, set, limit.Request{Tenant: tenant, Op: op, Cost: 1})
		}
		for _, step := range []struct {
			id   string
			want int64
		}{{"op", 5}, {"op", 0}, {"only", 0}, {"only-b", 1}, {"huge", 1}} {
			if n, err := s.Reset(t.Context(), tenant, step.id); err != nil || n != step.want {
				t.Errorf("format %d: a reset of %s removed %d buckets, want %d: %v", format, step.id, n, step.want, err)
			}
		}
		left := map[string]int64{}
		for _, op := range []string{"a", "b"} {
			for _, it := range take(t, s, set, limit.Request{Tenant: tenant, Op: op, Cost: 1}) {
				left[it.Limit.ID] = it.Remaining
			}
		}
		for id, want := range map[string]int64{"op": 19, "only-b": 9, "only-a": 10 - 3, "day": 100_000 - 8} {
			if left[id] != want {
				t.Errorf("format %d: %d units of %s are left after the resets, want %d", format, left[id], id, want)
			}
		}
		if n, err := s.Reset(t.Context(), tenant, ""); err != nil || n != 8 {
			t.Errorf("format %d: a reset of all removed %d buckets, want 8: %v", format, n, err)
		}
		if keys := c.Keys(t.Context(), "lg:t:{"+tenant+"}*").Val(); len(keys) > 0 {
			t.Errorf("format %d: keys are left: %s", format, strings.Join(keys, " "))
		}
	}
}

// TestFieldsBeyondAString checks that a call with more fields than a string has, or with
// long names, is decided and decided again.
func TestFieldsBeyondAString(t *testing.T) {
	node := redistest.SharedNode(t)
	s := open(t, node.Addr)
	var many []spec
	for i := range 40 {
		many = append(many, spec{ID: fmt.Sprint("l", i), By: []string{"tenant"}, Rate: "100/h"})
	}
	long := "version: 1\ndefault_plan: p\nmax_levels: 64\ndimensions:\n"
	by, req := "tenant", limit.Request{Tenant: "long", Cost: 1}
	for i := range 14 {
		value := fmt.Sprint(i) + strings.Repeat("%", 250)
		long += fmt.Sprintf("  d%d: {values: ['%s']}\n", i, value)
		by += fmt.Sprint(", d", i)
		req.Dims = append(req.Dims, limit.Dim{Name: fmt.Sprint("d", i), Value: value})
	}
	long += "plans:\n  p:\n    - {id: other, group: other, by: [tenant], rate: 100/h}\n"
	for i := range 9 {
		long += fmt.Sprintf("    - {id: l%d, group: g%d, by: [%s], rate: 100/h}\n", i, i, by)
	}
	for name, c := range map[string]struct {
		set *limit.Set
		req limit.Request
	}{
		"many": {compile(t, many...), limit.Request{Tenant: "many", Cost: 1}},
		"long": {compileFile(t, long), req},
	} {
		for n := range int64(3) {
			for _, it := range take(t, s, c.set, c.req) {
				if it.Remaining != 99-n {
					t.Errorf("%s: %d units left of %.20s after %d", name, it.Remaining, it.Limit.ID, n+1)
				}
			}
		}
	}
}

// TestFieldsOfOldRecord checks that a reservation that the release before made is settled
// although its bucket has gone meanwhile.
func TestFieldsOfOldRecord(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	for i, by := range [][]string{{"tenant"}, {"tenant", "op"}} {
		set := compile(t, spec{ID: "rate", By: by, Rate: "100/h"})
		tenant := fmt.Sprint("record-", i)
		take(t, s, set, limit.Request{Tenant: tenant, Op: "o", Cost: 1, ID: "i", Hold: limit.HoldReservation, HoldFor: time.Minute})
		what := limit.Settlement{Hold: limit.HoldReservation, Tenant: tenant, ID: "i", Change: limit.ChangeCommit, Units: 50}
		const older = `local t = cmsgpack.unpack(redis.call('GET', KEYS[1]))
			t[6][1][3] = string.sub(t[6][1][3], 1, 42) .. '1/36000000/100;'
			redis.call('SET', KEYS[1], cmsgpack.pack(t), 'KEEPTTL')
			return redis.call('DEL', t[6][1][1])`
		if err := c.Eval(t.Context(), older, []string{string(what.Key())}).Err(); err != nil {
			t.Fatal(err)
		}
		s.Settle(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, &what)
		if left := take(t, s, set, limit.Request{Tenant: tenant, Op: "o", Cost: 1})[0].Remaining; left != 100-49-1 {
			t.Errorf("%v: %d units left, want 50", by, left)
		}
	}
}
