package tablemodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/table"
)

const (
	// quiet is the time without events before the proxies are checked: three times the
	// longest time that any change may take.
	quiet = 6 * time.Minute
	// mostScans is how often a proxy may read the table in that time.
	mostScans = 15
	proxies   = 3
	mostPlane = 3
	// restartPause is how long a supervisor waits before it restarts a proxy.
	restartPause = 10 * time.Second
)

var steps, runs atomic.Int64

// TestTable runs random histories, as many as -rapid.checks sets. Rapid shrinks and
// stores a failing one, and prints how to run it again.
func TestTable(t *testing.T) {
	snapshots := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		history := drawHistory(rt)
		seed := rapid.Uint64().Draw(rt, "seed")
		folder := filepath.Join(snapshots, strconv.FormatInt(runs.Add(1), 10))
		if err := os.Mkdir(folder, 0o700); err != nil {
			rt.Fatal(err)
		}
		var problem string
		synctest.Test(t, func(*testing.T) { problem = run(history, seed, folder) })
		_ = os.RemoveAll(folder)
		if problem != "" {
			rt.Fatalf("%s", problem)
		}
	})
	t.Logf("%d steps", steps.Load())
}

// world is the environment of a history.
type world struct {
	*model
	leases  *leases
	network *network
	planes  []*plane
	proxies []*proxy
}

// run runs a history and returns the problems at its end, or "".
func run(history []step, seed uint64, folder string) (problem string) {
	w := newWorld(seed, folder)
	defer w.end()
	for _, s := range history {
		w.do(s)
		steps.Add(1)
	}
	w.network.set(0, false)
	w.fail(false)
	w.setReadings(w.slowness(), false)
	w.wait(quiet / 2)
	before := w.scanned()
	w.wait(quiet / 2)
	synctest.Wait()
	problems := w.check()
	if n, most := w.scanned()-before, proxies*mostScans+int(quiet/2/(10*time.Second))+1; n > most {
		problems = append(problems, fmt.Sprintf("the table was read %d times in %s, and %d times is enough", n, quiet/2, most))
	}
	if len(problems) == 0 {
		return ""
	}
	for _, s := range history {
		problems = append(problems, s.String())
	}
	for key, it := range w.all() {
		problems = append(problems, fmt.Sprintf("the table has %s: version %d by %q, deleted %v: %s", key, it.Version, it.Actor, it.Deleted, it.Body))
	}
	return strings.Join(problems, "\n")
}

// wait advances time and restarts proxies that have ended now and then, as a supervisor
// does.
func (w *world) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(restartPause) {
		for _, p := range w.proxies {
			p.start()
		}
	}
}

func newWorld(seed uint64, folder string) *world {
	random := rand.New(rand.NewPCG(seed, 1))
	w := &world{
		model:  newModel(versioned("SHARED", 1, bodies["SHARED"][0]), versioned("PLAN#p0", 1, bodies["PLAN"][0]), versioned("PLAN#p1", 1, bodies["PLAN"][1]), versioned("PLAN#p2", 1, bodies["PLAN"][0]), versioned("TENANT#t0", 1, bodies["TENANT"][1])),
		leases: &leases{}, network: &network{random: random},
	}
	w.backup()
	w.planes = []*plane{startPlane(w.model, w.leases, w.network, -1)}
	for i := range proxies {
		skew := []time.Duration{0, time.Hour, -time.Hour, 4 * time.Second}[seed>>(2*i)&3]
		p := &proxy{table: w.model, queue: w.network.newQueue(), snapshot: filepath.Join(folder, fmt.Sprint("snapshot-", i)), skew: skew}
		w.proxies = append(w.proxies, p)
		p.start()
	}
	return w
}

func (w *world) end() {
	for _, p := range w.planes {
		p.end(true)
	}
	for _, p := range w.proxies {
		p.end()
	}
}

