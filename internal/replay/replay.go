// Package replay sends the requests of an access log through limits and reports the
// decisions.
//
// It drives the real decision pipeline: the same resolution, algorithms and merging that
// serve uses, on the log's own clock, or a running proxy. Requests are decided in the order of
// their times. Servers write a line when a request ends, so that logs are a little out of order:
// of up to windowLines lines the earliest is decided first. A log that is further out of order is
// refused unless it is sorted as a whole: decided at a later time, its requests would be denied
// that never were too many.
package replay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/accesslog"
	"github.com/limitgate/limitgate/limit"
)

// Options configure how lines become requests, and the pace.
type Options struct {
	Tenant *accesslog.Template
	Op     *accesslog.Template
	// Dims are further dimensions, by name.
	Dims map[string]*accesslog.Template
	// Sort sorts the log as a whole, which is held in memory then.
	Sort bool
	// Frozen makes the clock stand still at the first line.
	Frozen bool
	// Speed is the pace of requests to a proxy, as a multiple of the log's; 0 means as
	// fast as it answers.
	Speed float64
	// Secret hashes addresses, so that buckets have the same names as in a store whose
	// proxies hash with it; nil means a random secret.
	Secret []byte
	// ShowAddresses adds the addresses of clients to the names of buckets that have them hashed.
	ShowAddresses bool
	// Progress is called with the bytes and lines read so far; it may be nil.
	Progress func(bytesRead, lines int64)
	// Paced is called in the place of Progress if Speed is set, with the number of requests sent so far and the log's time of
	// the next one; it may be nil.
	Paced func(requests int64, at time.Time)
	// Warn is called with a sentence for each template that names what the log lacks; it may be nil.
	Warn func(text string)
}

// asked is one line of the log as a request.
type asked struct {
	req limit.Request
	at  time.Time
}

// outcome is the result of a request.
type outcome struct {
	allowed bool
	limitID string
	// degraded means that the store had no part in the decision.
	degraded bool
	// applied are the limits that applied to the request.
	applied []applied
}

// applied is one limit that applied to a request.
type applied struct {
	limit     *limit.Limit
	bucket    string
	wouldDeny bool
	refused   bool // the limit denies the request without a bucket
	// left is what the bucket had left, -1 if that is not known.
	left int64
}

// decider decides requests in their order. A slice it returns belongs to the
// requests of the same call; with an error it has those that were decided, or sent, before.
type decider interface {
	decide(ctx context.Context, batch []asked) ([]outcome, error)
}

// batchSize is the number of requests of a call to a decider: enough to avoid a wait for
// the proxy after each request, and no more than it decides at once.
const batchSize = 16

// The window of lines among which the earliest is decided first ends at windowLines lines, which
// are those of minutes of a busy server, or at windowBytes, since a log may have very long ones.
const (
	windowLines = 200_000
	windowBytes = 128 << 20
)

// errUnsorted is the error for a log that is further out of order than windowLines lines.
var errUnsorted = errors.New("the log is not in the order of time")

// ErrEmpty is returned for a log without a line.
var ErrEmpty = errors.New("read access log: it is empty")

// ErrNothing is returned for a log without a readable line.
var ErrNothing = errors.New("read access log: no line of it is in a format that limitgate reads (Common, Combined, JSON, Envoy, Application Load Balancer, CloudFront, IIS)")

// source reads a log as requests.
type source struct {
	opts   Options
	reader *accesslog.Reader
	window timeHeap // the lines among which the earliest is next
	held   int      // their bytes
	ended  bool     // the log has no more lines

	latest     time.Time // of the lines read so far
	clock      time.Time
	frozen     time.Time
	lines      int64
	outOfOrder int64
	unparsed   unparsed
	lacking    lacking
}

func newSource(log io.Reader, opts Options) (*source, error) {
	r, err := accesslog.NewReader(log)
	if err != nil {
		return nil, fmt.Errorf("read access log: %w", err)
	}
	return &source{opts: opts, reader: r}, nil
}

// read returns the next line that parses.
func (s *source) read() (accesslog.Entry, error) {
	for {
		e, err := s.reader.Next()
		if !errors.Is(err, io.EOF) {
			s.lines++
		}
		if s.opts.Progress != nil && s.opts.Speed == 0 {
			s.opts.Progress(s.reader.BytesRead(), s.lines)
		}
		var bad *accesslog.ParseError
		switch {
		case err == nil:
			if e.Time.Before(s.latest) {
				s.outOfOrder++
			} else {
				s.latest = e.Time
			}
			return e, nil
		case errors.As(err, &bad):
			s.unparsed.add(bad)
		case errors.Is(err, io.EOF):
			return e, io.EOF
		default:
			return e, fmt.Errorf("read access log: %w", err)
		}
	}
}

