package run

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// record is a list of names that several goroutines append to.
type record struct {
	mu    sync.Mutex // guards names
	names []string
}

func (r *record) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

// until returns a part that runs until ctx ends, and records its end.
func (r *record) until(name string) Part {
	return func(ctx context.Context) error {
		<-ctx.Done()
		r.add(name)
		return nil
	}
}

var errBroken = errors.New("broken")

func TestAllCancelsTheOthers(t *testing.T) {
	var r record
	err := All(t.Context(), r.until("a"), func(context.Context) error { return errBroken }, r.until("b"))
	if !errors.Is(err, errBroken) || len(r.names) != 2 {
		t.Errorf("got %v, ended %v", err, r.names)
	}
}

func TestStagesEndInOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var r record
	first := func(ctx context.Context) error {
		cancel()
		return r.until("first")(ctx)
	}
	if err := Stages(ctx, first, r.until("second"), r.until("third")); err != nil || !slices.Equal(r.names, []string{"first", "second", "third"}) {
		t.Errorf("got %v, ended %v", err, r.names)
	}
}

func TestStagesFailure(t *testing.T) {
	var r record
	err := Stages(t.Context(), r.until("first"), func(context.Context) error { return errBroken }, r.until("third"))
	if !errors.Is(err, errBroken) || !slices.Contains(r.names, "first") || !slices.Contains(r.names, "third") {
		t.Errorf("got %v, ended %v", err, r.names)
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Sleep(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("slept for %s", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if Sleep(ctx, time.Hour) || time.Since(began) != time.Minute || Sleep(ctx, 0) {
			t.Errorf("slept for %s in a context of a minute", time.Since(began))
		}
	})
}
