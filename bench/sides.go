package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/internal/load"
)

// tenantWord is the name of a tenant, and of the yardsticks' keys.
const tenantWord = "t" + load.Hole

// The limit of the cases that compare speed: one unit a second, and a burst that no run
// uses up. Every request is thus admitted, and buckets with more than one request a
// second are never full, like those of busy tenants.
const (
	unitMicros = 1_000_000
	burst      = 1_000_000_000
)

// oneLimit is a limits file with one token bucket for each tenant.
var oneLimit = fmt.Sprintf(`version: 1
default_plan: bench
plans:
  bench:
    - {id: tenant, by: [tenant], rate: 1/s, burst: %d, on_error: open}
`, burst)

// twoLimits adds one for each operation of a tenant.
var twoLimits = oneLimit + fmt.Sprintf("    - {id: op, by: [tenant, op], rate: 1/s, burst: %d, on_error: open}\n", burst)

// fixedLimits has a bucket for each tenant, and one for each of its declared operations, which is a
// field of the same key.
var fixedLimits = fmt.Sprintf("version: 1\ndimensions:\n  op: {values: [%q]}\n", operation) +
	strings.TrimPrefix(twoLimits, "version: 1\n")

// operation is the op of requests that have one.
const operation = "GET /v1/things"

// kind is the kind of store of a side.
type kind int

const (
	inMemory kind = iota
	onRedis
	onCluster
)

func (l *lab) backend(ctx context.Context, k kind) (*backend, error) {
	switch k {
	case onRedis:
		return l.single(ctx)
	case onCluster:
		return l.clustered(ctx)
	default:
		return nil, nil
	}
}

// gate is a side that is Limitgate.
type gate struct {
	name     string
	kind     kind
	limits   string // default oneLimit
	flags    []string
	op       string // default none
	traffic  traffic
	verdicts verdicts
	// environment is added to this process's environment for the proxy.
	environment []string
	// tls and users are the ways in which the clients' connections are secured.
	tls, users bool
}

func (g gate) request() *load.Request {
	op := "-"
	if g.op != "" {
		op = g.op
	}
	return load.NewRequest("RL.CHECK", tenantWord, op, "-", "1")
}

// side returns the side.
func (g gate) side() side {
	name := "limitgate"
	if g.name != "" {
		name = g.name
	}
	return side{name: name, open: func(ctx context.Context, l *lab) (driver, error) {
		store, err := l.backend(ctx, g.kind)
		if err != nil {
			return nil, err
		}
		return g.open(ctx, l, store)
	}}
}

func (g gate) open(ctx context.Context, l *lab, store *backend) (*loadDriver, error) {
	limits := g.limits
	if limits == "" {
		limits = oneLimit
	}
	secured, err := g.secure(l)
	if err != nil {
		return nil, err
	}
	proxy, err := l.startWith(g.environment, limits, store, slices.Concat(patience, g.flags, secured.flags)...)
	if err != nil {
		return nil, err
	}
	d := &loadDriver{proxy: proxy, secured: secured, verdicts: g.verdicts, parts: parts{client: self(), proxy: []int{proxy.PID()}}}
	if store != nil {
		d.parts.store, d.store = store.pids(), store
	}
	target := load.Target{Addr: proxy.Addr, Conns: g.traffic.conns, Keys: g.traffic.keys()}
	if err := d.connect(ctx, g.traffic, g.request(), load.Decision, []load.Target{target}); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

// direct is a side that sends one command for each decision straight to Redis, with a
// client of minimal cost. On a cluster it knows the hash slots: each of its connections
// leads to one node and sends the keys of that node, so that no pipeline is ever split.
func direct(name string, k kind, t traffic, request *load.Request) side {
	return side{name: name, open: func(ctx context.Context, l *lab) (driver, error) {
		store, err := l.backend(ctx, k)
		if err != nil {
			return nil, err
		}
		return openDirect(ctx, store, t, request, load.Integer)
	}}
}

func openDirect(ctx context.Context, store *backend, t traffic, request *load.Request, reply load.Shape) (driver, error) {
	d := &loadDriver{store: store, parts: parts{client: self(), store: store.pids()}}
	if err := d.connect(ctx, t, request, reply, store.targets(t)); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

// targets divides the keys and the connections among the nodes that own keys.
func (b *backend) targets(t traffic) []load.Target {
	var targets []load.Target
	for i, keys := range t.keys().Route(tenantWord, b.owner, len(b.nodes)) {
		if len(keys) > 0 {
			targets = append(targets, load.Target{Addr: b.nodes[i].Addr, Keys: keys})
		}
	}
	for i := range targets {
		targets[i].Conns = share(t.conns, len(targets), i)
	}
	return targets
}

// incr is INCR on one Redis: not a limiter, but the speed of the fastest counter.
func incr(t traffic) side {
	return direct("redis INCR", onRedis, t, load.NewRequest("INCR", tenantWord))
}

// gcra is the cheapest script that decides one check.
func gcra(k kind, t traffic) side {
	name := "EVALSHA to Redis"
	if k == onCluster {
		name = "EVALSHA to the cluster"
	}
	return direct(name, k, t, load.NewRequest(append([]string{"EVALSHA", gcraSHA, "1", tenantWord}, gcraArgs()...)...))
}

// gcraArgs are the arguments of the script for the limit of oneLimit.
func gcraArgs() []string {
	return []string{strconv.Itoa(unitMicros), strconv.Itoa(burst * unitMicros)}
}
