package catalog

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFailuresAreLogged: while AWS refuses a follower it logs why, at once and then once a minute.
func TestFailuresAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb, updates, _, f := started(t, nil)
		text := &strings.Builder{}
		f.log = slog.New(slog.NewTextHandler(text, nil))
		tb.fail(errDown)
		following(t, f, func() {
			begin := time.Now()
			for time.Since(begin) < 10*time.Minute {
				updates <- received{err: errors.New("AccessDenied")}
				synctest.Wait()
				if text.Len() == 0 {
					t.Fatal("nothing is logged at once")
				}
			}
		})
		if n := strings.Count(text.String(), "the table is not followed"); n < 5 || n > 11 || !strings.Contains(text.String(), "AccessDenied") {
			t.Errorf("%d lines in ten minutes:\n%s", n, text)
		}
	})
}
