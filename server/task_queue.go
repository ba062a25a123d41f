package server

import (
	"runtime"
	"sync"
)

// Commands that the loop does not serve itself run in lanes: no number of clients makes
// more goroutines than a lane has, and a queue holds one task of each connection at
// most, so MaxConns bounds it.
const (
	// waitingTasks is how many batches may wait for the store at once beside those
	// that an AsyncSession has begun: a goroutine each, of some 16 KiB.
	waitingTasks = 64
)

// longTasks returns how many long commands run at once: they are bound by
// the processor or walk the store, and must leave the loops theirs.
func longTasks() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// taskQueue runs tasks in their order in a bounded number of goroutines, which end when
// there is nothing to do. Any number of goroutines may use it.
type taskQueue struct {
	maxRunning int
	group      *sync.WaitGroup // has the goroutines

	mu          sync.Mutex // guards the rest, and the links of tasks
	first, last *task
	running     int
}

// task is something to run. Its owner adds it again once it has run, not before.
type task struct {
	run        func()
	prev, next *task
	queued     bool
}

// add queues a task.
func (l *taskQueue) add(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.prev, t.next, t.queued = l.last, nil, true
	if l.last != nil {
		l.last.next = t
	} else {
		l.first = t
	}
	l.last = t
	if l.running < l.maxRunning {
		l.running++
		l.group.Go(l.work)
	}
}

// withdraw removes a task from the queue. It reports false if the task has been
// started.
func (l *taskQueue) withdraw(t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.queued {
		return false
	}
	l.unlink(t)
	return true
}

// work runs tasks until there are none.
func (l *taskQueue) work() {
	for t := l.take(); t != nil; {
		t.run()
		if t = l.take(); t != nil {
			// The loops stand behind the other goroutines of the lane in the scheduler's
			// queue; without this each of those would keep its processor for 10 ms.
			runtime.Gosched()
		}
	}
}

// take returns the next task, or nil after which the goroutine must end.
func (l *taskQueue) take() *task {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.first
	if t == nil {
		l.running--
		return nil
	}
	l.unlink(t)
	return t
}

func (l *taskQueue) unlink(t *task) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		l.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.last = t.prev
	}
	t.prev, t.next, t.queued = nil, nil, false
}

// weight is what a command costs, the lightest first.
type weight uint8

const (
	light weight = iota
	waits
	long
)

// weigh returns the weight of a command.
func weigh(s Session, cmd [][]byte) weight {
	switch mayWait, takesLong := s.Weigh(cmd); {
	case takesLong:
		return long
	case mayWait:
		return waits
	default:
		return light
	}
}
