package linear

import (
	"math/rand/v2"
	"testing"
	"time"
)

// drawHistory draws concurrent calls of three clients, with the answers of a store that
// decides in an order of its own; some answers are missing, and up to wrong of them may
// be wrong.
func drawHistory(random *rand.Rand, wrong int) *History {
	h := &History{Tenant: "acme", Plan: quotas}
	m := h.model(0, 1<<40, excuse{})
	for _, id := range []string{"x", "y", "z", "r", "rx", "ry", "rz", "a", "ax", "ay", "az"} {
		m.ids[id] = idUse{2, 1 << 40} // a placeholder until the calls are known
	}
	s := m.first()
	unanswered := 0
	for at := int64(1000); len(h.Operations) < 30; at += 1 + random.Int64N(400) {
		o := Operation{Sent: at - random.Int64N(1000), Received: at + random.Int64N(1000), Client: random.IntN(3)}
		id := []string{"", "x", "y", "z"}[random.IntN(4)]
		o.Call = []Call{
			{Check, "call", 1 + random.Int64N(2), id},
			{Check, "-", 1, ""},
			{Peek, "call", 1, ""},
			{Reserve, "-", 2, "r" + id},
			{Commit, "", random.Int64N(4), "r" + id},
			{Cancel, "", 0, "r" + id},
			{Acquire, "work", 0, "a" + id},
			{Release, "", 0, "a" + id},
		}[random.IntN(8)]
		for _, a := range candidates() {
			o.Answer = a
			if next := m.step(s, &o); len(next) > 0 {
				s = next[0]
				break
			}
			o.Answer = Answer{}
		}
		if !o.Known {
			continue
		}
		if unanswered < 4 && random.IntN(8) == 0 {
			o.Answer = Answer{}
			unanswered++
		}
		h.Operations = append(h.Operations, o)
	}
	for range wrong {
		if o := &h.Operations[random.IntN(len(h.Operations))]; o.Known && !o.Kind.settles() {
			o.Left = max(0, o.Left-1+2*random.Int64N(2))
		}
	}
	return h
}

// candidates are all possible answers in quotas.
func candidates() []Answer {
	all := []Answer{done(1), done(2)}
	for _, l := range quotas {
		for left := range l.Capacity + 1 {
			all = append(all, admitted(l.ID, left), denied(l.ID, left))
		}
	}
	return all
}

// TestSearchesAgree: porcupine and the walk never contradict each other, and a history
// with right answers has an order.
func TestSearchesAgree(t *testing.T) {
	verdicts := map[Verdict]int{}
	for seed := range uint64(150) {
		h := drawHistory(rand.New(rand.NewPCG(seed, 3)), int(seed%3))
		e, stuck := Explain(h)
		got := FindOrder(h, time.Minute).Verdict
		if got == Undecided || stuck != (got == Unexplained) || seed%3 == 0 && stuck {
			t.Fatalf("seed %d: verdict %d, explained %t\n%s", seed, got, stuck, &e)
		}
		verdicts[got]++
	}
	if verdicts[Explained] < 50 || verdicts[Unexplained] < 25 {
		t.Errorf("verdicts: %v", verdicts)
	}
}
