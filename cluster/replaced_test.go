package cluster

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// failover is a store on a master and its replica, and what it logs.
type failover struct {
	*Store
	master, replica *redistest.Node
	log             *syncbuffer.Buffer
	outages         chan time.Duration
}

func openFailover(t *testing.T) *failover {
	t.Helper()
	f := &failover{master: redistest.Start(t), log: new(syncbuffer.Buffer), outages: make(chan time.Duration, 10)}
	f.replica = redistest.StartReplica(t, f.master)
	opts := Options{
		Addrs: []string{f.master.Addr, f.replica.Addr}, IOTimeout: 200 * time.Millisecond, DialTimeout: 200 * time.Millisecond, ToLoop: toLoop,
		Cooldown: 100 * time.Millisecond, OnOutage: func(d time.Duration) { f.outages <- d },
		Log: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	f.Store = running(t, s)
	return f
}

// checkUntil checks a tenant until done.
func (f *failover) checkUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"})
	redistest.Eventually(t, 20*time.Second, what, func() bool {
		askOf(f.Store, set, "t", 5*time.Millisecond)
		return done()
	})
}

// TestHungMasterIsKept: a master that hangs stays in the topology while its replica is a replica.
func TestHungMasterIsKept(t *testing.T) {
	f := openFailover(t)
	f.master.Stop()
	f.checkUntil(t, "five reloads after the breaker opens", func() bool {
		return len(f.Shards()) == 0 || f.Shards()[0].State != breaker.Closed && f.Stats().Reloads > 5
	})
	if all := f.Shards(); len(all) != 1 || all[0].Addr != f.master.Addr || f.NoMaster() != nil {
		t.Errorf("shards %+v, %v", all, f.NoMaster())
	}
	f.master.Cont()
	f.checkUntil(t, "the breaker to close", func() bool { return len(f.outages) > 0 })
	if log := f.log.String(); strings.Contains(log, "replaced") || !strings.Contains(log, "shard breaker closed") {
		t.Errorf("the log:\n%s", log)
	}
}

// TestReplacedBy: the log has the node that replaced a master, once there is one.
func TestReplacedBy(t *testing.T) {
	f := openFailover(t)
	f.master.Stop()
	f.checkUntil(t, "the breaker to open", func() bool { return f.Shards()[0].State != breaker.Closed })
	f.replica.CLI(t, "REPLICAOF", "NO", "ONE")
	f.checkUntil(t, "the end of the outage", func() bool { return len(f.outages) > 0 })
	if log := f.log.String(); !strings.Contains(log, `msg="unresponsive master replaced" node=`+f.master.Addr+" by="+f.replica.Addr+" outage=") {
		t.Errorf("the log:\n%s", log)
	}
}

// TestReplacedWithoutOpenBreaker: the log has the node that replaced a master that was reported as failing,
// although the few checks meanwhile have not opened the breaker.
func TestReplacedWithoutOpenBreaker(t *testing.T) {
	f := openFailover(t)
	f.master.Kill()
	f.checkUntil(t, "a line about the master", func() bool { return strings.Contains(f.log.String(), "store degraded") })
	f.replica.CLI(t, "REPLICAOF", "NO", "ONE")
	line := `msg="unresponsive master replaced" node=` + f.master.Addr + " by=" + f.replica.Addr + " outage="
	redistest.Eventually(t, 20*time.Second, "a line about the replacement", func() bool {
		f.requestReload()
		return strings.Contains(f.log.String(), line)
	})
	if log := f.log.String(); strings.Contains(log, "breaker open") || strings.Contains(log, "outage=2562047h") || len(f.outages) > 0 {
		t.Errorf("%d outages, the log:\n%s", len(f.outages), log)
	}
}

// TestReplacedAfterABlip: a master that failed, recovered and is gone has its lines, also if all of that
// takes less than healthPeriod.
func TestReplacedAfterABlip(t *testing.T) {
	f := openFailover(t)
	degraded := func() bool {
		return strings.LastIndex(f.log.String(), "store degraded") > strings.LastIndex(f.log.String(), "store recovered")
	}
	f.master.Stop()
	f.checkUntil(t, "a line about the master", degraded)
	f.master.Cont()
	f.checkUntil(t, "its recovery", func() bool { return !degraded() })
	f.master.Kill()
	f.checkUntil(t, "a second line about the master", degraded)
	f.replica.CLI(t, "REPLICAOF", "NO", "ONE")
	f.checkUntil(t, "a line about the replacement", func() bool { return strings.Contains(f.log.String(), "unresponsive master replaced") })
}

// TestHealthLines: a node that alternates does not flood the log, its lines alternate, and one that is
// replaced while its failure has no line counts as failing.
func TestHealthLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(syncbuffer.Buffer)
		n := &node{addr: "a", log: slog.New(slog.NewTextHandler(log, nil)), reported: logthrottle.Throttle{Period: healthPeriod, Lines: healthLines}}
		for range 100 {
			n.reportHealth(context.DeadlineExceeded)
			n.reportHealth(nil)
		}
		n.reportHealth(context.DeadlineExceeded)
		if d, r := strings.Count(log.String(), "degraded"), strings.Count(log.String(), "recovered"); d != 2 || r != 2 || n.sick.Load() == 0 {
			t.Errorf("%d and %d lines, failing since %d", d, r, n.sick.Load())
		}
		since := n.sick.Load()
		time.Sleep(healthPeriod)
		n.reportHealth(context.DeadlineExceeded)
		n.reportHealth(context.DeadlineExceeded)
		if d := strings.Count(log.String(), "degraded"); d != 3 || n.sick.Load() != since || !strings.Contains(log.String(), " unlogged_outages=98\n") {
			t.Errorf("%d lines after the pause, failing since %d, want %d", d, n.sick.Load(), since)
		}
	})
}

