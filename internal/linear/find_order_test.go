package linear

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// quotas has two limits of 10 and 4 units, and one of two slots.
var quotas = Plan{
	{ID: "ten", Capacity: 10},
	{ID: "four", Capacity: 4, Ops: []string{"call"}},
	{ID: "slots", Rule: Slots, Capacity: 2, Ops: []string{"work"}},
}

// testHistory records the history of a test, in which each operation takes a millisecond.
type testHistory struct {
	History
	at int64
}

func newHistory(p Plan) *testHistory {
	return &testHistory{History: History{Tenant: "acme", Plan: p}, at: 1_000_000}
}

// add adds an operation after those before.
func (h *testHistory) add(c Call, a Answer) *testHistory {
	h.Operations = append(h.Operations, Operation{Call: c, Answer: a, Sent: h.at, Received: h.at + 1000})
	h.at += 1500
	return h
}

// beside adds an operation concurrent with the last one.
func (h *testHistory) beside(c Call, a Answer) *testHistory {
	last := h.Operations[len(h.Operations)-1]
	h.Operations = append(h.Operations, Operation{Client: 1, Call: c, Answer: a, Sent: last.Sent, Received: last.Received})
	return h
}

func (h *testHistory) check(op string, units int64, a Answer) *testHistory {
	return h.add(Call{Kind: Check, Op: op, Units: units}, a)
}

func admitted(by string, left int64) Answer {
	return Answer{Known: true, Allowed: true, Limit: by, Left: left}
}

func denied(by string, left int64) Answer { return Answer{Known: true, Limit: by, Left: left} }

func done(outcome int64) Answer { return Answer{Known: true, Outcome: outcome} }

var lostAnswer = Answer{}

func withID(k Kind, op string, units int64, id string) Call {
	return Call{Kind: k, Op: op, Units: units, ID: id}
}

