// Package replay sends the requests of an access log through limits and reports the
// decisions.
//
// It drives the real decision pipeline: the same resolution, algorithms and merging that
// serve uses, on the log's own clock, or a running proxy. The log's clock never runs
// backwards: a line with an earlier time than the line before is decided at the later
// time, and counted.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
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
	// Sort sorts the log by time first; the whole log is held in memory then.
	Sort bool
	// Frozen makes the clock stand still at the first line.
	Frozen bool
	// Speed is the pace of requests to a proxy, as a multiple of the log's; 0 means as
	// fast as it answers.
	Speed float64
	// Secret hashes addresses, so that buckets have the same names as in a store whose
	// proxies hash with it; nil means a random secret.
	Secret []byte
	// Progress is called with the bytes and lines read so far; it may be nil.
	Progress func(bytesRead, lines int64)
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
}

// decider decides requests in their order. A slice it returns belongs to the
// requests of the same call.
type decider interface {
	decide(ctx context.Context, batch []asked) ([]outcome, error)
}

// batchSize is the number of requests of a call to a decider: enough to avoid a wait for
// the proxy after each request, and no more than it decides at once.
const batchSize = 16

// ErrNothing is returned for a log without a readable line.
var ErrNothing = errors.New("read access log: no line of it is in Common or Combined Log Format")

// source reads a log as requests.
type source struct {
	opts   Options
	reader *accesslog.Reader
	sorted []accesslog.Entry // with Options.Sort

	clock      time.Time
	frozen     time.Time
	lines      int64
	outOfOrder int64
	unparsed   []string // the first few
	skipped    int64
}

// unparsedShown bounds the unparsed lines in a report.
const unparsedShown = 5

func newSource(log io.Reader, opts Options) (*source, error) {
	r, err := accesslog.NewReader(log)
	if err != nil {
		return nil, fmt.Errorf("read access log: %w", err)
	}
	s := &source{opts: opts, reader: r}
	if !opts.Sort {
		return s, nil
	}
	for {
		e, err := s.read()
		if errors.Is(err, io.EOF) {
			accesslog.Sort(s.sorted)
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		s.sorted = append(s.sorted, e)
	}
}

// read returns the next line that parses.
func (s *source) read() (accesslog.Entry, error) {
	for {
		e, err := s.reader.Next()
		s.lines++
		if s.opts.Progress != nil {
			s.opts.Progress(s.reader.BytesRead(), s.lines)
		}
		var bad *accesslog.ParseError
		switch {
		case err == nil:
			return e, nil
		case errors.As(err, &bad):
			s.skipped++
			if len(s.unparsed) < unparsedShown {
				s.unparsed = append(s.unparsed, fmt.Sprintf("line %d: %s", bad.Line, bad.Reason)) // not its text, which begins with an address
			}
		case errors.Is(err, io.EOF):
			return e, io.EOF
		default:
			return e, fmt.Errorf("read access log: %w", err)
		}
	}
}

// next returns the next request, or io.EOF.
func (s *source) next() (asked, error) {
	var e accesslog.Entry
	if s.opts.Sort {
		if len(s.sorted) == 0 {
			return asked{}, io.EOF
		}
		e, s.sorted = s.sorted[0], s.sorted[1:]
	} else {
		var err error
		if e, err = s.read(); err != nil {
			return asked{}, err
		}
	}
	if e.Time.Before(s.clock) {
		s.outOfOrder++
	} else {
		s.clock = e.Time
	}
	if s.frozen.IsZero() {
		s.frozen = e.Time
	}
	a := asked{req: s.request(&e), at: s.clock}
	if s.opts.Frozen {
		a.at = s.frozen
	}
	return a, nil
}

// request maps a line to a request.
func (s *source) request(e *accesslog.Entry) limit.Request {
	req := limit.Request{Tenant: cut(s.opts.Tenant.Expand(e), limit.MaxNameBytes), Op: s.opts.Op.Expand(e), Cost: 1}
	if req.Op == "-" {
		req.Op = ""
	}
	if addr, err := netip.ParseAddr(e.RemoteAddr); err == nil && addr.Zone() == "" {
		req.Addr = addr.Unmap()
	}
	for name, template := range s.opts.Dims {
		if v := cut(template.Expand(e), limit.MaxNameBytes); v != "-" {
			req.Dims = append(req.Dims, limit.Dim{Name: name, Value: v})
		}
	}
	return req
}

// cut shortens s to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// run replays the log through d and calls each for every request with its outcome.
func run(ctx context.Context, log io.Reader, opts Options, d decider, each func(*asked, *outcome)) (*source, error) {
	s, err := newSource(log, opts)
	if err != nil {
		return nil, err
	}
	batch := make([]asked, 0, batchSize)
	for done := false; !done; {
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
		if err != nil {
			return nil, err
		}
		for i := range outcomes {
			each(&batch[i], &outcomes[i])
		}
	}
	if s.skipped > 0 && s.clock.IsZero() {
		return nil, fmt.Errorf("%w: %s", ErrNothing, s.unparsed[0])
	}
	return s, nil
}
