package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// suggested are the limits of a first limits file: what they count by, and the bucket of a request.
var suggested = []struct {
	id, by string
	shared bool // by all tenants
	named  bool // comments have the bucket, which is no address and no tenant, such as a key of an API
	bucket func(a *asked) string
}{
	{"tenant", "tenant", false, false, func(a *asked) string { return a.req.Tenant }},
	{"op", "tenant, op", false, true, func(a *asked) string { return a.req.Op + opEnd + a.req.Tenant }},
	{"ip", "ip", true, false, func(a *asked) string {
		if !a.req.Addr.IsValid() {
			return ""
		}
		return a.req.Addr.String()
	}},
}

// opEnd ends the op in the name of a bucket. No op has it.
const opEnd = "\x00"

// Suggest returns a first limits file for the traffic of a log: limits by tenant, operation and
// address in the shadow, of twice the requests that the busiest bucket had in a minute. Comments say
// which rates would have denied a part of the traffic. The lines of the log that cannot be read are
// reported to notes.
func Suggest(ctx context.Context, log io.Reader, notes io.Writer, opts Options) ([]byte, error) {
	s, err := newSource(log, opts)
	if err != nil {
		return nil, err
	}
	counted := make([]*windows, len(suggested))
	for i := range counted {
		counted[i] = newWindows(time.Minute)
	}
	from, err := s.countSuggested(ctx, counted)
	if err != nil {
		return nil, err
	}
	writeUnparsed(notes, s.unparsed.total, s.unparsed.sample())
	s.unparsed.warn(s.lines, &opts)
	s.lacking.warn(&opts)
	s.lacking.warnOfPaths(nil, &opts)
	var plan, shared strings.Builder
	for i, l := range suggested {
		to, indent := &plan, "    "
		if l.shared {
			to, indent = &shared, "  "
		}
		counted[i].end()
		of := ""
		if op, _, _ := strings.Cut(counted[i].busiest, opEnd); l.named {
			of = " of " + strconv.QuoteToASCII(limit.Shorten(op)) // some characters would end the comment
		}
		counted[i].suggest(to, indent, l.id, l.by, of)
	}
	file := fmt.Sprintf("# Requests: %d, from %s to %s. The limits are twice what the busiest bucket had in a\n# minute, and in the shadow: they deny nothing until mode: enforce.\n",
		counted[0].total, stamp(&from), stamp(&s.clock))
	if opts.Tenant.String() == DefaultTenant {
		file += "# All of them count as one tenant, " + DefaultTenant + ": --tenant TEMPLATE says what of a line is the tenant, such as " + s.lacking.tenantFields() + ".\n"
	}
	return []byte(file + "version: 1\ndefault_plan: default\nplans:\n  default:\n" + orEmpty(plan.String(), "    ") + "shared:\n" + orEmpty(shared.String(), "  ")), nil
}

// countSuggested counts the requests of the log for each of suggested, and returns the time of the first one.
func (s *source) countSuggested(ctx context.Context, counted []*windows) (from time.Time, err error) {
	for ctx.Err() == nil {
		a, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return from, err
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
	switch {
	case ctx.Err() != nil:
		return from, fmt.Errorf("suggest limits: %w", ctx.Err())
	case from.IsZero() && s.unparsed.total == 0:
		return from, ErrEmpty
	case from.IsZero():
		return from, fmt.Errorf("%w: %s", ErrNothing, s.unparsed.first())
	}
	return from, nil
}

// orEmpty returns the lines of a list, and an empty list behind comments alone.
func orEmpty(lines, indent string) string {
	if strings.Contains(lines, "- {") {
		return lines
	}
	return lines + indent + "[]\n"
}

// suggest writes a limit for a minute. Of names the busiest bucket, or is "".
func (w *windows) suggest(to *strings.Builder, indent, id, by, of string) {
	little, ok := w.limitFor(0.001)
	if !ok {
		fmt.Fprintf(to, "%s# no limit by %s: the log has none, or too many in a minute\n", indent, by)
		return
	}
	more, _ := w.limitFor(0.01)
	if next, ok := w.outlier(); ok {
		of += fmt.Sprintf(", by one that stands out: no other %s had more than %d in a minute, and twice that is %d/m", strings.ReplaceAll(by, ", ", " and "), next, 2*next)
	}
	fmt.Fprintf(to, "%s# %d in the busiest minute, %s%s; in fixed windows %d/m would deny at most 0.1 %% of the requests, %d/m 1 %%; replay counts as the limit does\n", indent, w.most, w.at.UTC().Format("2006-01-02 15:04Z"), of, little, more)
	fmt.Fprintf(to, "%s- {id: %s, by: [%s], rate: %d/m, mode: shadow, on_error: open}\n", indent, id, by, 2*w.most)
}
