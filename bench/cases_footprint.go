package bench

import (
	"context"
	"errors"
	"time"

	"github.com/limitgate/limitgate/internal/load"
)

func footprintCases() []Case {
	return []Case{
		{
			Name: "memory-million", Title: "memory store, 1M tenants, Zipf(1.1): memory and pauses",
			About: "Each of a million tenants sends one check, then all send checks by Zipf's law, pipeline 16. Memory is " +
				"the peak of the process (`VmHWM`); the pause is the longest of the collector's last 256 " +
				"(`go_gc_duration_seconds` of `/metrics`).",
			run: runMemoryMillion,
		},
		{
			Name: "idle-connections", Title: "10,000 idle connections",
			About: "The growth of the proxy's resident memory, after each connection has made one check and is idle. " +
				"The live heap and the stacks are by the proxy's own account, after a collection of garbage (`/metrics`).",
			run: runIdle,
		},
		{
			Name: "idle-connections-tls", Title: "10,000 idle connections by TLS",
			About: "The same with `--tls-cert`. Beyond the live heap and the stacks, resident memory is mostly garbage of " +
				"the handshakes: with the proxy's `GOGC` of 400 it may be four times the live heap. The last figure is that of a " +
				"proxy whose `GOMEMLIMIT` leaves little room for it.",
			run: runIdleTLS,
		},
		{
			Name: "bucket-bytes", Title: "bytes per bucket in Redis",
			About: "`MEMORY USAGE` is the mean of 2,000 random keys, without the entry by which Redis expires a key. " +
				"`used_memory` is the growth of the whole server.",
			run: runBucketBytes,
		},
	}
}

func runMemoryMillion(ctx context.Context, l *lab) (*Result, error) {
	t := traffic{conns: 50, pipeline: 16, fill: manyTenants, keys: func() load.Keys { return load.Zipf(manyTenants, zipfExponent) }}
	l.say("asking for each tenant once")
	d, err := gate{traffic: t}.open(ctx, l, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.close() }()
	l.say("asking by Zipf's law")
	rounds := 1 + l.settings.Rounds
	s, err := d.round(ctx, time.Duration(float64(rounds)*l.settings.RoundSeconds*float64(time.Second)))
	if err != nil {
		return nil, err
	}
	peak, err := procMemory(d.parts.proxy[0], "VmHWM")
	if err != nil {
		return nil, err
	}
	metrics, err := newAdmin(d.proxy, nil).metrics(ctx)
	if err != nil {
		return nil, err
	}
	pause, found := metrics[`go_gc_duration_seconds{quantile="1"}`]
	if !found {
		return nil, errors.New("read metrics: no go_gc_duration_seconds")
	}
	return &Result{
		Sides:  []SideResult{summarize("limitgate", []*sample{s})},
		Others: s.others,
		Figures: []Figure{
			Figure{Name: "resident memory at most", Unit: MiB, Value: once(float64(peak) / (1 << 20)), Goal: atMost(300)}.judge(),
			Figure{Name: "longest pause for garbage", Unit: Milliseconds, Value: once(pause * 1e3), Goal: atMost(5)}.judge(),
			{Name: "buckets", Unit: Count, Value: once(metrics["limitgate_memory_buckets"])},
			{Name: "decisions by overflow buckets", Unit: Count, Value: once(metrics["limitgate_memory_overflows_total"])},
		},
	}, nil
}
