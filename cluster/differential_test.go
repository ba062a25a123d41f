package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

func TestDifferential(t *testing.T) { compareHistories(t, 100_000) }

// compareHistories drives random histories through the scripts on a real Redis and through
// the maths of package limit, on one injected clock. Scripts that write the two formats take
// turns in every second history, as two releases do that share a store. Verdicts, units left and waits must be
// equal, through changed limits, refunds, steps of the clock and the edges of the accepted
// numbers. The wait of every denial must be exact on both sides.
func compareHistories(t *testing.T, steps int) {
	t.Helper()
	seed := storetest.Seed(t)
	node := redistest.SharedNode(t)
	d := &differential{
		t: t, client: client(t, node.Addr), scripts: []script{onFakeClock(t), onFakeClockIn(t, 1)},
		random: rand.New(rand.NewPCG(seed, 1)),
	}
	d.load()
	t.Cleanup(func() { d.client.Del(context.Background(), "clock:s", "clock:us") })
	d.connect(node.Addr)
	for d.steps < steps && !t.Failed() {
		d.history()
		if len(d.asked) > 4000 {
			d.compare()
		}
	}
	d.compare()
	t.Logf("%d decisions compared: %d denied and held to their wait, %d refunds, %d limits changed, %d clock steps back",
		d.steps, d.denied, d.refunds, d.changes, d.back)
}

type differential struct {
	t      *testing.T
	client *redis.Client
	conn   net.Conn
	in     *resp.Reader
	random *rand.Rand
	// scripts are the current release's and that of the one before. turns reports whether
	// both decide the current history.
	scripts []script
	turns   bool

	twin    storetest.Twin
	now     int64
	names   int
	out     []byte
	asked   []question
	steps   int
	denied  int
	refunds int
	changes int
	back    int
}

// question is a call of the script with the expected answer. If batch is nil it is a
// command with any answer.
type question struct {
	batch   *batch
	request *nodeRequest
	want    []limit.Item
	say     string
}

func (d *differential) load() {
	for _, s := range d.scripts {
		if err := d.client.ScriptLoad(context.Background(), s.text).Err(); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *differential) connect(addr string) {
	var err error
	if d.conn, err = net.Dial("tcp", addr); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = d.conn.Close() })
	d.in = resp.NewReader(d.conn)
}

// history drives one tenant through a few dozen decisions.
func (d *differential) history() {
	d.twin = storetest.Twin{}
	d.names++
	d.turns = d.names%2 == 0
	tenant := fmt.Sprintf("tenant-%d", d.names)
	variants := []*limit.Set{d.limits(nil), nil}
	variants[1] = d.limits(variants[0])
	set := variants[0]
	d.setClock(2_208_988_800e6 + d.random.Int64N(1e12)) // 2040: nothing expires while the test runs
	var granted []limit.Item
	for range 40 {
		switch d.random.IntN(16) {
		case 0:
			set = variants[d.random.IntN(2)]
			d.changes++
		case 1:
			d.setClock(d.now - d.jump(set))
			d.back++
		default:
			d.setClock(d.now + d.jump(set))
		}
		if len(granted) > 0 && d.random.IntN(6) == 0 {
			d.refund(granted)
			granted = nil
			continue
		}
		if items := d.check(set, tenant); items != nil {
			granted = items
		}
	}
}

// limits draws a plan. If old is not nil, the limits of the new plan have the same ids,
// algorithms and dimensions.
func (d *differential) limits(old *limit.Set) *limit.Set {
	var specs []spec
	for i, by := range [][]string{{"tenant"}, {"tenant", "op"}, {"tenant"}, {"tenant"}}[:1+d.random.IntN(4)] {
		s := spec{ID: fmt.Sprintf("l%d", i), By: by, Algorithm: []string{"token_bucket", "sliding_window", "fixed_window", "sliding_log"}[d.random.IntN(4)]}
		if old != nil {
			if i >= len(old.Limits) {
				break
			}
			s.Algorithm = old.Limits[i].Params.Algorithm.String()
		}
		if i == 3 {
			s.Mode = "shadow"
		}
		s.Rate, s.Burst = d.rate(s.Algorithm)
		specs = append(specs, s)
	}
	if old != nil {
		specs = specs[:min(len(specs), len(old.Limits))]
	}
	return compile(d.t, specs...)
}

// rate draws a rate and a burst, small ones more often than huge ones.
func (d *differential) rate(algorithm string) (rate, burst string) {
	count, seconds := 1+d.random.Int64N(20), 1+d.random.Int64N(120)
	switch d.random.IntN(8) {
	case 0:
		count = 1 + d.random.Int64N(bucket.MaxCapacity)
	case 1:
		count, seconds = bucket.MaxCapacity-d.random.Int64N(3), bucket.MaxPeriod/1e6-d.random.Int64N(3)
	case 2:
		seconds = 1 + d.random.Int64N(bucket.MaxPeriod/1e6)
	}
	if algorithm == "sliding_log" {
		count = 1 + (count-1)%bucket.MaxLogUnits
	}
	rate = fmt.Sprintf("%d/%ds", count, seconds)
	switch {
	case algorithm == "fixed_window" && d.random.IntN(4) == 0:
		return fmt.Sprintf("%d/%s", count, []string{"day", "month"}[d.random.IntN(2)]), ""
	case algorithm != "token_bucket" || d.random.IntN(2) == 0:
		return rate, ""
	}
	most := min(bucket.MaxCapacity, 30*365*86400/seconds*count)
	if d.random.IntN(4) > 0 {
		most = min(most, 50)
	}
	return rate, fmt.Sprint(1 + d.random.Int64N(max(1, most)))
}

