package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestFlushSendsTogether checks that started calls of many callers stay queued until Flush,
// and then cost one script call.
func TestFlushSendsTogether(t *testing.T) {
	const callers = 20
	node := redistest.Start(t)
	s := open(t, node.Addr)
	admin := client(t, node.Addr)
	scripts := func() int { return calls(admin.Info(t.Context(), "commandstats").Val(), "evalsha") }
	before := scripts()
	set := compile(t, spec{ID: "tenant", By: []string{"tenant"}, Rate: "10/366d"})
	at := limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}
	done := make(chan uint64, callers)
	buffers := make([]limit.Buffer, callers)
	ends := make([]func() bool, callers)
	for i := range callers {
		b := &buffers[i]
		set.Resolve(&limit.Request{Tenant: fmt.Sprint(i), Cost: 1}, testAddrs, 0, b)
		ends[i] = s.Start(at, b.Items, b.Calls, func(token uint64) { done <- token }, uint64(i))
	}
	if n := scripts() - before; n != 0 {
		t.Errorf("%d script calls before they were flushed", n)
	}
	s.Flush()
	for range callers {
		<-done
	}
	for i, end := range ends {
		if it := &buffers[i].Items[0]; end() || it.Source != limit.SourceStore || !it.Allowed || it.Remaining != 9 {
			t.Errorf("caller %d: %+v", i, it)
		}
	}
	if n := scripts() - before; n != 1 {
		t.Errorf("%d script calls for %d callers, want one", n, callers)
	}
}

// TestFullFlightsDoNotWait checks that a full batch is sent without Flush, however many
// calls are started: none of them exceeds the queue.
func TestFullFlightsDoNotWait(t *testing.T) {
	const pipelines, size = 100, 64
	s := open(t, redistest.SharedNode(t).Addr)
	set := compile(t, spec{ID: "held", By: []string{"tenant"}, Rate: "10/366d"})
	at := limit.DecisionTime{Start: time.Now(), Timeout: 20 * time.Second}
	done := make(chan uint64, pipelines)
	buffers := make([]limit.Buffer, pipelines)
	var ends []func() bool
	for i := range buffers {
		b := &buffers[i]
		for j := range size {
			set.Resolve(&limit.Request{Tenant: fmt.Sprint("held-", i, "-", j), Cost: 1}, testAddrs, 0, b)
		}
		ends = append(ends, s.Start(at, b.Items, b.Calls, func(token uint64) { done <- token }, 1))
		if (i+1)*size%maxBatch == 0 { // a full batch: all of it is answered
			for range maxBatch / size {
				<-done
			}
		}
	}
	for i, end := range ends {
		end()
		for _, it := range buffers[i].Items {
			if it.Source != limit.SourceStore {
				t.Fatalf("pipeline %d: %+v", i, it)
			}
		}
	}
}

// TestAskTooLate checks that a call without time left stays undecided and costs the store
// nothing.
func TestAskTooLate(t *testing.T) {
	node := redistest.Start(t)
	s := open(t, node.Addr)
	admin := client(t, node.Addr)
	before := calls(admin.Info(t.Context(), "commandstats").Val(), "evalsha")
	set := compile(t, spec{ID: "tenant", By: []string{"tenant"}, Rate: "10/366d"})
	var b limit.Buffer
	set.Resolve(&limit.Request{Tenant: "late", Cost: 1}, testAddrs, 0, &b)
	at := limit.DecisionTime{Start: time.Now(), Timeout: -time.Millisecond}
	if end := s.Start(at, b.Items, b.Calls, func(uint64) { t.Error("done") }, 1); end != nil {
		t.Error("it was begun")
	}
	s.Flush()
	if b.Items[0].Source != limit.SourceNone {
		t.Errorf("%+v", b.Items[0])
	}
	if n := calls(admin.Info(t.Context(), "commandstats").Val(), "evalsha") - before; n != 0 {
		t.Errorf("%d script calls", n)
	}
}

// calls returns how often a command was called, from the statistics of a node.
func calls(stats, command string) int {
	for line := range strings.Lines(stats) {
		rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls=")
		if !ok {
			continue
		}
		n, _, _ := strings.Cut(rest, ",")
		calls, _ := strconv.Atoi(n)
		return calls
	}
	return 0
}
