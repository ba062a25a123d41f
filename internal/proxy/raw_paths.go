package proxy

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

const (
	// rawPathsPause is the interval at which operations are compared: that of a window of limiter.Top.
	rawPathsPause = 10 * time.Second
	// rawPathsQuiet is the shortest time between two warnings.
	rawPathsQuiet = time.Hour
	// manyRawPaths is the number of operations with one route from which on they are reported. An API may
	// have a few that differ in numbers, such as /2024/report and /2025/report, and hardly so many.
	manyRawPaths = 64
	// comparedOps bounds the operations that are compared; limiter.Top has fewer.
	comparedOps = 1024
)

// watchRawPaths warns when requests have raw paths as operations: limits by op count each apart then, so
// that no caller meets them.
func (p *Proxy) watchRawPaths(ctx context.Context) error {
	for pause := rawPathsPause; run.Sleep(ctx, pause); {
		route, example, n := rawPaths(p.limiter.Top(comparedOps).Operations)
		if pause = rawPathsPause; n < manyRawPaths || !countsByOp(p.limits.Set()) {
			continue
		}
		p.log.Warn("many ops differ in numbers alone, and limits by op count each apart: send the template of the route as op, not the path", "ops", n, "route", route, "example", example)
		pause = rawPathsQuiet
	}
	return nil
}

// countsByOp reports whether a limit counts by op.
func countsByOp(set *limit.Set) bool {
	return slices.ContainsFunc(set.Limits, func(l *limit.Limit) bool {
		return l.Mode != limit.ModeOff && slices.Contains(l.Level(), "op")
	})
}

// rawPaths returns the route that most of the operations would have without the numbers in their paths, how
// many have it, and one of them.
func rawPaths(ops []limiter.HotOperation) (route, example string, n int) {
	examples, counts := map[string]string{}, map[string]int{}
	for i := range ops {
		op := ops[i].Operation
		r := routeOf(op)
		if r == op {
			continue
		}
		if counts[r]++; counts[r] == 1 {
			examples[r], _, _ = strings.Cut(op, "?") // queries have secrets
		}
		if counts[r] > n {
			route, n = r, counts[r]
		}
	}
	return route, examples[route], n
}

// routeOf returns an operation with {id} in place of each segment of its path that has a digit, but not of a
// version such as v1. A query is cut off.
func routeOf(op string) string {
	begin := strings.IndexByte(op, '/')
	if begin < 0 {
		return op
	}
	path, _, _ := strings.Cut(op[begin:], "?")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.ContainsAny(s, "0123456789") && !isVersion(s) {
			segments[i] = "{id}"
		}
	}
	return op[:begin] + strings.Join(segments, "/")
}

// isVersion reports whether a segment is v and at most two digits.
func isVersion(s string) bool {
	return len(s) >= 2 && len(s) <= 3 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}
