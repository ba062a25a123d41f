package bench

import (
	"context"
	"errors"
	"strconv"

	"github.com/limitgate/limitgate/internal/load"
)

// cellBurst is the max_burst of CL.THROTTLE. redis-cell counts in nanoseconds, which bounds it.
const cellBurst = 1_000_000

// redisCell is a side that sends CL.THROTTLE straight to a Redis with redis-cell.
func redisCell(t traffic) side {
	return side{name: "redis-cell", open: func(ctx context.Context, l *lab) (driver, error) {
		store, err := l.withModule(ctx)
		if err != nil {
			return nil, err
		}
		return openDirect(ctx, store, t, load.NewRequest("CL.THROTTLE", tenantWord, strconv.Itoa(cellBurst), "1", "1"), load.Throttle)
	}}
}

// withModule returns a Redis with redis-cell.
func (l *lab) withModule(ctx context.Context) (*backend, error) {
	if l.cellModule == "" {
		return nil, errors.New("start redis-cell: its module is missing: for example --redis-cell /usr/lib/redis/libredis_cell.so")
	}
	if l.cell == nil {
		b, err := l.ownRedis("--loadmodule", l.cellModule)
		if err != nil {
			return nil, err
		}
		l.cell = b
	}
	return l.cell, l.cell.empty(ctx)
}

// cellCases run only when they are named, for they need the module.
func cellCases() []Case {
	const about = "Exact decisions on one Redis beside the same client sending `CL.THROTTLE` to a Redis with redis-cell, a module in Rust " +
		"that keeps one key for each bucket. Both admit and deny by a token bucket for each tenant. A module is not for every Redis: " +
		"most managed ones load none."
	pair := func(name, title string, t traffic) Case {
		c := compare(name, title, about, gate{kind: onRedis, traffic: t}.side(), redisCell(t), throughput(nil), serverCPU(nil), storeCPU(nil), p99Ratio(nil))
		c.Aside = true
		return c
	}
	return []Case{
		pair("redis-cell-p16", "redis-cell, pipeline 16", uniform(50, 16)),
		pair("redis-cell-p1", "redis-cell, pipeline 1, 50 connections", uniform(50, 1)),
		pair("redis-cell-zipf-p16", "redis-cell, Zipf(1.1), pipeline 16", zipf(50, 16)),
	}
}
