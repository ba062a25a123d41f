package replay

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/accesslog"
)

// cancelling decides a number of batches, and cancels the replay during the one after them.
type cancelling struct {
	batches int
	some    int // how many requests of the last batch it decides
	cancel  context.CancelFunc
}

func (c *cancelling) decide(ctx context.Context, batch []asked) ([]outcome, error) {
	if c.batches--; c.batches < 0 {
		c.cancel()
		return make([]outcome, c.some), ctx.Err()
	}
	return make([]outcome, len(batch)), ctx.Err()
}

// TestInterrupted: a replay that is cancelled ends with the number of requests before.
func TestInterrupted(t *testing.T) {
	tenant, err := accesslog.ParseTemplate("web")
	if err != nil {
		t.Fatal(err)
	}
	line := `198.18.0.1 - - [01/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1` + "\n"
	for batches, want := range []string{"interrupted after 3 requests", "interrupted after 19 requests", "interrupted after 35 requests"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := run(ctx, strings.NewReader(strings.Repeat(line, 40)), Options{Tenant: tenant, Op: tenant}, &cancelling{batches, 3, cancel}, func(*asked, *outcome) {})
		if cancel(); !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
