package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

// remote sends requests to a running proxy, over one connection, in the order of the log.
// It resolves the limits of a request itself, from the limits file: the replies name only
// the binding one.
type remote struct {
	client *redis.Client
	set    *limit.Set
	addrs  *limit.AddrHasher
	buffer limit.Buffer
	speed  float64
	paced  func(requests int64, at time.Time)
	sent   int64
	// begun is the time at which the first request was sent, and first its time in the
	// log.
	begun, first time.Time
}

// errNoTenant is about a request that a proxy would take for one of the tenant of its user.
var errNoTenant = errors.New("a line of the log has no value for --tenant, and a proxy takes no tenant -: write text in front of the field, such as --tenant 'key-{query:key}'")

func newRemote(client *redis.Client, set *limit.Set, opts Options) (*remote, error) {
	addrs, err := newHasher(opts.Secret)
	if err != nil {
		return nil, err
	}
	return &remote{client: client, set: set, addrs: addrs, speed: opts.Speed, paced: opts.Paced}, nil
}

func (r *remote) decide(ctx context.Context, batch []asked) ([]outcome, error) {
	if slices.ContainsFunc(batch, func(a asked) bool { return a.req.Tenant == noWord }) {
		return nil, errNoTenant
	}
	out := make([]outcome, 0, len(batch))
	for len(batch) > 0 {
		n, err := r.due(ctx, batch)
		if err != nil {
			return out, err
		}
		some, err := r.send(ctx, batch[:n])
		if err != nil {
			return out[:len(out)+n], fmt.Errorf("ask proxy: %w", err) // the proxy may have decided these
		}
		out, batch = append(out, some...), batch[n:]
	}
	return out, nil
}

// due waits until the first request is due, and returns the number of due requests.
func (r *remote) due(ctx context.Context, batch []asked) (int, error) {
	if r.speed <= 0 {
		return len(batch), nil
	}
	if r.begun.IsZero() {
		r.begun, r.first = time.Now(), batch[0].at
	}
	when := func(a *asked) time.Time {
		return r.begun.Add(time.Duration(float64(a.at.Sub(r.first)) / r.speed))
	}
	if r.paced != nil {
		r.paced(r.sent, batch[0].at)
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(time.Until(when(&batch[0]))):
	}
	n, now := 1, time.Now()
	for n < len(batch) && !when(&batch[n]).After(now) {
		n++
	}
	r.sent += int64(n)
	return n, nil
}

func (r *remote) send(ctx context.Context, batch []asked) ([]outcome, error) {
	pipe := r.client.Pipeline()
	replies := make([]*redis.Cmd, len(batch))
	for i := range batch {
		replies[i] = pipe.Do(ctx, checkArgs(&batch[i].req)...)
	}
	_, _ = pipe.Exec(ctx) // every reply carries its own error
	out := make([]outcome, len(batch))
	for i, cmd := range replies {
		fields, err := cmd.Slice()
		if err != nil {
			return nil, err
		}
		if len(fields) < 7 {
			return nil, fmt.Errorf("%d fields are not a decision: is that a limitgate?", len(fields))
		}
		id, _ := fields[5].(string)
		source, _ := fields[6].(string)
		r.buffer.Reset()
		r.set.Resolve(&batch[i].req, r.addrs, batch[i].at.UnixMicro(), &r.buffer)
		out[i] = outcome{
			allowed: fields[0] == int64(1), limitID: id, applied: appliedOf(r.buffer.Items),
			degraded: source == "backstop" || source == "policy" && r.counts(id) && !refuses(r.buffer.Items, id),
		}
	}
	return out, nil
}

// refuses reports whether a limit denies a request without a bucket.
func refuses(items []limit.Item, id string) bool {
	return slices.ContainsFunc(items, func(it limit.Item) bool { return it.Limit.ID == id && it.Refused() })
}

// counts reports whether a limit counts: policy decides by such a limit only when the
// store cannot, or where the request lacks a dimension.
func (r *remote) counts(id string) bool {
	l := r.set.LimitByID(id)
	return l != nil && l.Action == limit.ActionLimit
}

// version returns the version of the proxy's limits.
func (r *remote) version(ctx context.Context) (string, error) {
	pairs, err := r.client.Do(ctx, "RL.CONFIG", "VERSION").Slice()
	if err != nil {
		return "", fmt.Errorf("ask proxy: %w", err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "version" {
			return fmt.Sprint(pairs[i+1]), nil
		}
	}
	return "", nil
}

// checkArgs is the RL.CHECK command of a request.
func checkArgs(req *limit.Request) []any {
	op, ip := req.Op, "-"
	if op == "" {
		op = "-"
	}
	if req.Addr.IsValid() {
		ip = req.Addr.String()
	}
	args := []any{"RL.CHECK", req.Tenant, op, ip, req.Cost}
	for _, d := range req.Dims {
		args = append(args, "DIM", d.Name, d.Value)
	}
	return args
}
