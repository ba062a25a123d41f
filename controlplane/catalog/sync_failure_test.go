package catalog

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
