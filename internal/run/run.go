// Package run runs the long-lived parts of a program. Each function returns when all
// goroutines that it started have ended.
package run

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Part is a part of a program. It runs until ctx ends or it fails.
type Part = func(ctx context.Context) error

// All runs the parts until all have ended. When one fails, it cancels the others. It returns
// the errors of all parts.
func All(ctx context.Context, parts ...Part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			if errs[i] = part(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Stages runs all stages concurrently. When ctx ends, it cancels the first stage, and each
// other one when the stage before it has ended. When one fails, the stages before it are
// cancelled as well.
func Stages(ctx context.Context, stages ...Part) error {
	if len(stages) == 1 {
		return stages[0](ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		failed = Stages(behind, stages[1:]...)
		cancel()
	})
	err := stages[0](ctx)
	stop()
	wg.Wait()
	return errors.Join(err, failed)
}

// Sleep waits for d. It returns false as soon as ctx ends.
func Sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
