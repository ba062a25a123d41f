package tablemodel

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// tableName is the name of the table, for snapshots.
const tableName = "dynamodb://limits"

// proxy is a proxy, running or not, of the table.
type proxy struct {
	table    *model
	queue    *queue
	snapshot string
	skew     time.Duration // of its clock

	*catalog.Catalog
	follower *catalog.Syncer // nil while it does not run
	lookup   *catalog.TenantFetcher
	stop     context.CancelFunc
	done     sync.WaitGroup
}

func compile(parts map[string]json.RawMessage, _ bool) (*limit.Set, error) {
	set, _, err := config.CompileParts(tableName, parts, limit.CompileOptions{})
	return set, err
}

// start starts the proxy, which ends again if it has no limits.
func (p *proxy) start() {
	if p.follower != nil {
		return
	}
	p.Catalog = catalog.New(catalog.Options{
		Name: tableName, Compile: compile, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(p.skew) },
	})
	follower := catalog.NewSyncer(p.Catalog, p.table, p.queue, p.snapshot, nil)
	if follower.Start(context.Background()) != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	p.follower, p.stop = follower, stop
	p.done.Go(func() { _ = follower.Run(ctx) })
	p.lookup = catalog.NewTenantFetcher(p.Catalog, p.table)
	p.done.Go(func() { _ = p.lookup.Run(ctx) })
}

func (p *proxy) end() {
	if p.follower == nil {
		return
	}
	p.stop()
	p.done.Wait()
	p.follower = nil
}

// stale returns the error by which the proxy reports that its limits may differ from
// the table's, or "".
func (p *proxy) stale() string {
	stale := p.Catalog.Status().Error
	if err := p.follower.Status().Err; err != nil {
		stale += err.Error()
	}
	return stale
}

// account describes a set for tenants: their plans and their limits.
func account(set *limit.Set) string {
	var b strings.Builder
	for _, tenant := range append(tenants, "not listed") {
		fmt.Fprintf(&b, "%s on %q:", tenant, set.Plan(tenant))
		for _, l := range set.TenantLimits(tenant) {
			fmt.Fprintf(&b, " %s=%s", l.ID, l.Describe())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// truth returns the account of the limits items of a table. Compiles reports whether
// they can be used at all, and clean whether, in addition, no key holds an invalid
// limits item.
func truth(items map[string]table.Item) (said string, compiles, clean bool) {
	parts := map[string]json.RawMessage{}
	clean = true
	for key, it := range items {
		switch {
		case !it.IsLimits():
			clean = false
		case !it.Deleted:
			parts[key] = it.Body
		}
	}
	set, err := compile(parts, true)
	if err != nil {
		return "", false, false
	}
	return account(set), true, clean
}
