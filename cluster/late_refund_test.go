package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestLateRefundsOfOthers checks that late refunds of a hung master do not delay refunds of
// another master, and that late refunds are reported.
func TestLateRefundsOfOthers(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	returned := make(chan string, 1000)
	s := openWithOptions(t, Options{Returned: func(names []string) {
		for _, name := range names {
			returned <- name
		}
	}}, c.Addrs()...)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "9/366d", Algorithm: "fixed_window"})
	hung := c.Masters(t)[0]
	var sick, well [][]limit.Item
	for i := range 60 {
		items := take(t, s, set, limit.Request{Tenant: fmt.Sprint("late-", i), Cost: 4})
		if s.Locate(&items[0]) == hung.Addr {
			sick = append(sick, items)
		} else {
			well = append(well, items)
		}
	}
	if len(sick) == 0 || len(well) == 0 {
		t.Fatalf("%d tenants on one master, %d on the others", len(sick), len(well))
	}
	hung.Stop()
	defer hung.Cont()
	past := limit.DecisionTime{Start: time.Now().Add(-time.Hour)}
	for _, items := range append(sick, well...) {
		s.Refund(past, items)
	}
	back, late := map[string]bool{}, time.After(4*time.Second) // less than the hung master's IOTimeout
	for len(back) < len(well) {
		select {
		case name := <-returned:
			back[name] = true
		case <-late:
			t.Fatalf("%d of %d refunds were made beside a master that hangs", len(back), len(well))
		}
	}
	for _, items := range well {
		if !back[string(items[0].Name)] {
			t.Errorf("%s was not reported", items[0].Name)
		}
	}
}
