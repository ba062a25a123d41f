package httpapi_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestRunEndsAtOnce: Run returns if its context has ended before it serves.
func TestRunEndsAtOnce(t *testing.T) {
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		ended := make(chan error, 1)
		s := httpapi.New(httpapi.Options{Handler: new(recorder), Log: slog.New(slog.DiscardHandler), ShutdownTimeout: time.Second})
		go func() { ended <- s.Run(ctx, httpapi.Bound(l)) }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("Run does not return")
		}
	}
}

// faulty is a store that panics once.
type faulty struct {
	limiter.Store
	broken bool
}

func (f *faulty) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(uint64), token uint64) func() bool {
	if f.broken {
		f.broken = false
		panic("a fault")
	}
	return f.Store.Start(at, items, calls, done, token)
}

// TestPanicLeavesNothing: the request after one that has panicked gets its own decision.
func TestPanicLeavesNothing(t *testing.T) {
	set, _, err := config.ParseLimits("limits.yaml", []byte("version: 1\ndefault_plan: p\nplans: {p: [{id: a, by: [tenant], rate: 20/h, on_error: open}]}\n"), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store := &faulty{Store: memory.New(memory.Options{})}
	l := limiter.New(limiter.Options{Store: store, Timeout: time.Second}, set)
	h := commands.NewHandler(commands.Options{Limiter: l})
	addr := serve(t, httpapi.Options{Handler: h})
	for n := range 20 {
		store.broken = true
		if got := answer(t, addr, parseRequest(t, addr, `POST /v1/check {"tenant":"victim","cost":15}`)); got[:3] != "500" {
			t.Fatalf("with a fault: %s", got)
		}
		got := answer(t, addr, parseRequest(t, addr, `GET /v1/peek?tenant=other`))
		const want = `"limit":20,"remaining":19,`
		if !strings.Contains(got, want) {
			t.Fatalf("%d, after a fault: %s, want %s", n, got, want)
		}
	}
}
