//go:build long

package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

const (
	trafficLimit = 300 // a second, of all cells together
	trafficEvery = 100 * time.Millisecond
	trafficBatch = 20
)

// traffic sends each proxy more checks than the limit admits, and counts the admitted
// ones.
type traffic struct {
	began   time.Time
	seconds [400]atomic.Int64 // admitted units in each second since then
	calling sync.WaitGroup
}

// ask sends checks to a proxy until the process or ctx ends.
func (tr *traffic) ask(ctx context.Context, p *proxy) {
	c := p.client()
	tr.calling.Go(func() {
		tick := time.NewTicker(trafficEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			pipe := c.Pipeline()
			for range trafficBatch {
				pipe.Do(ctx, "RL.CHECK", "acme", "-", "-")
			}
			cmds, err := pipe.Exec(ctx)
			if err != nil {
				return // it was killed
			}
			second := int(time.Since(tr.began) / time.Second)
			for _, cmd := range cmds {
				if reply, _ := cmd.(interface{ Val() any }).Val().([]any); len(reply) > 0 && reply[0] == int64(1) && second < len(tr.seconds) {
					tr.seconds[second].Add(1)
				}
			}
		}
	})
}

// times returns the admissions of the last seconds as a multiple of the limit.
func (tr *traffic) times(seconds int) float64 {
	now := int(time.Since(tr.began) / time.Second)
	sum := int64(0)
	for i := now - seconds; i < now; i++ {
		sum += tr.seconds[i].Load()
	}
	return float64(sum) / float64(seconds*trafficLimit)
}

// trafficWindow is the measured window in seconds: a cell whose part grows has no saved
// units.
const trafficWindow = 5

// watch returns the largest admissions of any window within some seconds, and those of
// the last window.
func (tr *traffic) watch(t *testing.T, what string, seconds int) (most, last float64) {
	var said strings.Builder
	for range seconds {
		pause(time.Second)
		last = tr.times(trafficWindow)
		most = max(most, last)
		fmt.Fprintf(&said, " %.2f", last)
	}
	t.Logf("%-45s %3d s: at most %.2f times the limit, %.2f in the end:%s", what, seconds, most, last, said.String())
	return most, last
}

// blockade is a proxy of the tables that refuses the calls of one table while it is
// closed.
type blockade struct {
	closed  atomic.Bool
	refused atomic.Int64
	next    http.Handler
}

func (b *blockade) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(asked))
	if b.closed.Load() && bytes.Contains(asked, []byte(`"TableName":"cells"`)) {
		b.refused.Add(1)
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	b.next.ServeHTTP(w, r)
}

// TestLongTableCellsTraffic measures the admissions of three cells of two proxies each of
// one limit. Each proxy gets more requests than the whole limit, while the control plane
// is killed, the registry cannot be reached, weights change, and a cell dies and returns.
func TestLongTableCellsTraffic(t *testing.T) {
	s := newSite(t)
	b := &blockade{next: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.Addr})}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s.env = []string{"AWS_ENDPOINT_URL_DYNAMODB=" + server.URL}
	s.push(tableLimits(t, fmt.Sprintf("acme: {plan: free, overrides: {tenant: {rate: %d/s}}}", trafficLimit)), "ann")
	plane := s.controlPlane("--cells", "cells")
	tr := &traffic{began: time.Now()}
	ctx, stop := context.WithCancel(t.Context())
	defer tr.calling.Wait()
	defer stop()
	stores := map[string]*redistest.Node{}
	start := func(id string) (pair []*proxy) {
		if stores[id] == nil {
			stores[id] = redistest.Start(t)
		}
		for range 2 {
			p := s.serve(filepath.Join(t.TempDir(), "snapshot"), append([]string{"--cells-id", id, "--cells-table", "cells", "--redis", stores[id].Addr}, exact...)...)
			pair = append(pair, p)
		}
		return pair
	}
	all := map[string][]*proxy{}
	for _, id := range []string{"a", "b", "c"} {
		all[id] = start(id)
	}
	for _, pair := range all {
		enforce(t, "acme", trafficLimit/3, pair...)
		for _, p := range pair {
			tr.ask(ctx, p)
		}
	}
	pause(8 * time.Second) // bursts are gone
	well := func(what string, last float64) {
		t.Helper()
		if last < .9 || last > 1.1 {
			t.Errorf("%s: %.2f times the limit in the end", what, last)
		}
	}
	most, last := tr.watch(t, "three cells", 8)
	well("three cells", max(most, last))

	_ = plane.stop(syscall.SIGKILL)
	most, _ = tr.watch(t, "no control plane", 10)
	well("no control plane", most)
	plane = s.controlPlane("--cells", "cells")
	most, _ = tr.watch(t, "another control plane", 14)
	well("another control plane", most)

	b.closed.Store(true)
	most, _ = tr.watch(t, "the registry cannot be reached", 45)
	well("the registry cannot be reached", most)
	t.Logf("%d requests were refused in 45 s", b.refused.Load())
	b.closed.Store(false)
	most, last = tr.watch(t, "it can be reached again", 25)
	well("it can be reached again", last)
	if most > 1.67+.1 { // the first cell to return has the whole limit, and the others their parts
		t.Errorf("after the registry was away all cells together admitted %.2f times the limit", most)
	}

	s.cells("weight", "--cells", "cells", "b", "400")
	most, last = tr.watch(t, "the weight of one changes", 15)
	well("the weight of one changes", last)
	if most > 1.5+.1 {
		t.Errorf("a weight changes: %.2f times the limit", most)
	}
	for _, p := range all["c"] {
		_ = p.stop(syscall.SIGKILL)
	}
	_, last = tr.watch(t, "a cell is killed", 45)
	well("a cell is killed", last)
	for _, p := range start("c") {
		tr.ask(ctx, p)
	}
	most, last = tr.watch(t, "it comes again", 20)
	well("it comes again", last)
	if most > 1.5 {
		t.Errorf("a cell comes: %.2f times the limit", most)
	}
	t.Logf("the control plane:\n%s", plane.output())
}
