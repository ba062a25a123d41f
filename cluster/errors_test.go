package cluster

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/limitgate/limitgate/breaker"
)

// TestKindOfNoConnection: a call that found no connection is the network's fault, or
// that of a node which lets nobody in; and never one that may have been executed.
func TestKindOfNoConnection(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  ErrorKind
	}{
		{io.EOF, KindNetwork},
		{context.DeadlineExceeded, KindNetwork},
		{fmt.Errorf("greet: %w", replyError("NOAUTH Authentication required.")), KindAuth},
		{fmt.Errorf("greet: %w", replyError("LOADING Redis is loading the dataset in memory")), KindLoading},
		{fmt.Errorf("greet: %w but says it is a slave", ErrNotMaster), KindRole},
	} {
		if got := kindOf(&downError{c.cause}); got != c.want {
			t.Errorf("%v: %s, want %s", c.cause, got, c.want)
		}
	}
}

// TestReplacedMaster: the outage of a master that never came back ends when another
// one has its slots; one that was well had none.
func TestReplacedMaster(t *testing.T) {
	var told []time.Duration
	outage := func(d time.Duration) { told = append(told, d) }
	n := &node{breaker: breaker.New(breaker.Options{}), log: slog.New(slog.DiscardHandler)}
	n.recordReplaced(outage)
	if len(told) != 0 {
		t.Errorf("a master that was well had an outage of %s", told[0])
	}
	began := time.Now().Add(-time.Second)
	n.breaker.Record(began, breaker.Outcome{Failed: 1, Err: errDown})
	n.breaker.Record(began.Add(500*time.Millisecond), breaker.Outcome{Failed: 20, Err: errDown})
	n.recordReplaced(outage)
	if len(told) != 1 || told[0] < time.Second || told[0] > time.Minute {
		t.Errorf("a master that failed a second ago had outages of %v", told)
	}
}
