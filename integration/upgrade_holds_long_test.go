//go:build long

package integration

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// hold sends a command that holds units or a slot, and returns the decision and the id.
func (r release) hold(t *testing.T, words ...any) (v verdict, id string) {
	t.Helper()
	f, ok := r.do(t, words...).([]any)
	if !ok || len(f) != 8 {
		t.Fatalf("%s release: %v: %v", r.name, words, f)
	}
	cmd := redis.NewCmd(t.Context())
	cmd.SetVal(f[:7])
	v, err := asVerdict(cmd)
	if err != nil || v.source != "store" {
		t.Fatalf("%s release: %v: %+v, %v", r.name, words, v, err)
	}
	return v, fmt.Sprint(f[7])
}

// settle sends a settlement and checks its reply.
func (r release) settle(t *testing.T, want int64, words ...any) {
	t.Helper()
	if got := r.do(t, words...); got != want {
		t.Errorf("%s release: %v: %v, want %d", r.name, words, got, want)
	}
}

// testReservations checks that a reservation made at one release is settled at the other
// one.
func (u *upgrade) testReservations(t *testing.T) {
	for _, op := range u.ops {
		if op == "address" || op == "levels" {
			continue // a shared limit keeps the estimate
		}
		for i, way := range u.ways() {
			a, b, tenant := way[0], way[1], fmt.Sprintf("reserve-%s-%d", op, i)
			reserve := func(more ...any) []any { return tenantWords("RL.RESERVE", tenant, op, 10, more...) }

			_, id := a.hold(t, reserve()...)
			u.left(t, tenant, op, upgradeUnits-10)
			b.settle(t, 1, "RL.COMMIT", id, 4)
			a.settle(t, 2, "RL.COMMIT", id, 4)
			u.left(t, tenant, op, upgradeUnits-4)

			first, id := a.hold(t, reserve("ID", "own")...)
			again, sameID := b.hold(t, reserve("ID", "own")...)
			if first != again || id != sameID {
				t.Errorf("%s: reserved again at the %s release: %+v %s, was %+v %s", op, b.name, again, sameID, first, id)
			}
			b.settle(t, 1, "RL.CANCEL", "ID", "own", "TENANT", tenant)
			a.settle(t, 2, "RL.CANCEL", "ID", "own", "TENANT", tenant)
			u.left(t, tenant, op, upgradeUnits-4)

			_, id = a.hold(t, reserve("TTL", 60_000)...)
			b.settle(t, 1, "RL.COMMIT", id, 30)
			u.left(t, tenant, op, upgradeUnits-34)
		}
	}
}

// testSlots checks that a slot acquired at one release is renewed and released at the
// other one, and that both grant the slots once.
func (u *upgrade) testSlots(t *testing.T) {
	for i, way := range u.ways() {
		a, b, tenant := way[0], way[1], fmt.Sprint("slots-", i)
		acquire := func(more ...any) []any { return tenantWords("RL.ACQUIRE", tenant, "slots", 0, more...) }
		var held []string
		for n := range upgradeSlots {
			v, id := u.ways()[(i+n)%2][0].hold(t, acquire()...)
			if !v.allowed || v.id != "slots" || v.left != int64(upgradeSlots-1-n) {
				t.Errorf("slot %d: %+v", n, v)
			}
			held = append(held, id)
		}
		for _, r := range way {
			if v, id := r.hold(t, acquire()...); v.allowed || id != "" {
				t.Errorf("%s release: one slot too many: %+v %q", r.name, v, id)
			}
		}
		for n, id := range held {
			// The one of the pair that did not grant the slot.
			other, same := u.ways()[(i+n)%2][1], u.ways()[(i+n)%2][0]
			other.settle(t, 1, "RL.RENEW", id, "TTL", 120_000)
			same.settle(t, 1, "RL.RENEW", id)
			other.settle(t, 1, "RL.RELEASE", id)
			same.settle(t, 2, "RL.RELEASE", id)
		}
		first, id := a.hold(t, acquire("ID", "own")...)
		again, sameID := b.hold(t, acquire("ID", "own")...)
		if first.left != upgradeSlots-1 || again.left != first.left || id != sameID {
			t.Errorf("acquired again at the %s release: %+v %s, was %+v %s", b.name, again, sameID, first, id)
		}
		b.settle(t, 1, "RL.RELEASE", "ID", "own", "TENANT", tenant)
		a.settle(t, 2, "RL.RELEASE", "ID", "own", "TENANT", tenant)
	}
}

// testRefund checks that units taken at one release return at the other one.
func (u *upgrade) testRefund(t *testing.T) {
	for _, op := range u.ops {
		if op == "address" || op == "levels" {
			continue // a refund leaves shared limits as they are
		}
		for i, way := range u.ways() {
			tenant := fmt.Sprintf("refund-%s-%d", op, i)
			way[0].decide(t, tenantWords("RL.CHECK", tenant, op, 9)...)
			way[1].settle(t, 1, tenantWords("RL.REFUND", tenant, op, 5)...)
			u.left(t, tenant, op, upgradeUnits-4)
			way[0].settle(t, 1, tenantWords("RL.REFUND", tenant, op, 500)...)
			u.left(t, tenant, op, upgradeUnits)
		}
	}
}
