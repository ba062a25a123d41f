package proxy

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/breaker"
)

// replyError is an error reply of Redis.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

var _ redis.Error = replyError("")

// TestDescribeShard checks which error is that of a master, of the last call's and the ping's: a ping that fails for another reason is newer.
func TestDescribeShard(t *testing.T) {
	refused, password := io.EOF, replyError("NOAUTH Authentication required.")
	now := time.Now()
	for name, row := range map[string]struct {
		call, ping, want error
		isPing           bool
	}{
		"no call has failed":          {nil, password, password, true},
		"no ping has failed":          {refused, nil, refused, false},
		"both for one reason":         {refused, errors.Join(io.EOF), refused, false},
		"a node that is back":         {refused, password, password, true},
		"a node that went away":       {password, refused, refused, true},
		"a ping that is not answered": {password, context.DeadlineExceeded, password, false},
	} {
		want := cluster.Describe(row.want)
		if row.isPing {
			want = "ping: " + want
		}
		sh := cluster.Shard{Addr: "127.0.0.1:1", Status: breaker.Status{Err: row.call, Since: now.Add(-time.Second)}, Ping: row.ping}
		got := describeShard(sh, now)
		if got.Error != want || (got.Failing == time.Second) != (row.call != nil) {
			t.Errorf("%s: %q for %s, want %q", name, got.Error, got.Failing, want)
		}
	}
}
