package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// TestWindowAtSight has fast_window.lua and general.lua decide the same calls on equal values: states of
// this window, of others and with a carry, and bytes that are none. Replies, values and expiries are equal.
func TestWindowAtSight(t *testing.T) {
	random := rand.New(rand.NewPCG(storetest.Seed(t), 1))
	c := client(t, redistest.SharedNode(t).Addr)
	s := onFakeClock(t)
	if err := c.ScriptLoad(t.Context(), s.text).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Del(context.Background(), "clock:s", "clock:us") })
	atSight := 0
	for i := range 800 {
		w := drawWindow(t, random, c, i)
		want := w.run(t, c, s, "g", 0)
		got := w.run(t, c, s, "f", flagAtSight)
		if got.text != want.text {
			t.Fatalf("%+v\n%s, want\n%s", w, got.text, want.text)
		}
		atSight += got.plain
	}
	if atSight < 250 {
		t.Errorf("%d calls were decided at sight, want most of them", atSight)
	}
}

// windowRun is a run of calls of one fixed window.
type windowRun struct {
	name     string
	op       string
	keys     []int // the buckets of the calls
	checks   []int64
	capacity int64
	period   int64
	cost     int64
	now      int64
}

// drawWindow draws a run, and stores equal values for both scripts.
func drawWindow(t *testing.T, random *rand.Rand, c *redis.Client, i int) *windowRun {
	t.Helper()
	w := &windowRun{
		name: fmt.Sprintf("at-sight-%d:", i), op: []string{"take", "peek", "takes", "peeks"}[random.IntN(4)],
		capacity: 1 + random.Int64N(8), period: []int64{1_000_000, 60_000_000}[random.IntN(2)], cost: random.Int64N(4),
		now: 2_208_988_800e6 + random.Int64N(1e12),
	}
	for range 1 + random.IntN(4) {
		w.keys, w.checks = append(w.keys, random.IntN(6)), append(w.checks, 1+random.Int64N(4))
	}
	if _, err := c.Do(t.Context(), words(clockArgs(w.now))...).Result(); err != nil {
		t.Fatal(err)
	}
	for key := range 6 {
		for _, side := range []string{"f", "g"} {
			c.Del(t.Context(), w.key(side, key))
		}
		value, ok := w.drawValue(random)
		for _, side := range []string{"f", "g"} {
			switch {
			case ok:
				c.Do(t.Context(), "SET", w.key(side, key), value, "PXAT", 3e12)
			case value == "hash":
				c.HSet(t.Context(), w.key(side, key), "a", "b")
			}
		}
	}
	return w
}

// drawValue returns a stored value. It returns false for none, which may be "hash" for another type.
func (w *windowRun) drawValue(random *rand.Rand) (value string, ok bool) {
	start := w.now - w.now%w.period
	n := [6]float64{float64(start), float64(start + w.period), float64(random.Int64N(w.capacity + 3))}
	switch random.IntN(12) {
	case 0, 1:
		return "", false
	case 2:
		return []string{"", "hash"}[random.IntN(2)], false
	case 3: // an earlier window
		n[0], n[1] = n[0]-float64(w.period*(1+random.Int64N(3))), n[0]
	case 4: // a window of another period, or a later one
		n[0], n[1] = n[0]-7, n[1]+float64(random.Int64N(5)-2)*float64(w.period)
	case 5:
		n[4], n[5] = float64(random.Int64N(3)), n[1]+float64(random.Int64N(3)-1)*float64(w.period)
	case 6:
		n[3] = float64(random.Int64N(3))
	case 7: // no state
		n[random.IntN(6)] = []float64{math.NaN(), math.Inf(1), -1, 0.5, 1 << 50, -1 << 53}[random.IntN(6)]
	}
	raw := []byte{1}
	for _, d := range n {
		raw = appendFloat(raw, d)
	}
	switch random.IntN(20) {
	case 0:
		raw[0] = byte(random.IntN(5))
	case 1:
		raw = raw[:random.IntN(len(raw))]
	case 2:
		raw = append(raw, 0)
	}
	return string(raw), true
}

func (w *windowRun) key(side string, n int) string {
	return fmt.Sprintf("%s%s%d", w.name, side, n)
}

// windowResult is a reply with the values after it, as text.
type windowResult struct {
	text  string
	plain int // replies of one number
}

// run makes the calls on the values of a side.
func (w *windowRun) run(t *testing.T, c *redis.Client, s script, side string, flags int64) (r windowResult) {
	t.Helper()
	l, err := limit.NewDescriptorLimit("x", w.capacity, w.period, limit.ModeEnforce)
	if err != nil {
		t.Fatal(err)
	}
	if distinct(w.keys) {
		flags |= flagDistinct
	}
	it := limit.Item{Limit: l, Cost: w.cost, Name: []byte("x"), KeyLen: 1}
	args := []any{w.op, 1, len(w.keys), string(appendLimit(nil, &it, flagsOf(&it)|flags))}
	var keys []string
	for i, key := range w.keys {
		keys = append(keys, w.key(side, key))
		if len(w.op) == 5 {
			args = append(args, w.checks[i])
		}
	}
	reply, err := c.EvalSha(t.Context(), s.sha, keys, args...).Slice()
	if err != nil {
		t.Fatal(err)
	}
	start := w.now - w.now%w.period
	for _, one := range reply {
		if n, ok := one.(int64); ok && n < 0 {
			r.plain++
			r.text += fmt.Sprintln([]int64{start, start + w.period, -1 - n, 0, 0, 0})
			continue
		}
		r.text += fmt.Sprintln(one)
	}
	r.text = spaced(r.text)
	for key := range 6 {
		name := w.key(side, key)
		if w.cost == 0 { // general.lua may write a state again, or delete one that is over
			c.Del(t.Context(), name)
			continue
		}
		r.text += fmt.Sprintf("\n%d: %q %v", key, c.Get(t.Context(), name).Val(), c.Do(t.Context(), "PEXPIRETIME", name).Val())
		c.Del(t.Context(), name)
	}
	return r
}

// spaced returns the words of a text, without brackets, separated by blanks.
func spaced(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n[]", r) }), " ")
}

func distinct(keys []int) bool {
	seen := map[int]bool{}
	for _, k := range keys {
		seen[k] = true
	}
	return len(seen) == len(keys)
}

func words(text []string) (all []any) {
	for _, w := range text {
		all = append(all, w)
	}
	return all
}

func appendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}