// handMade are histories, those without an order with the wrong answer.
var handMade = map[string]struct {
	h     *testHistory
	stuck string
}{
	"units are taken one after the other": {h: newHistory(quotas).check("-", 3, admitted("ten", 7)).check("-", 7, admitted("ten", 0)).check("-", 1, denied("ten", 0))},
	"one unit too many is admitted": {
		newHistory(quotas).check("-", 10, admitted("ten", 0)).check("-", 1, admitted("ten", 0)), "CHECK - 1 -> admitted",
	},
	"a denial that consumed": {
		newHistory(quotas).check("call", 3, admitted("four", 1)).check("call", 2, denied("four", 1)).check("-", 1, admitted("ten", 4)),
		"CHECK - 1 -> admitted by ten, 4 left",
	},
	"a denial without a reason": {newHistory(quotas).check("-", 3, admitted("ten", 7)).check("-", 7, denied("ten", 7)), "CHECK - 7 -> denied"},
	"a retry that is charged once": {
		h: newHistory(quotas).add(withID(Check, "-", 3, "i"), admitted("ten", 7)).check("-", 1, admitted("ten", 6)).
			add(withID(Check, "-", 3, "i"), admitted("ten", 7)).check("-", 1, admitted("ten", 5)),
	},
	"a retry that is charged twice": {
		newHistory(quotas).add(withID(Check, "-", 3, "i"), admitted("ten", 7)).add(withID(Check, "-", 3, "i"), admitted("ten", 4)),
		"CHECK - 3 ID i -> admitted by ten, 4 left",
	},
	"a retry that is charged twice, and answered as once": {
		newHistory(quotas).add(withID(Check, "-", 3, "i"), admitted("ten", 7)).add(withID(Check, "-", 3, "i"), admitted("ten", 7)).check("-", 1, admitted("ten", 3)),
		"CHECK - 1 -> admitted by ten, 3 left",
	},
	"a retry after no answer, charged twice": {
		newHistory(quotas).add(withID(Check, "-", 3, "i"), lostAnswer).add(withID(Check, "-", 3, "i"), admitted("ten", 4)),
		"CHECK - 3 ID i -> admitted by ten, 4 left",
	},
	"a call without an answer was executed": {h: newHistory(quotas).check("-", 3, lostAnswer).check("-", 1, admitted("ten", 6))},
	"a call without an answer was not":      {h: newHistory(quotas).check("-", 3, lostAnswer).check("-", 1, admitted("ten", 9))},
	"a call without an answer is executed late": {
		h: newHistory(quotas).check("-", 3, lostAnswer).check("-", 1, admitted("ten", 9)).check("-", 1, admitted("ten", 5)),
	},
	"a call without an answer is executed twice": {
		newHistory(quotas).check("-", 3, lostAnswer).check("-", 1, admitted("ten", 6)).check("-", 1, admitted("ten", 2)), "2 left",
	},
	"a call without an answer is taken back": {
		newHistory(quotas).check("-", 3, lostAnswer).check("-", 1, admitted("ten", 6)).check("-", 1, admitted("ten", 8)), "8 left",
	},
	"calls at the same time, in either order": {
		h: newHistory(quotas).check("-", 3, admitted("ten", 5)).beside(Call{Kind: Check, Op: "-", Units: 2}, admitted("ten", 8)),
	},
	"calls at the same time, as if alone": {
		newHistory(quotas).check("-", 3, admitted("ten", 7)).beside(Call{Kind: Check, Op: "-", Units: 2}, admitted("ten", 8)), "left",
	},
	"a reservation is settled to what was used": {
		h: newHistory(quotas).add(withID(Reserve, "-", 5, "r"), admitted("ten", 5)).add(withID(Commit, "", 2, "r"), done(1)).
			add(withID(Commit, "", 4, "r"), done(2)).check("-", 1, admitted("ten", 7)),
	},
	"a reservation that used more owes it": {
		h: newHistory(quotas).add(withID(Reserve, "-", 5, "r"), admitted("ten", 5)).add(withID(Commit, "", 12, "r"), done(1)).check("-", 1, denied("ten", 0)),
	},
	"a refund that is lost": {
		newHistory(quotas).add(withID(Reserve, "-", 5, "r"), admitted("ten", 5)).add(withID(Cancel, "", 0, "r"), done(1)).check("-", 1, admitted("ten", 4)),
		"4 left",
	},
	"a refund that is given twice": {
		newHistory(quotas).check("-", 5, admitted("ten", 5)).add(withID(Reserve, "-", 2, "r"), admitted("ten", 3)).
			add(withID(Cancel, "", 0, "r"), done(1)).add(withID(Cancel, "", 0, "r"), done(1)), "CANCEL",
	},
	"a settlement without an answer": {
		h: newHistory(quotas).add(withID(Reserve, "-", 5, "r"), admitted("ten", 5)).add(withID(Cancel, "", 0, "r"), lostAnswer).
			check("-", 1, admitted("ten", 4)).check("-", 1, admitted("ten", 8)),
	},
	"slots are held until they are released": {
		h: newHistory(quotas).add(withID(Acquire, "work", 0, "a"), admitted("slots", 1)).add(withID(Acquire, "work", 0, "b"), admitted("slots", 0)).
			add(withID(Acquire, "work", 0, "c"), denied("slots", 0)).add(withID(Release, "", 0, "a"), done(1)).
			add(withID(Acquire, "work", 0, "c"), admitted("slots", 0)).check("-", 1, admitted("ten", 6)),
	},
	"a slot too many": {
		newHistory(quotas).add(withID(Acquire, "work", 0, "a"), admitted("slots", 1)).add(withID(Acquire, "work", 0, "b"), admitted("slots", 0)).
			add(withID(Acquire, "work", 0, "c"), admitted("slots", 0)), "ACQUIRE work ID c",
	},
	"a released slot that is not free": {
		newHistory(quotas).add(withID(Acquire, "work", 0, "a"), admitted("slots", 1)).add(withID(Release, "", 0, "a"), done(1)).
			add(withID(Acquire, "work", 0, "b"), admitted("slots", 0)), "ACQUIRE work ID b",
	},
	"another limit is named than that with the least left": {
		newHistory(quotas).check("call", 1, admitted("ten", 9)), "admitted by ten, 9 left",
	},
	"a peek that takes": {
		newHistory(quotas).add(Call{Kind: Peek, Op: "-", Units: 2}, admitted("ten", 8)).add(Call{Kind: Peek, Op: "-", Units: 2}, admitted("ten", 6)), "6 left",
	},
}

// TestHandMade: right and wrong answers are distinguished, and a wrong answer is named,
// with no more than the state before it.
func TestHandMade(t *testing.T) {
	for name, c := range handMade {
		t.Run(name, func(t *testing.T) {
			got := FindOrder(&c.h.History, time.Minute)
			e, stuck := Explain(&c.h.History)
			if c.stuck == "" {
				if got != (Result{}) || stuck {
					t.Fatalf("%+v\n%s", got, &e)
				}
				return
			}
			if got.Verdict != Unexplained || !stuck || !strings.Contains(e.Stuck.String(), c.stuck) || len(e.Smallest) > 2 || len(e.States) == 0 {
				t.Fatalf("%+v\n%s", got, &e)
			}
		})
	}
}

// over adds an event of the store for the whole of the time between two operations.
func (h *testHistory) over(k Kind) *testHistory { return h.add(Call{Kind: k}, Answer{Known: true}) }

