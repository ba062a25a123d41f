package server

import (
	"runtime"
	"sync"
)

// Commands that the event loop does not serve itself run in task queues. The number of
// goroutines does not depend on the number of clients, and a queue holds at most one task
// of each connection, so MaxConns bounds it.
const (
	// waitingTasks is the maximum number of batches that wait for the store at once, in
	// addition to those that an AsyncSession has started: a goroutine each, of about 16
	// KiB.
	waitingTasks = 64
)

// longTasks returns the maximum number of long commands that run at once: they need the
// processor or iterate over the store, and must leave processors to the event loops.
func longTasks() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// taskQueue runs tasks in order in a bounded number of goroutines, which end when there
// is nothing to do. It is safe for concurrent use.
type taskQueue struct {
	maxRunning int
	group      *sync.WaitGroup // of the goroutines

	mu          sync.Mutex // guards the fields below, and the links of tasks
	first, last *task
	running     int
}

// task is a function to run. Its owner may add it again only after it has run.
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

// withdraw removes a task from the queue. It returns false if the task has started.
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
			// The event loops come after the queue's other goroutines in the scheduler;
			// without this call each of those would keep its processor for 10 ms.
			runtime.Gosched()
		}
	}
}

// take returns the next task, or nil, after which the goroutine must end.
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

// weight is the cost of a command, the lightest first.
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
