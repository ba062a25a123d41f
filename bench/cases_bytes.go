package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// slowLimit is a limits file whose only limit refills so slowly that every bucket
// outlives the case.
func slowLimit(id, by, more string) string {
	return fmt.Sprintf("version: 1\ndefault_plan: bench\nplans:\n  bench:\n"+
		"    - {id: %s, by: [%s], rate: 10/h, on_error: open%s}\n", id, by, more)
}

// form is a kind of bucket.
type form struct {
	name   string
	limits string
	goal   *Goal
}

var forms = []form{
	{"token bucket by tenant", slowLimit("tenant", "tenant", ", burst: 1000"), atMost(105)},
	{"token bucket by tenant and op", slowLimit("op", "tenant, op", ", burst: 1000"), atMost(105)},
	{"sliding window by tenant and op", slowLimit("op", "tenant, op", ", algorithm: sliding_window"), nil},
}

const (
	// bucketBytesMany is a number of buckets for which the case needs the memory below.
	bucketBytesMany = 10_000_000
	memoryForMany   = 8 << 30
	sampledKeys     = 2000
)

func runBucketBytes(ctx context.Context, l *lab) (*Result, error) {
	n := manyTenants
	if l.settings.Quick {
		n /= 10
	}
	r := new(Result)
	for _, f := range forms {
		if err := measureForm(ctx, l, f, n, r); err != nil {
			return nil, err
		}
	}
	if !l.settings.Quick && memInfo("MemAvailable") > memoryForMany {
		if err := measureForm(ctx, l, forms[0], bucketBytesMany, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// measureForm fills a Redis with n buckets of a form, and appends the figures.
func measureForm(ctx context.Context, l *lab, f form, n int, r *Result) (err error) {
	l.say("%s: %s keys", f.name, grouped(float64(n)))
	store, err := l.ownRedis()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.nodes[0].Close()) }()
	before, err := usedMemory(ctx, store)
	if err != nil {
		return err
	}
	g := gate{kind: onRedis, limits: f.limits, op: operation, traffic: uniform(1, 1)}
	g.traffic.fill = n
	d, err := g.open(ctx, l, store)
	if err != nil {
		return err
	}
	if err := d.close(); err != nil {
		return err
	}
	after, err := usedMemory(ctx, store)
	if err != nil {
		return err
	}
	each, err := meanMemoryUsage(ctx, store.nodes[0].Client())
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %s keys: ", f.name, grouped(float64(n)))
	r.Figures = append(r.Figures,
		Figure{Name: name + "MEMORY USAGE", Unit: Bytes, Value: once(each), Goal: f.goal}.judge(),
		Figure{Name: name + "used_memory", Unit: Bytes, Value: once(float64(after-before) / float64(n))})
	return nil
}

func usedMemory(ctx context.Context, store *backend) (int64, error) {
	fields, err := store.nodes[0].Fields(ctx, "INFO", "memory")
	if err != nil {
		return 0, err
	}
	var n int64
	if _, err := fmt.Sscan(fields["used_memory"], &n); err != nil {
		return 0, fmt.Errorf("read used memory: %w", err)
	}
	return n, nil
}

// meanMemoryUsage returns the mean MEMORY USAGE of random keys.
func meanMemoryUsage(ctx context.Context, client *redis.Client) (mean float64, err error) {
	defer func() { err = errors.Join(err, client.Close()) }()
	pipeline := client.Pipeline()
	names := make([]*redis.StringCmd, sampledKeys)
	for i := range names {
		names[i] = pipeline.RandomKey(ctx)
	}
	if _, err := pipeline.Exec(ctx); err != nil {
		return 0, fmt.Errorf("pick keys: %w", err)
	}
	sizes := make([]*redis.IntCmd, sampledKeys)
	for i, name := range names {
		sizes[i] = pipeline.MemoryUsage(ctx, name.Val(), 0)
	}
	if _, err := pipeline.Exec(ctx); err != nil {
		return 0, fmt.Errorf("ask for memory usage: %w", err)
	}
	sum := int64(0)
	for _, size := range sizes {
		sum += size.Val()
	}
	return float64(sum) / sampledKeys, nil
}