// next returns the next request, or io.EOF.
func (s *source) next() (asked, error) {
	e, err := s.earliest()
	if err != nil {
		return asked{}, err
	}
	s.clock = e.Time
	if s.frozen.IsZero() {
		s.frozen = e.Time
	}
	a := asked{req: s.request(&e), at: s.clock}
	if s.opts.Frozen {
		a.at = s.frozen
	}
	return a, nil
}

// earliest returns the earliest line of the window, or io.EOF.
func (s *source) earliest() (accesslog.Entry, error) {
	for !s.ended && (s.opts.Sort || len(s.window) < windowLines && s.held < windowBytes) {
		e, err := s.read()
		if errors.Is(err, io.EOF) {
			s.ended = true
			break
		}
		if err != nil {
			return e, err
		}
		if e.Time.Before(s.clock) {
			return e, fmt.Errorf("%w: line %d is of %s, and lines of %s are decided already; --sort holds the whole log in memory and sorts it",
				errUnsorted, e.Line, e.Time.Format(time.RFC3339), s.clock.Format(time.RFC3339))
		}
		n := s.reader.LineBytes()
		s.held += n
		heap.Push(&s.window, heldLine{e, n})
	}
	if len(s.window) == 0 {
		return accesslog.Entry{}, io.EOF
	}
	first := heap.Pop(&s.window).(heldLine)
	s.held -= first.bytes
	return first.Entry, nil
}

// heldLine is a line of the window. Its text holds the memory of all its bytes.
type heldLine struct {
	accesslog.Entry
	bytes int
}

// timeHeap is a heap of lines, with the earliest at the top. Lines of one time are in the order of
// the log.
type timeHeap []heldLine

func (h timeHeap) Len() int { return len(h) }

func (h timeHeap) Less(i, j int) bool {
	if !h[i].Time.Equal(h[j].Time) {
		return h[i].Time.Before(h[j].Time)
	}
	return h[i].Line < h[j].Line
}

func (h timeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *timeHeap) Push(e any) { *h = append(*h, e.(heldLine)) }

// Pop implements heap.Interface.
func (h *timeHeap) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = heldLine{} // whose text is free then
	*h = (*h)[:len(*h)-1]
	return last
}

// request maps a line to a request.
func (s *source) request(e *accesslog.Entry) limit.Request {
	req := limit.Request{Tenant: truncate(s.opts.Tenant.Expand(e), limit.MaxNameBytes), Op: s.opts.Op.Expand(e), Cost: 1}
	s.lacking.requests++
	if req.Tenant == noWord {
		s.lacking.tenant++
	}
	if req.Op == noWord {
		req.Op = ""
		s.lacking.op++
	}
	if e.User == "" || e.User == noWord {
		s.lacking.user++
	}
	if !strings.Contains(e.Target, "?") {
		s.lacking.query++
	}
	s.lacking.addOp(req.Op)
	if addr, err := netip.ParseAddr(e.RemoteAddr); err == nil && addr.Zone() == "" {
		req.Addr = addr.Unmap()
		s.lacking.addAddr(req.Addr)
	} else {
		s.lacking.ip++
	}
	for name, template := range s.opts.Dims {
		v := limit.FitValue(template.Expand(e)) // as /check has it
		if v == noWord {
			s.lacking.addDim(name)
			continue
		}
		req.Dims = append(req.Dims, limit.Dim{Name: name, Value: v})
	}
	return req
}

// truncate shortens s to at most n bytes of whole characters.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// interruptedError is the error of a replay that was cancelled: the number of requests that were decided or sent before.
type interruptedError int

func (e interruptedError) Error() string {
	return "interrupted after " + counted(int64(e), "request")
}

// Unwrap returns the error of a cancelled context.
func (interruptedError) Unwrap() error { return context.Canceled }

// run replays the log through d and calls each for every request with its outcome.
func run(ctx context.Context, log io.Reader, opts Options, d decider, each func(*asked, *outcome)) (*source, error) {
	s, err := newSource(log, opts)
	if err != nil {
		return nil, err
	}
	batch := make([]asked, 0, batchSize)
	decided := 0
	for done := false; !done; decided += len(batch) {
		batch = batch[:0]
		for len(batch) < batchSize {
			a, err := s.next()
			if errors.Is(err, io.EOF) {
				done = true
				break
			}
			if err != nil {
				return nil, err
			}
			batch = append(batch, a)
		}
		outcomes, err := d.decide(ctx, batch)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, interruptedError(decided + len(outcomes))
		}
		if err != nil {
			return nil, err
		}
		for i := range outcomes {
			each(&batch[i], &outcomes[i])
		}
	}
	if s.unparsed.total == 0 && s.clock.IsZero() {
		return nil, ErrEmpty
	}
	if s.clock.IsZero() {
		return nil, fmt.Errorf("%w: %s", ErrNothing, s.unparsed.first())
	}
	s.unparsed.warn(s.lines, &opts)
	s.lacking.warn(&opts)
	return s, nil
}