// jump draws a step of the clock: from nothing to beyond a period.
func (d *differential) jump(set *limit.Set) int64 {
	l := set.Limits[d.random.IntN(len(set.Limits))]
	switch d.random.IntN(4) {
	case 0:
		return d.random.Int64N(3000)
	case 1:
		return d.random.Int64N(2*l.Params.Period + 1)
	default:
		return d.random.Int64N(max(1, l.Params.FullTime()/max(1, min(l.Params.Capacity, 1000))) * 2)
	}
}

func (d *differential) setClock(now int64) {
	d.now = now
	d.out = resp.AppendCommand(d.out, clockArgs(now)...)
	d.asked = append(d.asked, question{})
}

// check decides one request on both sides; it returns the items it charged.
func (d *differential) check(set *limit.Set, tenant string) []limit.Item {
	req := limit.Request{Tenant: tenant, Op: []string{"GET /a", "GET /b"}[d.random.IntN(2)], Cost: d.cost(set)}
	var b limit.Buffer
	set.Resolve(&req, testAddrs, d.now, &b)
	d.ask(opTake, &b, fmt.Sprintf("%s cost %d", set.Version, req.Cost))
	granted := true
	for i := range b.Items {
		granted = granted && !(b.Items[i].Denies() && b.Items[i].Enforced())
	}
	for i := range b.Items {
		if it := &b.Items[i]; it.Denies() && it.Wait != bucket.Never {
			d.holdToWait(set, &req, i, it.Wait)
			break
		}
	}
	if !granted {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.Items), func(it limit.Item) bool { return !it.Allowed })
}

func (d *differential) cost(set *limit.Set) int64 {
	capacity := set.Limits[d.random.IntN(len(set.Limits))].Params.Capacity
	switch d.random.IntN(6) {
	case 0:
		return min(bucket.MaxCost, 1+d.random.Int64N(capacity+1))
	case 1:
		return min(bucket.MaxCost, max(1, capacity-d.random.Int64N(2)))
	default:
		return 1 + d.random.Int64N(3)
	}
}

// holdToWait peeks just before and just after the time at which item i should fit, on both
// sides.
func (d *differential) holdToWait(set *limit.Set, req *limit.Request, i int, wait int64) {
	d.denied++
	was := d.now
	for _, early := range []int64{1, 0} {
		d.setClock(was + (wait-early)*1000)
		var b limit.Buffer
		set.Resolve(req, testAddrs, d.now, &b)
		d.ask(opPeek, &b, fmt.Sprintf("%s wait %d ms, %d ms early", set.Version, wait, early))
		if got := b.Items[i].Allowed; got != (early == 0) {
			d.t.Errorf("limit %s: true wait %d ms, but %d ms before its end allowed is %v", b.Items[i].Limit.Rate.Text, wait, early, got)
		}
	}
	d.setClock(was)
}

func (d *differential) refund(items []limit.Item) {
	d.refunds++
	d.twin.Refund(items, d.now)
	for i := range items {
		d.send(opRefund, items[i:i+1], 1, "")
	}
}

// ask asks the twin, and queues the same question for Redis, sometimes after several equal
// ones in the same call of the script.
func (d *differential) ask(what op, b *limit.Buffer, say string) {
	var all []limit.Item
	for range 1 + max(0, d.random.IntN(8)-4) {
		d.steps++
		d.twin.Decide(b.Items, d.now, what == opTake)
		all = append(all, b.Items...)
	}
	d.send(what, all, len(b.Items), say)
}

// send queues a call of the script that repeats a call of n buckets. The items hold the
// expected answers.
func (d *differential) send(what op, items []limit.Item, n int, say string) {
	q := question{want: slices.Clone(items), say: say}
	q.request = new(nodeRequest)
	q.request.reset(what, route{}, slices.Clone(items), time.Now().Add(time.Hour))
	for i := 0; i < len(items); i += n {
		q.request.calls = append(q.request.calls, limit.Call{First: i, Last: i + n})
		q.request.open++
	}
	q.batch = newBatch()
	q.batch.opts = batchOptions{acrossSlots: true, declared: d.random.IntN(2) == 0}
	q.batch.addRequest(q.request, time.Now())
	by := d.scripts[0]
	if d.turns {
		by = d.scripts[d.random.IntN(2)]
	}
	q.batch.encode(by.sha)
	d.out = append(d.out, q.batch.out...)
	d.asked = append(d.asked, q)
}

// compare sends the queued calls and compares the answers.
func (d *differential) compare() {
	var sent sync.WaitGroup
	out := d.out
	sent.Go(func() { _, _ = d.conn.Write(out) })
	defer sent.Wait()
	for i := range d.asked {
		q := &d.asked[i]
		if q.batch == nil {
			if _, err := d.in.Strings(); err != nil {
				d.t.Fatal(err)
			}
			continue
		}
		err := q.batch.readReply(&q.batch.commands[0], d.in, func(err error, _ []limit.Item) { d.t.Fatalf("%s: %v", q.say, err) })
		if err != nil {
			d.t.Fatalf("%s: %v", q.say, err)
		}
		for j, got := range q.request.items {
			if got.Verdict != q.want[j].Verdict {
				d.t.Fatalf("%s: limit %d %s %s:\nLua %+v\nGo  %+v", q.say, j, got.Limit.Params.Algorithm, got.Limit.Describe(), got.Verdict, q.want[j].Verdict)
			}
		}
	}
	d.asked, d.out = d.asked[:0], nil
}
