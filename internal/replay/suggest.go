package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// suggested are the limits of a first limits file: what they count by, and the bucket of a request.
var suggested = []struct {
	id, by, where string
	bucket        func(a *asked) string
}{
	{"tenant", "tenant", "plans:\n  default:\n    ", func(a *asked) string { return a.req.Tenant }},
	{"op", "tenant, op", "    ", func(a *asked) string { return a.req.Tenant + " " + a.req.Op }},
	{"ip", "ip", "shared:\n  ", func(a *asked) string {
		if !a.req.Addr.IsValid() {
			return ""
		}
		return a.req.Addr.String()
	}},
}

// Suggest returns a first limits file for the traffic of a log: limits by tenant, operation and
// address in the shadow, of twice the requests that the busiest bucket had in a minute. Comments say
// which rates would have denied a part of the traffic.
func Suggest(ctx context.Context, log io.Reader, opts Options) ([]byte, error) {
	s, err := newSource(log, opts)
	if err != nil {
		return nil, err
	}
	counted := make([]*windows, len(suggested))
	for i := range counted {
		counted[i] = newWindows(time.Minute)
	}
	var from time.Time
	for ctx.Err() == nil {
		a, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if from.IsZero() {
			from = a.at
		}
		for i := range suggested {
			if bucket := suggested[i].bucket(&a); bucket != "" {
				counted[i].add(bucket, a.at)
			}
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("suggest limits: %w", ctx.Err())
	}
	if from.IsZero() && len(s.unparsed) == 0 {
		return nil, errors.New("read access log: it is empty")
	}
	if from.IsZero() {
		return nil, fmt.Errorf("%w: %s", ErrNothing, s.unparsed[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Requests: %d, from %s to %s. The limits are twice what the busiest bucket had in a\n# minute, and in the shadow: they deny nothing until mode: enforce.\nversion: 1\ndefault_plan: default\n",
		counted[0].total, stamp(&from), stamp(&s.clock))
	for i, l := range suggested {
		w := counted[i]
		w.end()
		if w.total == 0 || w.skipped {
			fmt.Fprintf(&b, "# no limit by %s: the log has no address, or too many in a minute\n", l.by)
			continue
		}
		b.WriteString(l.where)
		little, _ := w.limitFor(0.001)
		more, _ := w.limitFor(0.01)
		fmt.Fprintf(&b, "# %d in the busiest minute; %d/m would deny at most 0.1 %% of the requests, %d/m 1 %%\n", w.most, little, more)
		indent := strings.Repeat(" ", len(l.where)-strings.LastIndexByte(l.where, '\n')-1)
		fmt.Fprintf(&b, "%s- {id: %s, by: [%s], rate: %d/m, mode: shadow, on_error: open}\n", indent, l.id, l.by, 2*w.most)
	}
	return []byte(b.String()), nil
}
