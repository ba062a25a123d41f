package catalog

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// TestRunPanics: a panic ends the Syncer, instead of leaving a proxy that looks healthy
// and receives no more updates.
func TestRunPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCatalog()
		updates := make(fakeUpdates)
		f := NewSyncer(c, newTable(shared, free), updates, "", nil)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.opts.Compile = func(map[string]json.RawMessage, bool) (*limit.Set, error) { panic("a mistake") }
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			_ = f.Run(t.Context())
		}()
		updates.send(of(acme))
		select {
		case what := <-ended:
			if what != "a mistake" {
				t.Errorf("it ends with %v", what)
			}
		case <-time.After(time.Hour):
			t.Error("it does not end")
		}
	})
}
