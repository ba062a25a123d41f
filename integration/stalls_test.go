package integration

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// stall is a time during which the machine did not run this process on one of its
// processors, so that all work waiting for that processor was delayed.
type stall struct{ from, to time.Time }

const (
	stallTick = 2 * time.Millisecond
	stallOver = 5 * time.Millisecond // shorter ones do not count
)

// watchStalls looks for stalls on every processor, until the returned function is called.
// That returns them by time without overlaps.
func watchStalls(t *testing.T) func() []stall {
	t.Helper()
	stop := make(chan struct{})
	var (
		watchers sync.WaitGroup
		mu       sync.Mutex // guards stalls
		stalls   []stall
	)
	for cpu := range runtime.NumCPU() {
		watchers.Go(func() {
			found := watchProcessor(cpu, stop)
			mu.Lock()
			defer mu.Unlock()
			stalls = append(stalls, found...)
		})
	}
	end := sync.OnceValue(func() []stall {
		close(stop)
		watchers.Wait()
		return merged(stalls)
	})
	t.Cleanup(func() { end() })
	return end
}

// watchProcessor returns the stalls of one processor. It does not unlock its thread,
// because the thread cannot be used for anything else.
func watchProcessor(cpu int, stop <-chan struct{}) []stall {
	runtime.LockOSThread()
	stayOn(cpu)
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	var stalls []stall
	for last := time.Now(); ; {
		select {
		case <-stop:
			return stalls
		case <-tick.C:
		}
		now := time.Now()
		if now.Sub(last) > stallOver {
			stalls = append(stalls, stall{last, now})
		}
		last = now
	}
}

// merged returns the union of stalls.
func merged(stalls []stall) []stall {
	slices.SortFunc(stalls, func(x, y stall) int { return x.from.Compare(y.from) })
	var apart []stall
	for _, s := range stalls {
		if last := len(apart) - 1; last >= 0 && !s.from.After(apart[last].to) {
			apart[last].to = maxTime(apart[last].to, s.to)
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

// stalled returns how much of the sample's time was stalled.
func (s *sample) stalled(stalls []stall) time.Duration {
	var sum time.Duration
	for _, x := range stalls {
		if d := minTime(x.to, s.end()).Sub(maxTime(x.from, s.at)); d > 0 {
			sum += d
		}
	}
	return sum
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestStallsOfProcessorsAreOneTime(t *testing.T) {
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	stalls := merged([]stall{{at(50), at(60)}, {at(10), at(30)}, {at(20), at(25)}, {at(28), at(40)}})
	if want := []stall{{at(10), at(40)}, {at(50), at(60)}}; !slices.Equal(stalls, want) {
		t.Errorf("got %v, want %v", stalls, want)
	}
	s := sample{at: at(35), took: 20 * time.Millisecond}
	if got := s.stalled(stalls); got != 10*time.Millisecond {
		t.Errorf("a sample stood still for %s, want 10 ms", got)
	}
}