// TestLosses: a failover loses the last changes, no others, and the fewest are counted; a
// store that was emptied loses all.
func TestLosses(t *testing.T) {
	begin := func() *testHistory {
		return newHistory(quotas).check("-", 1, admitted("ten", 9)).check("-", 2, admitted("ten", 7)).check("-", 3, admitted("ten", 4))
	}
	for name, c := range map[string]struct {
		h    *testHistory
		want Result
	}{
		"nothing":                    {begin().over(Failover).check("-", 1, admitted("ten", 3)), Result{}},
		"the last":                   {begin().over(Failover).check("-", 1, admitted("ten", 6)), Result{Lost: 1}},
		"the last two":               {begin().over(Failover).check("-", 1, admitted("ten", 8)), Result{Lost: 2}},
		"one in between":             {begin().over(Failover).check("-", 1, admitted("ten", 5)), Result{Verdict: Unexplained}},
		"the last, without failover": {begin().check("-", 1, admitted("ten", 6)), Result{Verdict: Unexplained}},
		"the last, and once more":    {begin().over(Failover).check("-", 1, admitted("ten", 6)).check("-", 1, admitted("ten", 6)), Result{Verdict: Unexplained}},
		"a settlement": {
			newHistory(quotas).add(withID(Reserve, "-", 5, "r"), admitted("ten", 5)).add(withID(Cancel, "", 0, "r"), done(1)).over(Failover).
				check("-", 1, admitted("ten", 4)).add(withID(Cancel, "", 0, "r"), done(1)).check("-", 1, admitted("ten", 8)), Result{Lost: 1},
		},
		"all":             {begin().over(Emptied).check("-", 1, admitted("ten", 9)), Result{Lost: 3}},
		"not all of all":  {begin().over(Emptied).check("-", 1, admitted("ten", 8)), Result{Verdict: Unexplained}},
		"nothing, of all": {begin().over(Emptied).check("-", 1, admitted("ten", 3)), Result{Verdict: Unexplained}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FindOrder(&c.h.History, time.Minute); got != c.want {
				e, _ := Explain(&c.h.History)
				t.Errorf("got %+v, want %+v\n%s", got, c.want, &e)
			}
		})
	}
}

// TestSlotsMove: while hash slots move, the store may have no record of a check, which is
// then charged again; that is counted. The answer to a reservation reports whether it is
// recorded.
func TestSlotsMove(t *testing.T) {
	h := newHistory(quotas).add(withID(Check, "-", 3, "i"), lostAnswer).add(withID(Check, "-", 3, "i"), admitted("ten", 4))
	h.SlotsMove = true
	if got := FindOrder(&h.History, time.Minute); got != (Result{Forgot: true}) {
		t.Errorf("a check that was not kept: %+v", got)
	}
	unrecorded := admitted("ten", 7)
	unrecorded.Unrecorded = true
	h = newHistory(quotas).add(withID(Reserve, "-", 3, "r"), unrecorded).add(withID(Commit, "", 3, "r"), done(1))
	if got := FindOrder(&h.History, time.Minute); got.Verdict != Unexplained {
		t.Errorf("what is not kept was settled: %+v", got)
	}
}

// TestDoubt: a search that takes too long is undecided.
func TestDoubt(t *testing.T) {
	h := newHistory(quotas)
	for range 24 {
		h.check("-", 1, lostAnswer)
	}
	for i := range 200 {
		h.check("-", 10, denied("ten", int64(1+i%2))) // 9 are taken, then 8, then 9
	}
	if got := FindOrder(&h.History, 10*time.Millisecond); got.Verdict != Undecided {
		t.Errorf("%+v", got)
	}
}

// TestSaved: a history without an order is saved with all of its operations, and drawn.
func TestSaved(t *testing.T) {
	h := handMade["a refund that is lost"].h
	path, summary, err := h.Save(t.TempDir())
	if err != nil || !strings.HasSuffix(path, "acme.txt") {
		t.Fatal(path, err)
	}
	const want = `no order of whole decisions explains the answer of
  0.003000 s  0.004000 s  client 0: CHECK - 1 -> admitted by ten, 4 left
the smallest history without an order (sent, received):
  0.003000 s  0.004000 s  client 0: CHECK - 1 -> admitted by ten, 4 left
from the states that were possible before it:
  ten: 0 of 10 taken; four: 0 of 4 taken; slots: 0 of 2 taken; RESERVE ID r cancelled
`
	if summary != want {
		t.Errorf("got\n%s\nwant\n%s", summary, want)
	}
}

// TestOrderOfCalls: the order in which the operations are listed makes no difference.
func TestOrderOfCalls(t *testing.T) {
	h := handMade["slots are held until they are released"].h.History
	h.Operations = slices.Clone(h.Operations)
	slices.Reverse(h.Operations)
	if got := FindOrder(&h, time.Minute); got != (Result{}) {
		t.Errorf("%+v", got)
	}
}
