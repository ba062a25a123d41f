package judge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// lab is a set of stores that histories run on.
type lab struct {
	single, cluster *servers
}

func newLab(tb testing.TB) *lab {
	tb.Helper()
	return &lab{startServers(tb, 1), startServers(tb, 3)}
}

type named struct {
	name   string
	way    way
	engine engine
}

// engines draws in what ways the stores are asked.
func (l *lab) engines(r *rand.Rand) []named {
	if l == nil {
		return nil
	}
	draw := func() way {
		return way{cache: chance(r, 3), batch: one(r, []int{1, 2, 8, 64}), begin: chance(r, 2)}
	}
	m, s, c := draw(), draw(), draw()
	return []named{
		{"memory", m, memoryEngine(m)},
		{"redis", s, l.single.engine(s)},
		{"cluster", c, l.cluster.engine(c)},
	}
}

// truth returns the answers of the reference, with the buckets that the memory store saw.
func truth(h *history) []answer {
	plain := memoryEngine(plain).run(h)
	answers := referenceEngine{}.run(h)
	for i := range min(len(plain), len(answers)) {
		answers[i].buckets = plain[i].buckets
	}
	return answers
}

// report returns a history with what was answered wrongly.
func report(h *history, n named) string {
	want, got := truth(h), n.engine.run(h)
	m := compare(h, want, got, n.way)
	note := func(i int) string {
		switch {
		case i >= len(got) || h.steps[i].kind == advance || h.steps[i].kind == reload:
			return ""
		case got[i].String() == want[i].String():
			return got[i].String()
		}
		return got[i].String() + " (" + want[i].String() + ")"
	}
	text := fmt.Sprintf("# %s, %s\n", n.name, n.way)
	if m != nil {
		text += fmt.Sprintf("# %s: %s\n", h.steps[m.step].String(), m.text)
	}
	return text + h.text(note)
}

func TestHistories(t *testing.T) {
	seed := storetest.Seed(t)
	var l *lab
	if os.Getenv("JUDGE_ONLY") == "" {
		l = newLab(t)
	}
	end := time.Now().Add(30 * time.Second)
	decisions, histories, wrong := int64(0), 0, 0
	for time.Now().Before(end) && wrong < 6 {
		histories++
		r := rand.New(rand.NewPCG(seed, uint64(histories)))
		h, err := drawHistory(r, 300)
		if err != nil {
			t.Fatal(err)
		}
		if cut := undecided(&h.history, h.answers); cut >= 0 {
			h.steps, h.answers = h.steps[:cut], h.answers[:cut]
		}
		decisions += h.decisions()
		want := referenceEngine{}.run(&h.history)
		for i := range want {
			want[i].buckets = h.answers[i].buckets
		}
		for _, e := range append([]named{{"memory", plain, memoryEngine(plain)}}, l.engines(r)...) {
			got := e.engine.run(&h.history)
			if m := compare(&h.history, want, got, e.way); m != nil {
				wrong++
				small := shrink(h, 10*time.Second, func(h *history) bool {
					want := truth(h)
					return undecided(h, want) < 0 && compare(h, want, e.engine.run(h), e.way) != nil
				})
				t.Errorf("history %d:\n%s", histories, report(small, e))
				break
			}
		}
	}
	t.Logf("%d decisions in %d histories", decisions, histories)
}
