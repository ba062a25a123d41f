package catalog

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// TestFailuresAreLogged: while AWS rejects the requests of a Syncer, it logs why, at
// once and then once a minute.
func TestFailuresAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb, updates, _, f := started(t, nil)
		text := new(syncbuffer.Buffer)
		f.log = slog.New(slog.NewTextHandler(text, nil))
		tb.fail(errDown)
		following(t, f, func() {
			begin := time.Now()
			for time.Since(begin) < 10*time.Minute {
				updates <- received{err: errors.New("AccessDenied")}
				synctest.Wait()
				if text.String() == "" {
					t.Fatal("nothing is logged at once")
				}
			}
		})
		if n := strings.Count(text.String(), "failed to sync limits with the table"); n < 5 || n > 11 || !strings.Contains(text.String(), "AccessDenied") {
			t.Errorf("%d lines in ten minutes:\n%s", n, text.String())
		}
	})
}

// TestTableWrittenAgain: a table that was emptied is read again soon after a digest or an item says that it
// has limits, and seldom without one.
func TestTableWrittenAgain(t *testing.T) {
	for name, message := range map[string]func(*fakeTable) table.Message{
		"digest": func(source *fakeTable) table.Message { return source.digest() },
		"item":   func(*fakeTable) table.Message { return of(shared) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, updates, _, f := started(t, nil)
				following(t, f, func() {
					kept := []table.Item{shared, free, pro}
					for i := range kept {
						source.remove(kept[i].Key)
					}
					if err := f.Refresh(t.Context()); !errors.Is(err, ErrEmpty) {
						t.Fatal(err)
					}
					before := source.scanned()
					for range 10 {
						time.Sleep(time.Second)
						updates.send(source.digest())
					}
					if n := source.scanned() - before; n != 0 {
						t.Errorf("%d scans of the empty table in ten seconds", n)
					}
					source.put(kept...)
					updates.send(message(source))
					time.Sleep(2 * readPause)
					updates.send()
					if st := f.Status(); st.Err != nil {
						t.Errorf("after a %s: %v", name, st.Err)
					}
				})
			})
		})
	}
}
