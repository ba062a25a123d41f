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
	// lookupPause is the pause between two reads of tenants, so that made-up tenant
	// names cannot cause more.
	lookupPause = 100 * time.Millisecond
	// lookupWaiting bounds the tenants that wait to be read. A tenant beyond it is
	// requested again by its next request.
	lookupWaiting = 64
	// lookupKnown bounds the tenants that were looked up, and lookupTTL is how long
	// they are not looked up again. At some 100 bytes each this is a megabyte.
	lookupKnown = 10_000
	lookupTTL   = time.Minute
)

// Getter reads an item.
type Getter interface {
	Get(ctx context.Context, key string) (it table.Item, ok bool, err error)
}

// TenantFetcher reads tenants that have no item of their own in the catalog: the
// message about a new tenant may have been lost. Run does the work, and decisions never
// wait for it. Any number of goroutines may call Request.
type TenantFetcher struct {
	catalog *Catalog
	table   Getter
	log     *slog.Logger
	known   *lru.Cache[string, time.Time] // the time until which a tenant is not looked up
	wanted  chan string
	sick    bool // the last read failed; used only by Run
}

// NewTenantFetcher returns a fetcher of a catalog's tenants from a table.
func NewTenantFetcher(c *Catalog, t Getter) *TenantFetcher {
	known, err := lru.New[string, time.Time](lookupKnown)
	if err != nil {
		panic(err) // only for an invalid size
	}
	return &TenantFetcher{catalog: c, table: t, log: c.opts.Log, known: known, wanted: make(chan string, lookupWaiting)}
}

// Request queues a tenant that the catalog does not list to be read, unless it was read
// within lookupTTL.
func (l *TenantFetcher) Request(tenant string) {
	now := l.catalog.opts.Now()
	if until, ok := l.known.Peek(tenant); ok && now.Before(until) {
		return
	}
	if len(l.wanted) == cap(l.wanted) { // before allocating: while the queue is full, each request gets here
		return
	}
	tenant = strings.Clone(tenant)
	select {
	case l.wanted <- tenant:
		l.known.Add(tenant, now.Add(lookupTTL))
	default:
	}
}

// Run reads requested tenants until ctx ends.
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

// fetch reads a tenant. After an error the tenant is not read again before lookupTTL
// has passed.
func (l *TenantFetcher) fetch(ctx context.Context, tenant string) {
	mark := l.catalog.Turn()
	it, ok, err := l.table.Get(ctx, table.PrefixTenant+tenant)
	if err != nil && !l.sick && ctx.Err() == nil {
		l.log.Error("failed to look up unknown tenants", "error", err)
	}
	if l.sick = err != nil; err != nil || !ok {
		return
	}
	if fresh := l.catalog.Confirm([]table.Item{it}, mark); len(fresh) > 0 {
		l.log.Warn("read tenant missing in the catalog", "tenant", tenant, "version", it.Version)
	}
}
