package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/linear"
	"github.com/limitgate/limitgate/limit"
)

// orderTimeout bounds porcupine's search for an order of one history.
const orderTimeout = 2 * time.Second

// explained is the result of checking the histories of a run.
type explained struct {
	histories, calls, unanswered, lost int
	forgot                             int // histories in which the store lost all effects of a check
}

func (e *explained) cell() string {
	if e.histories == 0 {
		return "-"
	}
	return fmt.Sprintf("%d / %d / %d / %d", e.histories, e.calls, e.unanswered, e.lost)
}

// happened returns the effects of the fault on a shard's store as operations: between its
// start and its end a replica was promoted, all data was lost, or the clock stepped back.
func (o *outcome) happened(shard int, promoted bool) []linear.Operation {
	happening := linear.Operation{Answer: linear.Answer{Known: true}, Sent: o.made.UnixMicro(), Received: o.closed.UnixMicro()}
	switch {
	case o.fault.emptied != nil && o.fault.emptied(shard, promoted):
		happening.Kind = linear.Emptied
	case promoted:
		happening.Kind = linear.Failover
	case o.fault.clocked:
		happening.Kind = linear.SetBack
	default:
		return nil
	}
	return []linear.Operation{happening}
}

// promotions reports for each shard whether it has another master now.
func (s *scene) promotions(t *testing.T) (promoted [shards]bool) {
	t.Helper()
	masters := s.Masters(t)
	for i := range promoted {
		promoted[i] = !slices.Contains(masters, s.Nodes[i])
	}
	return promoted
}

// explain fails the test if a history has no order of atomic decisions.
func (o *outcome) explain(t *testing.T, hs *historians) {
	t.Helper()
	if err := os.RemoveAll(o.historyFolder()); err != nil {
		t.Error(err)
	}
	promoted := o.scene.promotions(t)
	for _, h := range hs.all {
		all, slot := h.history(), limit.HashSlot([]byte(h.tenant))
		shard := o.scene.FirstOwner(slot)
		all.Operations = append(all.Operations, o.happened(shard, promoted[shard])...)
		all.SlotsMove = o.fault.moves && slot == limit.HashSlot([]byte(movingTenant)) || promoted[shard]
		o.explained.add(all, o.explainOne(t, all))
	}
	if o.explained.calls == 0 {
		t.Error("the store replied to no checked tenant")
	}
	if o.explained.forgot > 0 {
		o.note("in %d histories the store kept nothing of a check with an ID while slots moved, and charged it again", o.explained.forgot)
	}
}

// explainOne searches an order for a history, and saves the history if there is none.
func (o *outcome) explainOne(t *testing.T, h *linear.History) linear.Result {
	t.Helper()
	r := linear.FindOrder(h, orderTimeout)
	if r.Forgot {
		strict := *h
		strict.SlotsMove = false
		e, _ := linear.Explain(&strict)
		t.Logf("tenant %s: if the store keeps every check with an ID, %s", h.Tenant, &e)
	}
	if r.Verdict == linear.Explained {
		return r
	}
	path, summary, err := h.Save(o.historyFolder())
	switch {
	case err != nil:
		t.Error(err)
	case r.Verdict == linear.Undecided:
		t.Errorf("tenant %s: the search for an order of its history took too long: all of it is in %s", h.Tenant, path)
	default:
		t.Errorf("tenant %s: %s(all of it is in %s, drawn beside it)", h.Tenant, summary, path)
	}
	return r
}

// historyFolder is the folder for the histories of a fault that have no order.
func (o *outcome) historyFolder() string {
	return filepath.Join("..", ".cache", "histories", notWord.ReplaceAllString(o.fault.name, "-"))
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

func (e *explained) add(h *linear.History, r linear.Result) {
	e.histories++
	e.lost += r.Lost
	if r.Forgot {
		e.forgot++
	}
	for i := range h.Operations {
		switch o := &h.Operations[i]; {
		case !o.Kind.IsCall():
		case o.Known:
			e.calls++
		case o.Kind != linear.Peek:
			e.calls++
			e.unanswered++
		}
	}
}
