package backstop_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

const totalRate = 100 // units a second

// crowd sends requests to a backstop with a total rate and a limit that never denies.
type crowd struct {
	b        *backstop.Backstop
	set      *limit.Set
	admitted map[string]int64 // units
}

func newCrowd(t *testing.T) *crowd {
	return &crowd{
		b:        backstop.New(backstop.Options{TotalRate: totalRate}),
		set:      storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1000000/s"}),
		admitted: map[string]int64{},
	}
}

func (c *crowd) ask(tenant string, cost, now int64) limit.Item {
	it := decide(c.b, c.set, limit.Request{Tenant: tenant, Cost: cost}, now)[0]
	if it.Allowed {
		c.admitted[tenant] += cost
	}
	return it
}

// TestTotalBounds checks that for any requests at any times no more is admitted than a
// second's units plus the earned ones.
func TestTotalBounds(t *testing.T) {
	c := newCrowd(t)
	rapid.Check(t, func(t *rapid.T) {
		c.b, c.admitted = backstop.New(backstop.Options{TotalRate: totalRate}), map[string]int64{}
		now := at.Now
		for range rapid.IntRange(1, 400).Draw(t, "requests") {
			now += rapid.Int64Range(0, 30_000).Draw(t, "pause")
			c.ask(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "tenant")), rapid.Int64Range(1, 3*totalRate).Draw(t, "cost"), now)
		}
		sum := int64(0)
		for _, n := range c.admitted {
			sum += n
		}
		if most := totalRate*(now-at.Now+100_000)/1_000_000 + totalRate; sum > most {
			t.Fatalf("%d units admitted in %d us, want at most %d", sum, now-at.Now, most)
		}
	})
}

// TestTotalPeek checks that Peek has the verdict of the Decide that follows it, and takes nothing: a backstop
// that also peeks decides as one that does not.
func TestTotalPeek(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "90/s"})
	rapid.Check(t, func(t *rapid.T) {
		peeked, plain := backstop.New(backstop.Options{TotalRate: totalRate}), backstop.New(backstop.Options{TotalRate: totalRate})
		now := at.Now
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now += rapid.Int64Range(0, 30_000).Draw(t, "pause")
			req := limit.Request{Tenant: fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "tenant")), Cost: rapid.Int64Range(1, 3*totalRate/2).Draw(t, "cost")}
			for range rapid.IntRange(0, 2).Draw(t, "peeks") {
				other := limit.Request{Tenant: fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "other")), Cost: 1}
				peek(peeked, set, other, now)
			}
			foreseen := peek(peeked, set, req, now)[0]
			got, want := decide(peeked, set, req, now)[0], decide(plain, set, req, now)[0]
			if got.Verdict != want.Verdict || got.Capped != want.Capped {
				t.Fatalf("%+v with peeks, %+v without", got.Verdict, want.Verdict)
			}
			if foreseen.Allowed != got.Allowed || foreseen.Wait != got.Wait || foreseen.Capped != got.Capped {
				t.Fatalf("Peek has %+v, Decide %+v", foreseen.Verdict, got.Verdict)
			}
			if own := got.Own(); got.Capped && (!own.Allowed || own.Wait != 0) {
				t.Fatalf("a capped item's own verdict is %+v", own)
			}
		}
		if peeked.Capped() != plain.Capped() {
			t.Fatalf("%d requests capped with peeks, %d without", peeked.Capped(), plain.Capped())
		}
	})
}

// TestTotalIsFair checks that a tenant with a small demand gets all of it. Tenants that
// demand more than there is get equal parts, however much they request and in which
// units.
func TestTotalIsFair(t *testing.T) {
	c := newCrowd(t)
	const seconds = 60
	retry, late := int64(0), 0
	for ms := range int64(seconds * 1000) {
		now := at.Now + ms*1000
		for range 5 {
			c.ask("greedy", 1, now)
		}
		c.ask("eager", 1, now)
		c.ask("bulky", 20, now)
		if ms%100 == 50 || now == retry { // 10 a second
			it := c.ask("modest", 1, now)
			if !it.Allowed && now == retry {
				late++
			}
			if retry = 0; !it.Allowed {
				retry = now + it.Wait*1000
			}
		}
	}
	if got := c.admitted["modest"]; got < 9*seconds || late > 20 {
		t.Errorf("one who asks for 10 a second got %d in %d s, and was denied again %d times", got, seconds, late)
	}
	for _, who := range []string{"greedy", "eager", "bulky"} {
		if got, want := c.admitted[who], int64(30*seconds); got < want*8/10 || got > want*12/10+totalRate {
			t.Errorf("%s got %d units of some %d", who, got, want)
		}
	}
	if c.b.Capped() == 0 {
		t.Error("nothing was counted as denied for the total")
	}
}

