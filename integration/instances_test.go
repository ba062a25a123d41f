package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// instancesStatus is how many instances share the limits, as a proxy reports it.
type instancesStatus struct {
	Instances int    `json:"instances"`
	Source    string `json:"instances_source"`
	Error     string `json:"instances_error"`
}

func instancesOf(p *proxy) instancesStatus {
	p.tb.Helper()
	var st instancesStatus
	if err := json.Unmarshal([]byte(p.get("/readyz")), &st); err != nil {
		p.tb.Fatal(err)
	}
	return st
}

// eachCounts waits until each proxy counts n.
func eachCounts(t *testing.T, n int, all ...*proxy) {
	t.Helper()
	for i, p := range all {
		eventually(t, fmt.Sprintf("proxy %d counts %d", i, n), func() bool { return instancesOf(p).Instances == n })
	}
}

// TestInstances: proxies of one store count each other without any setting. A proxy that
// stops reports that before it ends, one that is killed expires after a while, and while
// the store is away the last count stays.
func TestInstances(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	limits := writeLimits(t, `
version: 1
default_plan: p
plans: {p: [{id: near, by: [tenant], rate: 1200/h, store: local}]}
`)
	var all []*proxy
	for range 4 {
		all = append(all, serve(t, limits, append([]string{"--redis", node.Addr}, exact...)...))
	}
	eachCounts(t, 4, all...)
	explained := fmt.Sprint(all[0].client().Do(t.Context(), "RL.EXPLAIN", "t", "-", "-").Val())
	if !strings.Contains(explained, "each of 4 instances admits its share, 300 units at once") {
		t.Errorf("RL.EXPLAIN: %s", explained)
	}
	if err := all[3].stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if n := node.CLI(t, "HLEN", "lg:instances"); n != "4" { // three, and the time of the last sweep
		t.Errorf("%s entries after one has ended: %s", n, node.CLI(t, "HGETALL", "lg:instances"))
	}
	eachCounts(t, 3, all[:3]...)
	_ = all[2].stop(syscall.SIGKILL)
	eachCounts(t, 2, all[:2]...)
	redistest.AssertAllKeysExpire(t, node)
	node.Kill()
	eventually(t, "the source fails", func() bool { return instancesOf(all[0]).Error != "" })
	if st := instancesOf(all[0]); st.Instances != 2 || st.Source != "heartbeat" {
		t.Errorf("without a store: %+v", st)
	}
	metrics := all[0].get("/metrics")
	if !strings.Contains(metrics, "\nlimitgate_healthy_instances 2\n") || strings.Contains(metrics, "\nlimitgate_instances_source_errors_total 0\n") {
		t.Errorf("the metrics lack a count:\n%s", metrics)
	}
	node.Restart()
	eventually(t, "the source works", func() bool { return instancesOf(all[0]).Error == "" })
	eachCounts(t, 2, all[:2]...)
	for _, part := range []string{"cannot count instances, keeping the last number", "counting instances again"} {
		if n := strings.Count(all[0].output(), part); n != 1 {
			t.Errorf("the log says %q %d times:\n%s", part, n, all[0].output())
		}
	}
}

// TestInstancesFrom: a proxy reports the source of its number of instances, and also
// serves when that source does not answer.
func TestInstancesFrom(t *testing.T) {
	t.Parallel()
	for from, fails := range map[string]bool{
		"1": false, "7": false, "dns:localhost": false, "eds:127.0.0.1:1/limitgate": true,
	} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			p := serve(t, "", "--instances", from)
			if _, err := check(p.client(), "t", "-", "-"); err != nil {
				t.Error(err)
			}
			eventually(t, "its source has replied", func() bool {
				st := instancesOf(p)
				return st.Source == from && (st.Error != "") == fails
			})
			if err := p.stop(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		})
	}
}
