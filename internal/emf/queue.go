package emf

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxQueued bounds the bytes that wait for the sink: a minute of 200 limits that decide in each
	// second, which is longer than the restart of an agent.
	maxQueued = 8 << 20
	// retryPause is the pause after a sink has failed. An agent that starts finds few connections.
	retryPause = time.Second
	// flushTime is how long lines are written after the last one was queued.
	flushTime = time.Second
)

// queue holds lines for a sink, so that the sink makes nothing else wait.
type queue struct {
	sink Sink
	log  *slog.Logger
	most int           // maxQueued
	wait time.Duration // retryPause
	wake chan struct{} // has a value when lines may be queued
	lost atomic.Int64

	mu      sync.Mutex // guards the fields below
	batches [][]byte   // whole lines; of the first batch only the rest that the sink has not taken
	bytes   int        // of all batches
}

func newQueue(sink Sink, log *slog.Logger) *queue {
	return &queue{sink: sink, log: log, most: maxQueued, wait: retryPause, wake: make(chan struct{}, 1)}
}

// add queues lines. Without room for them they are lost.
func (q *queue) add(lines []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes+len(lines) > q.most {
		q.lost.Add(countLines(lines))
		return
	}
	if len(lines) == 0 {
		return
	}
	q.batches = append(q.batches, lines)
	q.bytes += len(lines)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// first returns the rest of the oldest batch, or nothing.
func (q *queue) first() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 {
		return nil
	}
	return q.batches[0]
}

// took removes n bytes of the oldest batch.
func (q *queue) took(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= n
	if q.batches[0] = q.batches[0][n:]; len(q.batches[0]) == 0 {
		q.batches = q.batches[1:]
	}
}

// countLines returns how many lines end in text.
func countLines(text []byte) int64 { return int64(bytes.Count(text, []byte{'\n'})) }

// run writes lines until ctx ends, and then those that are queued. It returns a moment later if the
// sink does not take them; a goroutine that cannot be interrupted ends with the program then.
func (q *queue) run(ctx context.Context) error {
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.writeAll(writing, ctx.Done())
		_ = q.sink.Close()
	}()
	<-ctx.Done()
	timer := time.NewTimer(flushTime)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	q.countLeft()
	return nil
}

// countLeft counts the lines that the sink has not taken at the end as lost.
func (q *queue) countLeft() {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines := int64(0)
	for _, b := range q.batches {
		lines += countLines(b)
	}
	if lines > 0 {
		q.lost.Add(lines)
		q.log.Warn("failed to write the last lines of metrics", "lines", lines)
	}
}

// writeAll writes lines until stop is closed and no line is queued or the sink fails, or ctx ends.
func (q *queue) writeAll(ctx context.Context, stop <-chan struct{}) {
	for failing := false; ctx.Err() == nil; {
		lines := q.first()
		if len(lines) == 0 {
			select {
			case <-q.wake:
				continue
			case <-stop:
			}
			if len(q.first()) == 0 {
				return
			}
			continue
		}
		n, err := q.sink.Write(ctx, lines)
		q.took(n)
		if err == nil {
			if failing {
				q.log.Info("writing lines of metrics again", "lost", q.lost.Load())
			}
			failing = false
			continue
		}
		if !failing {
			q.log.Warn("failed to write lines of metrics, retrying", "error", err)
		}
		failing = true
		if !q.pause(stop) {
			return
		}
	}
}

// pause waits before the sink is tried again. It returns false if stop was closed before, and true at
// once when it is closed.
func (q *queue) pause(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
	}
	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	select {
	case <-stop:
	case <-timer.C:
	}
	return true
}