// TestTotalKeepsShares checks that a request that the total rate denies takes no units of
// its bucket, gets a wait, and is admitted after it.
func TestTotalKeepsShares(t *testing.T) {
	c := newCrowd(t)
	var it limit.Item
	for range totalRate + 1 {
		it = c.ask("t", 1, at.Now)
	}
	if it.Allowed || it.Source != limit.SourceBackstop || it.Wait <= 0 || it.Wait > 101 {
		t.Fatalf("beyond the total: %+v by %s", it.Verdict, it.Source)
	}
	if before := it.Remaining; before != 1_000_000-totalRate-1 {
		t.Errorf("%d left in the bucket when the total denied", before)
	}
	if it = c.ask("t", 1, at.Now+it.Wait*1000); !it.Allowed || it.Remaining < 1_000_000-totalRate-1 {
		t.Errorf("after the wait: %+v", it.Verdict)
	}
}

// TestManyTenants checks that tenants beyond maxTenants take no more memory, and share
// the rest.
func TestManyTenants(t *testing.T) {
	c := newCrowd(t)
	admitted := 0
	for i := range 30_000 {
		if it := c.ask(fmt.Sprint(i), 1, at.Now+int64(i)*100); it.Allowed {
			admitted++
		}
	}
	if most := totalRate + totalRate*3; admitted > most || admitted < totalRate {
		t.Errorf("%d admitted in 3 s, want at most %d", admitted, most)
	}
}

// TestTotalOutOfOrder checks that decisions that waited for the store, and come some
// milliseconds after later ones, create no units.
func TestTotalOutOfOrder(t *testing.T) {
	c := newCrowd(t)
	base := at.Now - at.Now%100_000
	for ms := range int64(2000) {
		for range 20 {
			c.ask("t", 1, base+ms*1000)
			c.ask("t", 1, base+ms*1000-5000)
		}
	}
	if most := int64(3 * totalRate); c.admitted["t"] > most {
		t.Errorf("%d units admitted in 2 s, want at most %d", c.admitted["t"], most)
	}
}

// TestTotalReservesDeniedUnits checks that a tenant that returns after its wait gets the
// units that it was denied, however many small requests there are in between.
func TestTotalReservesDeniedUnits(t *testing.T) {
	c := newCrowd(t)
	next := at.Now + 2_000_000
	for ms := range int64(60_000) {
		now := at.Now + ms*1000
		c.ask("greedy", 1, now)
		if now >= next {
			it := c.ask("bulky", 50, now)
			next = now + it.Wait*1000 + 200_000
		}
	}
	if got := c.admitted["bulky"]; got < 60*totalRate/4 {
		t.Errorf("one who asks for 50 at a time got %d units of %d in 60 s", got, 60*totalRate)
	}
}

// TestTotalLeavesShadows checks that a denial by the total rate refunds the units of a
// shadow limit, and only those, and does not change its verdict.
func TestTotalLeavesShadows(t *testing.T) {
	set := storetest.Compile(t,
		storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1000000/s"},
		storetest.Spec{ID: "trial", By: []string{"tenant"}, Rate: "10/366d", Mode: "shadow"},
	)
	b := backstop.New(backstop.Options{TotalRate: totalRate})
	for i := range 3 * totalRate {
		items := decide(b, set, limit.Request{Tenant: "t", Cost: 1}, at.Now)
		if trial := items[1]; trial.Allowed != (i < 10) {
			t.Fatalf("request %d: a limit of 10 on trial says %+v", i, trial.Verdict)
		}
	}
	alone := storetest.Compile(t, storetest.Spec{ID: "trial", By: []string{"tenant"}, Rate: "10/366d", Mode: "shadow"})
	if before := b.Capped(); !decide(b, alone, limit.Request{Tenant: "u", Cost: 1}, at.Now)[0].Allowed || b.Capped() != before {
		t.Error("a request that only a limit on trial watches was denied for the total")
	}
}

// TestTotalOfMany checks that the total rate is used up for any number of tenants, each
// of which requests more than its part.
func TestTotalOfMany(t *testing.T) {
	for _, crowd := range []struct{ tenants, cost int64 }{{150, 1}, {10, 100}, {500, 1}, {3, 60}} {
		c := newCrowd(t)
		const seconds = 20
		for ms := range int64(seconds * 1000) {
			for i := range crowd.tenants {
				if (ms+i)%25 == 0 { // 40 times a second
					c.ask(fmt.Sprint(i), crowd.cost, at.Now+ms*1000)
				}
			}
		}
		sum := int64(0)
		for _, n := range c.admitted {
			sum += n
		}
		if least := int64(seconds * totalRate * 9 / 10); sum < least {
			t.Errorf("%d tenants that ask for %d at a time get %d units in %d s, want %d", crowd.tenants, crowd.cost, sum, seconds, least)
		}
	}
}

// TestTotalOfOne checks that a request for more than the total rate ever admits is
// denied, and costs other tenants nothing.
func TestTotalOfOne(t *testing.T) {
	c := newCrowd(t)
	if it := c.ask("huge", 10_000, at.Now); it.Allowed || it.Wait <= 0 {
		t.Errorf("10,000 units where 100 a second are admitted: %+v", it.Verdict)
	}
	if it := c.ask("t", 1, at.Now); !it.Allowed {
		t.Errorf("a unit for another tenant: %+v", it.Verdict)
	}
}
