package bench

import (
	"context"
	"fmt"

	"github.com/limitgate/limitgate/internal/load"
)

// idleConns is the number of idle connections.
const idleConns = 10_000

// idleLimit is a GOMEMLIMIT that leaves idleConns connections by TLS little room for
// garbage.
const idleLimit = "GOMEMLIMIT=230MiB"

func runIdle(ctx context.Context, l *lab) (*Result, error) {
	figures, err := measureIdle(ctx, l, gate{}, idleConns)
	if err != nil {
		return nil, err
	}
	figures[0].Goal = atMost(20)
	figures[0] = figures[0].judge()
	return &Result{Figures: figures}, nil
}

func runIdleTLS(ctx context.Context, l *lab) (*Result, error) {
	conns := idleConns
	if l.settings.Quick { // handshakes take most of the time
		conns /= 10
	}
	figures, err := measureIdle(ctx, l, gate{tls: true}, conns)
	if err != nil {
		return nil, err
	}
	limited, err := measureIdle(ctx, l, gate{tls: true, environment: []string{idleLimit}}, conns)
	if err != nil {
		return nil, err
	}
	limited[0].Name += ", " + idleLimit
	return &Result{Figures: append(figures, limited[0])}, nil
}

// footprint is the memory of a proxy in bytes.
type footprint struct {
	resident int64 // by the kernel's account, before the collection
	// heap and stacks are the live objects and the stacks of goroutines after a
	// collection, by the proxy's own account.
	heap, stacks float64
}

// measureIdle opens connections to a proxy, each of which makes one check, and returns how
// much memory they cost, the resident memory first.
func measureIdle(ctx context.Context, l *lab, g gate, conns int) ([]Figure, error) {
	secured, err := g.secure(l)
	if err != nil {
		return nil, err
	}
	flags := append(secured.flags, "--pprof", "--max-conns", fmt.Sprint(conns+10))
	proxy, err := l.startWith(g.environment, oneLimit, nil, flags...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = proxy.Close() }()
	before, err := readFootprint(ctx, proxy.PID(), newAdmin(proxy, secured.tls))
	if err != nil {
		return nil, err
	}
	l.say("opening connections")
	generator, err := load.Dial(secured.options(load.Options{
		Targets: []load.Target{{Addr: proxy.Addr, Conns: conns, Keys: load.Uniform(tenants)}},
		Request: g.request(), Shape: load.Decision, Pipeline: 1,
	}))
	if err != nil {
		return nil, fmt.Errorf("open %d connections: %w", conns, err)
	}
	defer generator.Close()
	outcome, err := generator.Run(ctx, load.Load{Requests: int64(conns)})
	if err != nil {
		return nil, err
	}
	if outcome.Admitted != int64(conns) {
		return nil, fmt.Errorf("check replies: %d of %d connections were answered well", outcome.Admitted, conns)
	}
	after, err := readFootprint(ctx, proxy.PID(), newAdmin(proxy, secured.tls))
	if err != nil {
		return nil, err
	}
	return idleFigures(before, after, conns), nil
}

func readFootprint(ctx context.Context, pid int, a *admin) (f footprint, err error) {
	if f.resident, err = procMemory(pid, "VmRSS"); err != nil {
		return f, err
	}
	if err := a.collect(ctx); err != nil {
		return f, err
	}
	metrics, err := a.metrics(ctx)
	if err != nil {
		return f, err
	}
	f.heap, f.stacks = metrics["go_memstats_heap_alloc_bytes"], metrics["go_memstats_stack_inuse_bytes"]
	return f, nil
}

func idleFigures(before, after footprint, conns int) []Figure {
	each := func(name string, growth float64) Figure {
		return Figure{Name: name + " per connection", Unit: KiB, Value: once(growth / float64(conns) / (1 << 10))}
	}
	return []Figure{
		each("resident memory", float64(after.resident-before.resident)),
		each("live heap", after.heap-before.heap),
		each("stacks", after.stacks-before.stacks),
		{Name: "resident memory without connections", Unit: MiB, Value: once(float64(before.resident) / (1 << 20))},
	}
}
