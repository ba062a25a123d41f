package catalog

import (
	"context"
	"log/slog"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/controlplane/table"
)

const (
	// lookupPause is between two reads of tenants: what callers make up costs no more.
	lookupPause = 100 * time.Millisecond
	// lookupWaiting bounds the tenants that wait to be read: what comes beyond it is asked
	// for again by its next request, when others are done with.
	lookupWaiting = 64
	// lookupKnown bounds the tenants that were looked for, and lookupTTL is how long they
	// are not looked for again. At some 100 bytes each this is a megabyte.
	lookupKnown = 10_000
	lookupTTL   = time.Minute
)

// Getter reads an item.
type Getter interface {
	Get(ctx context.Context, key string) (it table.Item, ok bool, err error)
}

// TenantFetcher reads tenants that are not listed by themselves: one may have been written of which
// nobody was told. Run does the work, and decisions never wait for it. Any number of
// goroutines may call Want.
type TenantFetcher struct {
	catalog *Catalog
	table   Getter
	log     *slog.Logger
	known   *lru.Cache[string, time.Time] // until when a tenant is not looked for
	wanted  chan string
	sick    bool // the last one could not be read; Run's alone
}

// NewTenantFetcher returns the lookup of a catalog's tenants in a table.
func NewTenantFetcher(c *Catalog, t Getter) *TenantFetcher {
	known, err := lru.New[string, time.Time](lookupKnown)
	if err != nil {
		panic(err) // of a size that is none
	}
	return &TenantFetcher{catalog: c, table: t, log: c.opts.Log, known: known, wanted: make(chan string, lookupWaiting)}
}

// Request has a tenant that is not listed looked for, unless it was a moment ago.
func (l *TenantFetcher) Request(tenant string) {
	now := l.catalog.opts.Now()
	if until, ok := l.known.Peek(tenant); ok && now.Before(until) {
		return
	}
	if len(l.wanted) == cap(l.wanted) { // before anything is allocated: who has no room asks with each request
		return
	}
	tenant = strings.Clone(tenant)
	select {
	case l.wanted <- tenant:
		l.known.Add(tenant, now.Add(lookupTTL))
	default:
	}
}

// Run looks for tenants until ctx ends.
func (l *TenantFetcher) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case tenant := <-l.wanted:
			l.fetch(ctx, tenant)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookupPause):
		}
	}
}

// fetch reads a tenant. Where AWS does not answer it is looked for again when its time is up.
func (l *TenantFetcher) fetch(ctx context.Context, tenant string) {
	mark := l.catalog.Turn()
	it, ok, err := l.table.Get(ctx, table.PrefixTenant+tenant)
	if err != nil && !l.sick && ctx.Err() == nil {
		l.log.Error("tenants that are not known cannot be looked for", "error", err)
	}
	if l.sick = err != nil; err != nil || !ok {
		return
	}
	if fresh := l.catalog.Confirm([]table.Item{it}, mark); len(fresh) > 0 {
		l.log.Warn("a tenant was not known, and is read", "tenant", tenant, "version", it.Version)
	}
}