// TestHealthLineOnce: calls that fail at the same time make one line.
func TestHealthLineOnce(t *testing.T) {
	for range 1000 {
		log := new(syncbuffer.Buffer)
		n := &node{addr: "a", log: slog.New(slog.NewTextHandler(log, nil)), reported: logthrottle.Throttle{Period: healthPeriod, Lines: healthLines}}
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() { n.reportHealth(context.DeadlineExceeded) })
		}
		calls.Wait()
		if d := strings.Count(log.String(), "degraded"); d != 1 {
			t.Fatalf("%d lines:\n%s", d, log)
		}
	}
}

// TestPingShards: a ping shows a master that is gone before any check fails, and that it is back.
func TestPingShards(t *testing.T) {
	f := openFailover(t)
	ask := func() Shard {
		all, _ := f.PingShards(t.Context())
		if len(all) != 1 {
			t.Fatalf("%d shards", len(all))
		}
		return all[0]
	}
	if sh := ask(); sh.Ping != nil || sh.Err != nil {
		t.Errorf("a master that answers: %+v", sh)
	}
	f.master.Kill()
	if sh := ask(); sh.Ping == nil || sh.Err != nil || sh.State != breaker.Closed {
		t.Errorf("a master that was killed: %v", sh.Ping)
	}
	f.checkUntil(t, "a check to fail", func() bool { return ask().Err != nil })
	f.master.Restart()
	redistest.Eventually(t, 20*time.Second, "no error of a master that is back", func() bool {
		sh := ask()
		return sh.Ping == nil && sh.Err == nil && sh.State == breaker.Closed
	})
}

// TestPingShardsBusy: a master that ran a script for too long, and answers a ping, has no error any more.
func TestPingShardsBusy(t *testing.T) {
	node := redistest.Start(t, "--busy-reply-threshold", "50")
	s := openWithOptions(t, Options{Cooldown: time.Minute, DecisionTimeout: time.Second}, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"})
	loop := client(t, node.Addr)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = loop.Eval(t.Context(), "while true do end", nil).Err() // until it is killed
	}()
	other := client(t, node.Addr)
	redistest.Eventually(t, 10*time.Second, "the node is busy", func() bool {
		err := other.Ping(t.Context()).Err()
		return err != nil && kindOf(err) == KindBusy
	})
	askOf(s, set, "t", time.Second)
	if err := s.Shards()[0].Err; err == nil || kindOf(err) != KindBusy {
		t.Fatalf("the error of a busy node: %v", err)
	}
	node.CLI(t, "SCRIPT", "KILL")
	<-ended
	if all, err := s.PingShards(t.Context()); err != nil || all[0].Err != nil || all[0].State != breaker.Closed {
		t.Errorf("%v, %+v", err, all)
	}
}

// TestNoMaster: while the only Redis is a replica, no master is known, for a reason that names each
// address once, and no outage has ended.
func TestNoMaster(t *testing.T) {
	f := openFailover(t)
	if err := f.NoMaster(); err != nil {
		t.Error(err)
	}
	other := redistest.Start(t)
	f.master.CLI(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(other.Port))
	f.checkUntil(t, "no master to be known", func() bool { return f.NoMaster() != nil })
	text := f.NoMaster().Error()
	if !strings.HasPrefix(text, "no master of the store is known: ") || strings.Count(text, f.master.Addr) != 1 || strings.Count(text, f.replica.Addr) != 1 || !strings.HasSuffix(text, "; the backstop decides") {
		t.Error(text)
	}
	if log := f.log.String(); strings.Contains(log, "replaced") || len(f.outages) > 0 {
		t.Errorf("%d outages, the log:\n%s", len(f.outages), log)
	}
	f.replica.CLI(t, "REPLICAOF", "NO", "ONE")
	f.checkUntil(t, "a master", func() bool { return f.NoMaster() == nil })
}

// TestMasterAgain: the log says that a single Redis is a replica, and when it is a master again, with no word of hash slots, and of no
// recovery before.
func TestMasterAgain(t *testing.T) {
	f := openFailover(t)
	other := redistest.Start(t)
	f.master.CLI(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(other.Port))
	f.checkUntil(t, "no master to be known", func() bool { return f.NoMaster() != nil })
	if log := f.log.String(); strings.Count(log, "no master of the store is known, using backstop") != 1 || strings.Contains(log, "recovered") {
		t.Errorf("the log of a replica:\n%s", log)
	}
	f.master.CLI(t, "REPLICAOF", "NO", "ONE")
	f.checkUntil(t, "the master", func() bool { return f.NoMaster() == nil && strings.Contains(f.log.String(), "store recovered") })
	if log := f.log.String(); strings.Contains(log, "hash slots") {
		t.Errorf("the log:\n%s", log)
	}
}