// check returns the problems of the proxies' states.
func (w *world) check() (problems []string) {
	want, compiles, clean := truth(w.all())
	versions := map[string]string{}
	for i, p := range w.proxies {
		if p.follower == nil {
			if clean {
				problems = append(problems, fmt.Sprintf("proxy %d does not start on good limits", i))
			}
			continue
		}
		got, stale := account(p.Set()), p.stale()
		switch {
		case len(w.planes) == 0 && stale == "":
			problems = append(problems, fmt.Sprintf("proxy %d does not say that no digest comes", i))
		case len(w.planes) > 0 && clean && stale != "":
			problems = append(problems, fmt.Sprintf("proxy %d says that it is stale: %s", i, stale))
		case clean && got != want, stale == "" && (!compiles || got != want):
			problems = append(problems, fmt.Sprintf("proxy %d enforces\n%sand the table says\n%sstale: %q", i, got, want, stale))
		}
		if of, ok := versions[p.Status().Version]; ok && of != got {
			problems = append(problems, fmt.Sprintf("two proxies say version %s and enforce\n%sand\n%s", p.Status().Version, of, got))
		}
		versions[p.Status().Version] = got
	}
	return problems
}

// do executes a step.
func (w *world) do(s step) {
	key := keys[s.what%len(keys)]
	p := w.proxies[s.what%len(w.proxies)]
	switch s.kind {
	case push:
		w.pushItem(key, bodyOf(key, s.how))
	case pushMany:
		for i, key := range keys {
			if s.what>>i&1 == 1 {
				w.pushItem(key, bodyOf(key, s.how>>i))
			}
		}
	case byHand, byHandOdd, deleteHard, putBack, backUp, remake:
		w.meddle(s, key)
	case forge:
		it := versioned(key, versions[s.how%len(versions)], bodyOf(key, s.how))
		if s.how%5 == 0 {
			it.Key += "-forged"
		}
		p.queue.forge(&table.Message{Item: &it, Reread: s.how%11 == 0})
	case forgery:
		d := table.Digest{Count: int64(s.how), Sum: uint64(s.how)}
		_, _ = w.network.Publish(context.Background(), []table.Message{{Digest: &d, Every: int64(s.how) - 1<<15}})
	case faults:
		w.network.set([]float64{0, .1, .33}[s.how%3], s.how%5 == 0)
	case awsAway:
		w.fail(s.how%2 == 0)
	case startPlaneStep, endPlane, killPlane:
		w.change(s)
	case startProxy:
		p.start()
	case endProxy:
		p.end()
	case otherSnapshot:
		p.end()
		var items []table.Item
		for _, it := range others(s.how) {
			items = append(items, it)
		}
		_ = catalog.WriteSnapshot(p.snapshot, []string{tableName, "dynamodb://another"}[s.how%2], items)
	case slowReadings:
		w.setReadings([]time.Duration{0, 3 * time.Second, 8 * time.Second, 15 * time.Second}[s.how%4], s.how%3 == 0)
	case lookup:
		if p.follower != nil {
			p.lookup.Request(tenants[s.how%len(tenants)])
		}
	case loseSubscription:
		p.queue.lose(false)
	case loseQueue:
		p.queue.lose(true)
	default:
		time.Sleep(time.Duration(s.how) * time.Millisecond)
	}
}

// meddle writes into the table without limits push.
func (w *world) meddle(s step, key string) {
	switch s.kind {
	case byHand:
		it := versioned(key, int64(s.how%3), bodyOf(key, s.how))
		it.Actor = ""
		w.write(key, &it)
	case byHandOdd:
		it := versioned(key, versions[s.how%len(versions)], bodyOf(key, s.how))
		w.write(key, &it)
	case deleteHard:
		w.write(key, nil)
	case putBack:
		if it, ok := w.copied(s.how)[key]; ok {
			w.write(key, &it)
		}
	case backUp:
		w.backup()
	default:
		items := w.copied(s.how)
		if s.what%2 == 0 {
			items = others(s.how)
		}
		w.replace(items)
	}
}

// change starts or ends a control plane.
func (w *world) change(s step) {
	n := len(w.planes)
	if s.kind == startPlaneStep {
		if n < mostPlane {
			w.planes = append(w.planes, startPlane(w.model, w.leases, w.network, s.how%(2*shards)-shards))
		}
		return
	}
	if n > 0 {
		i := s.what % n
		w.planes[i].end(s.kind == killPlane)
		w.planes = append(w.planes[:i], w.planes[i+1:]...)
	}
}
