package linear

import (
	"math/rand/v2"
	"testing"
	"time"
)

// fast has a token bucket that gains a unit in 100 ms, beside a quota.
var fast = Plan{{ID: "paced", Rule: Paced, Capacity: 5, Every: 100 * time.Millisecond}, {ID: "quota", Capacity: 1000}}

// TestPaced: units come back in time, not before.
func TestPaced(t *testing.T) {
	empty := func() *testHistory { return newHistory(fast).check("-", 5, admitted("paced", 0)) }
	for name, c := range map[string]struct {
		after int64 // ms
		a     Answer
		want  Verdict
	}{
		"at once":              {0, admitted("paced", 0), Unexplained},
		"denied at once":       {0, denied("paced", 0), Explained},
		"too early":            {97, admitted("paced", 0), Unexplained},
		"in time":              {101, admitted("paced", 0), Explained},
		"in time, and denied":  {103, denied("paced", 0), Unexplained},
		"one too many left":    {101, admitted("paced", 1), Unexplained},
		"full again":           {600, admitted("paced", 4), Explained},
		"more than full again": {900, admitted("paced", 5), Unexplained},
	} {
		t.Run(name, func(t *testing.T) {
			h := empty().wait(c.after).check("-", 1, c.a)
			if got := FindOrder(&h.History, time.Minute); got.Verdict != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestSetBack: a bucket whose clock stepped back gains nothing until it is written, and
// then gains at its rate: no more than if the clock had not stepped.
func TestSetBack(t *testing.T) {
	begin := func() *testHistory { return newHistory(fast).check("-", 4, admitted("paced", 1)).over(SetBack) }
	peek := Call{Kind: Peek, Op: "-", Units: 1}
	for name, c := range map[string]struct {
		h    *testHistory
		want Verdict
	}{
		"earned nothing":           {begin().add(peek, admitted("paced", 0)), Explained},
		"minted":                   {begin().add(peek, admitted("paced", 1)), Unexplained},
		"peeked again":             {begin().wait(250).add(peek, admitted("paced", 0)).wait(250).add(peek, admitted("paced", 0)), Explained},
		"earned nothing for once":  {begin().wait(250).check("-", 1, admitted("paced", 0)).wait(150).check("-", 1, admitted("paced", 0)), Explained},
		"earned nothing for ever":  {begin().wait(250).check("-", 1, admitted("paced", 0)).wait(150).check("-", 1, denied("paced", 0)), Unexplained},
		"more than without a step": {begin().wait(150).check("-", 2, admitted("paced", 0)).check("-", 1, admitted("paced", 0)), Unexplained},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FindOrder(&c.h.History, time.Minute); got.Verdict != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// wait advances the time by some milliseconds.
func (h *testHistory) wait(ms int64) *testHistory {
	h.at += ms * 1000
	return h
}

// TestPacedBuckets: every answer of a correct bucket is explained when only the time
// around each call is known.
func TestPacedBuckets(t *testing.T) {
	const unit, capacity = 100_000, 5
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		h := newHistory(Plan{{ID: "paced", Rule: Paced, Capacity: capacity, Every: unit * time.Microsecond}})
		h.at += 10 * unit
		full := h.at
		for range 60 {
			sent := h.at + random.Int64N(2*unit)
			at := sent + random.Int64N(unit/2)
			units := 1 + random.Int64N(3)
			lack := max(0, full-at)
			a := Answer{Known: true, Limit: "paced", Left: max(0, (capacity*unit-lack)/unit)}
			if lack+units*unit <= capacity*unit {
				full = max(full, at) + units*unit
				a.Allowed, a.Left = true, (capacity*unit-(full-at))/unit
			}
			h.Operations = append(h.Operations, Operation{
				Call: Call{Kind: Check, Op: "-", Units: units}, Answer: a, Sent: sent, Received: at + random.Int64N(unit/2),
			})
			h.at = at
		}
		if got := FindOrder(&h.History, time.Minute); got != (Result{}) {
			e, _ := Explain(&h.History)
			t.Fatalf("seed %d: %+v\n%s", seed, got, &e)
		}
	}
}
