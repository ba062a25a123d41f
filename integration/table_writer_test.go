package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

// tenantWriter writes tenants, each change with a limit of its own.
type tenantWriter struct {
	table *dynamo.Table
	mu    sync.Mutex // guards the fields below
	next  int64
	was   map[string]int64 // versions by key
	acks  []time.Duration  // durations of the writes
	made  []tables.Item    // all written items
}

func newTenantWriter(table *dynamo.Table) *tenantWriter {
	return &tenantWriter{table: table, was: map[string]int64{}}
}

// limit returns a limit that no other write has.
func (w *tenantWriter) limit() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	return 1000 + w.next
}

// tenantBody returns a tenant with a limit of its own.
func tenantBody(limit int64) string {
	return fmt.Sprintf(`{"plan":"free","overrides":{"tenant":{"rate":"%d/s"}}}`, limit)
}

// put writes an item as its next version, as a tombstone if the body is empty. The result
// of a write that failed is unknown, so the next one reads the version first. Only one
// goroutine may write an item.
func (w *tenantWriter) put(ctx context.Context, key, body string) (tables.Item, error) {
	w.mu.Lock()
	was := w.was[key]
	w.mu.Unlock()
	if was < 0 {
		found, _, err := w.table.Get(ctx, key)
		if err != nil {
			return found, err
		}
		was = found.Version
	}
	begun := time.Now()
	it := tables.Item{Key: key, Version: was, Body: json.RawMessage(body), Deleted: body == "", Actor: "test", At: begun.UTC()}
	written, err := w.table.Put(ctx, it)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.was[key] = written.Version
	if err != nil {
		w.was[key] = -1
		return written, err
	}
	w.acks = append(w.acks, time.Since(begun))
	w.made = append(w.made, written)
	return written, nil
}

// written returns all written items.
func (w *tenantWriter) written() []tables.Item {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.made)
}
