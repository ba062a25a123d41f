package limiter

import "time"

// waiter waits for the store on behalf of DecideWithin and Await.
type waiter struct {
	answered chan struct{}      // has room for one value
	done     func(token uint64) // sends to answered
	timer    *time.Timer
	late     bool // DecideWithin did not wait for the answer
}

func newWaiter() *waiter {
	w := &waiter{answered: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	w.done = func(uint64) { w.answered <- struct{}{} }
	return w
}

// wait waits at most the duration most until done is called, and reports whether it was.
// If not, the waiter can only wait again, and not for another call: a late call of done may
// be under way.
func (w *waiter) wait(most time.Duration) bool {
	select {
	case <-w.answered:
		return true
	default:
	}
	w.timer.Reset(most)
	defer w.timer.Stop()
	select {
	case <-w.answered:
		return true
	case <-w.timer.C:
		return false
	}
}
