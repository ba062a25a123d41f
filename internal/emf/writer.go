package emf

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/limitgate/limitgate/internal/run"
)

// Options configure a Writer.
type Options struct {
	// Service is the dimension that all lines have.
	Service string
	// Snapshot reads the counters.
	Snapshot func() Snapshot
	// Sink receives the lines. The Writer closes it.
	Sink Sink
	Log  *slog.Logger
	// Now returns the time; nil is time.Now.
	Now func() time.Time
}

// Writer writes what was counted in each second: one line for each limit that decided, and one for
// the process.
type Writer struct {
	opts   Options
	queue  *queue
	limits map[string]Counts // totals that are written, by id
	totals Totals            // the same of the process
}

// New returns a writer, which writes while Run runs.
func New(o Options) *Writer {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Writer{opts: o, queue: newQueue(o.Sink, o.Log), limits: map[string]Counts{}}
}

// Lost returns the number of lines that found no room while the sink did not take any, and those
// that it had not taken at the end.
func (w *Writer) Lost() int64 { return w.queue.lost.Load() }

// Close releases the sink if Run is not called.
func (w *Writer) Close() { _ = w.queue.sink.Close() }

// Run writes lines until ctx ends, then those of the last part of a second, and closes the sink. It
// returns no error: a sink that fails is logged, and tried again.
func (w *Writer) Run(ctx context.Context) error { return run.Stages(ctx, w.count, w.queue.run) }

const (
	interval = time.Second
	// early is how much earlier than the end of a second a timer may end, as measured by a clock
	// that is being adjusted.
	early = 50 * time.Millisecond
)

// count queues the lines of each second soon after it, until ctx ends, and then those of the rest. If
// the process did not run for several seconds, the last of them has the counts of all.
func (w *Writer) count(ctx context.Context) error {
	for {
		now := w.opts.Now()
		end := now.Add(early).Truncate(interval).Add(interval)
		if !run.Sleep(ctx, end.Sub(now)) {
			w.write(w.opts.Now().Truncate(interval))
			return nil
		}
		w.write(w.opts.Now().Add(early).Truncate(interval).Add(-interval))
	}
}

// batchBytes is the size of lines at which they are queued together: a sink takes a batch by one
// call, and lines find room by whole batches.
const batchBytes = 256 << 10

// write queues the lines of everything that was counted since the last call.
func (w *Writer) write(second time.Time) {
	s := w.opts.Snapshot()
	totals := s.Totals.since(w.totals)
	w.totals = s.Totals
	line := processLine(w.opts.Service, second, &s, totals)
	lines := line.Append(nil)
	slices.SortFunc(s.Limits, func(a, b Limit) int { return cmp.Compare(a.ID, b.ID) })
	for i := range s.Limits {
		l := &s.Limits[i]
		c := l.Counts.since(w.limits[l.ID])
		if c.Allowed == 0 && c.Denied == 0 && c.WouldDeny == 0 {
			continue
		}
		w.limits[l.ID] = l.Counts
		line := limitLine(w.opts.Service, second, l, c)
		if lines = line.Append(lines); len(lines) >= batchBytes {
			w.queue.add(lines)
			lines = nil
		}
	}
	w.queue.add(lines)
}
