package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// cpuTime is the duration of the load of each number of buckets.
	cpuTime = 700 * time.Millisecond
	// cpuBatch is the number of calls in a script: in the case cluster-p1 of the benchmark,
	// where requests come one by one on 50 connections, it is as many.
	cpuBatch = 5
)

// cpuBuckets are the numbers of buckets of a call that are measured.
var cpuBuckets = []int{1, 2, 4}

// cpuLimit is a limit that admits the whole load, and whose buckets expire within seconds.
var cpuLimit = &limit.Limit{Params: bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: 1, Capacity: 1_000_000}}

// CallCPU is the processor time that a master took for a call, sockets included.
type CallCPU struct {
	// Buckets is the number of buckets of a call, all in one string; Calls is the number of
	// calls that were made, PerScript in each script.
	Buckets   int           `json:"buckets"`
	Calls     int           `json:"calls"`
	PerScript int           `json:"per_script"`
	CPU       time.Duration `json:"cpu_ns"`
}

// measureCPU loads the master for cpuTime with calls of each number of buckets, on keys of its
// own.
func (m *masterInspection) measureCPU(ctx context.Context) ([]CallCPU, error) {
	if m.conn == nil || m.report.Probes.Write != Done {
		return nil, errors.New("the master takes no decisions, see the findings")
	}
	var all []CallCPU
	for _, n := range cpuBuckets {
		if _, err := m.load(ctx, n, time.Now().Add(cpuTime/10)); err != nil { // warm-up
			return nil, err
		}
		before, err := m.processorTime(ctx)
		if err != nil {
			return nil, err
		}
		calls, err := m.load(ctx, n, time.Now().Add(cpuTime))
		if err != nil {
			return nil, err
		}
		after, err := m.processorTime(ctx)
		if err != nil {
			return nil, err
		}
		if calls == 0 || after <= before {
			return nil, errors.New("INFO has no processor time of the load")
		}
		all = append(all, CallCPU{Buckets: n, Calls: calls, PerScript: cpuBatch, CPU: (after - before) / time.Duration(calls)})
	}
	return all, nil
}

// load makes calls of n buckets until a time, one batch after the other, and returns their number.
func (m *masterInspection) load(ctx context.Context, n int, until time.Time) (made int, err error) {
	b := m.encodeLoad(n)
	for time.Now().Before(until) {
		if err := m.exchange(ctx, b); err != nil {
			return made, err
		}
		made += cpuBatch
	}
	return made, nil
}

// encodeLoad returns a batch of calls of n buckets.
func (m *masterInspection) encodeLoad(n int) cluster.EncodedBatch {
	var calls [][]limit.Item
	for i := range cpuBatch {
		key := m.tags[i%len(m.tags)] + ":cpu" + strconv.Itoa(i)
		m.keys = append(m.keys, key)
		var items []limit.Item
		for field := range n {
			it := cluster.ProbeItem(key, ":f"+strconv.Itoa(field))
			it.Limit = cpuLimit
			items = append(items, it)
		}
		calls = append(calls, items)
	}
	return m.conn.Encode(calls...)
}

// exchange sends a batch and reads its replies.
func (m *masterInspection) exchange(ctx context.Context, b cluster.EncodedBatch) error {
	if !m.ready(ctx) {
		return fmt.Errorf("measure CPU: %w", context.Cause(ctx))
	}
	return m.conn.Exchange(b.Commands, b.Replies, func(_ int, words []string) error {
		for _, word := range words {
			if _, ok := resp.ParseNumber([]byte(word)); !ok {
				return fmt.Errorf("measure CPU: %w", resp.Error(word))
			}
		}
		return nil
	})
}

// processorTime returns the processor time that the thread of the master has taken which runs
// scripts, or that of the whole process if INFO has no other.
func (m *masterInspection) processorTime(ctx context.Context) (time.Duration, error) {
	info, err := m.client.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, fmt.Errorf("read INFO cpu: %w", err)
	}
	for _, suffix := range []string{"_main_thread", ""} {
		user, err1 := strconv.ParseFloat(infoField(info, "used_cpu_user"+suffix), 64)
		system, err2 := strconv.ParseFloat(infoField(info, "used_cpu_sys"+suffix), 64)
		if err1 == nil && err2 == nil {
			return time.Duration((user + system) * float64(time.Second)), nil
		}
	}
	return 0, errors.New("read INFO cpu: the server reports no processor time")
}
