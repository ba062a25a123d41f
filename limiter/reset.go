package limiter

import (
	"context"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// Reset deletes the buckets of a tenant, only those of the limit id unless that is empty;
// without a tenant those of the shared limit id. It returns how many there were, and with
// an error how many of them are deleted. The store walks all keys of a node for it, so
// that a tenant without limits is skipped.
func (l *Limiter) Reset(ctx context.Context, tenant, id string) (int64, error) {
	if tenant != "" && !l.set.Load().CountsTenant(tenant) {
		return 0, nil
	}
	defer l.forget(tenant, id)
	l.forget(tenant, id)
	n, err := l.opts.Store.Reset(ctx, tenant, id)
	if err != nil || l.opts.Backstop == nil {
		return n, err
	}
	local, err := l.opts.Backstop.Reset(ctx, tenant, id)
	return n + local, err
}

// Forget deletes the bucket that inline limits have for a key, and reports whether it
// existed.
func (l *Limiter) Forget(ctx context.Context, key string) (bool, error) {
	name := limit.InlineName(key)
	forget := func() {
		if l.deny != nil {
			l.deny.forgetOne(name, l.instant(l.opts.Now()))
		}
	}
	defer forget()
	forget()
	if l.opts.Backstop != nil {
		l.opts.Backstop.Forget(name)
	}
	return l.opts.Store.Forget(ctx, name)
}

// forget drops what this proxy has cached and leased of buckets that are reset.
func (l *Limiter) forget(tenant, id string) {
	if l.deny != nil {
		l.deny.forget(l.instant(l.opts.Now()))
	}
	key := limit.SharedKeyPrefix(id)
	if tenant != "" {
		key = limit.TenantKey(tenant)
	}
	l.retries.forget(key)
	l.leases.forget(func(it *limit.Item) bool {
		return strings.HasPrefix(string(it.Name), key) && (id == "" || it.Limit.ID == id)
	})
}
