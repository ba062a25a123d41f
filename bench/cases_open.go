package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/limitgate/limitgate/internal/load"
	"github.com/limitgate/limitgate/internal/servers"
)

func openCases() []Case {
	var cases []Case
	for _, thousands := range []int{5, 20} {
		t := uniform(50, 1)
		t.rate = float64(thousands) * 1000
		cases = append(cases, compare("open-"+strconv.Itoa(thousands)+"k",
			fmt.Sprintf("open loop, %d,000 a second on the cluster", thousands),
			"Requests are sent at fixed instants over 50 connections, and latency counts from the instant at which a "+
				"request was due. The yardstick is the script sent to the cluster at the same rate.",
			gate{kind: onCluster, traffic: t}.side(), gcra(onCluster, t),
			addedP50(nil), addedP99(nil), p999Ratio()))
	}
	return append(cases, Case{
		Name: "failover", Title: "open loop with a failover of a primary",
		About: "10,000 requests a second in an open loop on a cluster with replicas, and Limitgate with its defaults. After a third of " +
			"the time, `kill -9` ends one of three primaries. Until the replica takes over, the proxy decides for its tenants without the " +
			"store, by its share of the limit (source `backstop`). \"During\" ends when at most one decision in a hundred has that source " +
			"for a second. The cluster declares a node dead after a second, and serves the slots of the others meanwhile.",
		run: runFailover,
	})
}

func p999Ratio() want {
	return want{"p99.9", Ratio, func(a, b *sample) float64 { return a.p999 / b.p999 }, nil}
}

const (
	failoverRate  = 10_000
	failoverSlice = 100 * time.Millisecond
)

// failoverLength is the duration of the case.
func (l *lab) failoverLength() time.Duration {
	if l.settings.Quick {
		return 6 * time.Second
	}
	return time.Minute
}

func runFailover(ctx context.Context, l *lab) (_ *Result, err error) {
	l.say("starting a cluster with replicas")
	folder, err := l.newFolder()
	if err != nil {
		return nil, err
	}
	cluster, err := servers.StartCluster(ctx, folder, masters, 1,
		"--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	proxy, err := l.start(oneLimit, &backend{nodes: cluster.Nodes})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	t := uniform(50, 1)
	generator, err := load.Dial(load.Options{
		Targets: []load.Target{{Addr: proxy.Addr, Conns: t.conns, Keys: t.keys()}},
		Request: gate{}.request(), Shape: load.Decision, Pipeline: 1,
	})
	if err != nil {
		return nil, err
	}
	defer generator.Close()
	l.say("%v with a primary killed after a third", l.failoverLength())
	return failOver(ctx, generator, cluster.Nodes[0], l.failoverLength())
}

// failOver makes load, kills the node, and returns the outcome of the load.
func failOver(ctx context.Context, generator *load.Generator, node *servers.Node, length time.Duration) (*Result, error) {
	killed := make(chan error, 1)
	killAt := length / 3
	timer := time.AfterFunc(killAt, func() { killed <- node.Kill() })
	defer timer.Stop()
	outcome, err := generator.Run(ctx, load.Load{Duration: length, Rate: failoverRate, Slice: failoverSlice})
	if err != nil {
		return nil, err
	}
	if err := <-killed; err != nil {
		return nil, err
	}
	return failoverResult(outcome, int(killAt/failoverSlice)), nil
}

// recoveredSlices is the number of consecutive good slices after a recovery.
const recoveredSlices = int(time.Second / failoverSlice)

// recovery returns the slice of the recovery: the first after the kill that begins a
// second of slices in which at most one decision in a hundred was made without the store.
// On a busy machine there are always a few.
func recovery(o *load.Outcome, kill int) int {
	end := kill + 1
	for i := kill; i < len(o.Slices) && i < end+recoveredSlices; i++ {
		if s := &o.Slices[i]; 100*(s.From("backstop")+s.Errors) > s.Replies {
			end = i + 1
		}
	}
	return end
}

// failoverResult makes figures of the slices before the kill, from there to the recovery,
// and after that.
func failoverResult(o *load.Outcome, kill int) *Result {
	end := recovery(o, kill)
	r := &Result{Figures: []Figure{
		Figure{Name: "error replies", Unit: Count, Value: once(float64(o.Errors)), Goal: exactly(0)}.judge(),
		{
			Name: "from the kill until the store decides all again", Unit: Milliseconds,
			Value: once(float64((time.Duration(end-kill) * failoverSlice).Milliseconds())),
		},
	}}
	for _, phase := range []struct {
		name        string
		first, last int
	}{{"before", 0, kill}, {"during", kill, end}, {"after", end, len(o.Slices)}} {
		s := o.Merge(phase.first, phase.last)
		r.Figures = append(r.Figures,
			Figure{Name: phase.name + ": decisions", Unit: Count, Value: once(float64(s.Replies))},
			Figure{Name: phase.name + ": without the store", Unit: Count, Value: once(float64(s.From("backstop")))},
			Figure{Name: phase.name + ": p50", Unit: Milliseconds, Value: once(milliseconds(s.Latency.ValueAtQuantile(50)))},
			Figure{Name: phase.name + ": p99", Unit: Milliseconds, Value: once(milliseconds(s.Latency.ValueAtQuantile(99)))},
			Figure{Name: phase.name + ": max", Unit: Milliseconds, Value: once(milliseconds(s.Latency.Max()))})
	}
	return r
}
