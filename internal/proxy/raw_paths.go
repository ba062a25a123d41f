package proxy

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

const (
	// rawPathsPause is the interval at which operations are compared: that of a window of limiter.Top.
	rawPathsPause = 10 * time.Second
	// rawPathsQuiet is the time in which a route has one warning, and all routes have mostRawPaths: clients must not be able
	// to fill the log.
	rawPathsQuiet, mostRawPaths = time.Hour, 16
	// manyRawPaths is the number of operations with one route from which on they are reported. An API may
	// have a few that differ in numbers, such as /2024/report and /2025/report, and hardly so many.
	manyRawPaths = 64
	// comparedOps bounds the operations that are compared; limiter.Top has fewer.
	comparedOps = 1024
)

// watchRawPaths warns when requests have raw paths as operations: limits by op count each apart then, so
// that no caller meets them. The line has no path: addresses and secrets may be in it.
func (p *Proxy) watchRawPaths(ctx context.Context) error {
	warned := map[string]time.Time{} // when each route had its warning
	for run.Sleep(ctx, rawPathsPause) {
		maps.DeleteFunc(warned, func(_ string, at time.Time) bool { return time.Since(at) >= rawPathsQuiet })
		if len(warned) == mostRawPaths {
			continue
		}
		route, n := rawPaths(p.limiter.Top(comparedOps).Operations, limitsByOp(p.limits.Set()), warned)
		if n < manyRawPaths {
			continue
		}
		warned[route] = time.Now()
		p.log.Warn("many ops are paths of one route, and limits by op count each apart: send the template of the route as op", "ops", n, "route", route)
	}
	return nil
}

// limitsByOp returns the limits that count by op.
func limitsByOp(set *limit.Set) []*limit.Limit {
	return slices.DeleteFunc(slices.Clone(set.Limits), func(l *limit.Limit) bool { return !l.CountsOp() })
}

// rawPaths returns the route that most of the operations would have without the numbers in their paths, and
// how many have it, of those that one of the limits may apply to. Routes that were warned of are left out.
func rawPaths(ops []limiter.HotOperation, limits []*limit.Limit, warned map[string]time.Time) (route string, n int) {
	counts := map[string]int{}
	for i := range ops {
		op := ops[i].Operation
		r := limit.RouteOf(op)
		if _, quiet := warned[r]; quiet || r == op || !slices.ContainsFunc(limits, func(l *limit.Limit) bool { return l.MayCountOp(op) }) {
			continue
		}
		if counts[r]++; counts[r] > n {
			route, n = r, counts[r]
		}
	}
	return route, n
}
