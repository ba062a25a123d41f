package cluster

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/resp"
)

// TestKindOfNoConnection checks that a call without a connection counts as a network
// failure, or as the reason why the node refuses connections, and never as one that may
// have been executed.
func TestKindOfNoConnection(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  ErrorKind
	}{
		{io.EOF, KindNetwork},
		{context.DeadlineExceeded, KindNetwork},
		{fmt.Errorf("handshake: %w", resp.Error("NOAUTH Authentication required.")), KindAuth},
		{fmt.Errorf("handshake: %w", resp.Error("LOADING Redis is loading the dataset in memory")), KindLoading},
		{fmt.Errorf("handshake: %w, its role is slave", ErrNotMaster), KindRole},
	} {
		if got := kindOf(&downError{c.cause}); got != c.want {
			t.Errorf("%v: %s, want %s", c.cause, got, c.want)
		}
	}
}

// TestReplacedMaster checks that the outage of a master that never recovers ends when
// another master owns its slots. A healthy master has no outage.
func TestReplacedMaster(t *testing.T) {
	var outages []time.Duration
	outage := func(d time.Duration) { outages = append(outages, d) }
	n := &node{breaker: breaker.New(breaker.Options{}), log: slog.New(slog.DiscardHandler)}
	n.recordReplaced(outage)
	if len(outages) != 0 {
		t.Errorf("a master that was well had an outage of %s", outages[0])
	}
	began := time.Now().Add(-time.Second)
	n.breaker.Record(began, breaker.Outcome{Failed: 1, Err: errDown})
	n.breaker.Record(began.Add(500*time.Millisecond), breaker.Outcome{Failed: 20, Err: errDown})
	n.recordReplaced(outage)
	if len(outages) != 1 || outages[0] < time.Second || outages[0] > time.Minute {
		t.Errorf("a master that failed a second ago had outages of %v", outages)
	}
}
