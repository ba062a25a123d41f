package cluster

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/resp"
)

const (
	// instancesKey is the key of the entries of all proxies, see heartbeat.lua.
	instancesKey = "lg:instances"
	// instanceTTL is the lifetime of an entry after a beat. A proxy that beats once a
	// second may lose several beats in a row, for example during a failover. A killed proxy
	// keeps its share no longer than that.
	instanceTTL = 5 * time.Second
	// sweepInterval is the interval between searches for expired entries.
	sweepInterval = time.Second
	// maxInstances bounds the entries. Reading that many takes the store some milliseconds;
	// larger fleets configure their number.
	maxInstances = 10_000
)

//go:embed scripts/heartbeat.lua
var heartbeatLua string

var beatScript = newScript(heartbeatLua)

// beatArgs returns the arguments of a beat.
func beatArgs(id string) []string {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	return []string{id, ms(instanceTTL), ms(sweepInterval), strconv.Itoa(maxInstances)}
}

// Heartbeat registers a proxy in the store and counts the registered proxies. It is not
// safe for concurrent use.
type Heartbeat struct {
	store *Store
	id    string // random id of this process
	args  []any

	count   int       // from the last answered beat; 0 before
	missed  bool      // a beat has failed since
	believe time.Time // time from which a smaller count is accepted
}

// NewHeartbeat returns the heartbeat of this process. Its first Beat registers the process.
func (s *Store) NewHeartbeat() *Heartbeat {
	h := &Heartbeat{store: s, id: rand.Text()}
	for _, arg := range beatArgs(h.id) {
		h.args = append(h.args, arg)
	}
	return h
}

// Beat registers this proxy for five seconds and returns the number of registered proxies:
// at least 1, at most 10,001.
//
// A store that lost the entries, or was unavailable until they expired, at first knows only
// the proxies that returned before the others. So the count does not fall for instanceTTL
// after a beat that follows a failed one, or that found this proxy's entry missing. With an
// error Beat returns the last count, or the number that the other masters remember, or 0.
func (h *Heartbeat) Beat(ctx context.Context) (int, error) {
	n, gone, err := h.beat(ctx)
	if err != nil {
		h.missed = true
		if h.count == 0 {
			h.count = h.store.rememberedInstances(ctx)
		}
		if kindOf(err).needsReload() {
			h.store.requestReload()
		}
		return h.count, fmt.Errorf("send heartbeat: %w", explained(err))
	}
	now := time.Now()
	if h.count > 0 && (gone || h.missed) {
		h.believe = now.Add(instanceTTL)
	}
	if now.Before(h.believe) {
		n = max(n, h.count)
	}
	h.count, h.missed = n, false
	if h.store.instances.Swap(int64(n)) != int64(n) {
		h.store.counted.Store(true)
	}
	return n, nil
}

// beat runs the script.
func (h *Heartbeat) beat(ctx context.Context) (n int, gone bool, err error) {
	c, err := h.client()
	if err != nil {
		return 0, false, err
	}
	reply, err := beatScript.run(ctx, c, []string{instancesKey}, h.args...).Int64Slice()
	if err != nil {
		return 0, false, err
	}
	if len(reply) != 2 || reply[0] < 1 || reply[0] > maxInstances+1 {
		return 0, false, fmt.Errorf("%w: %v to a beat", resp.ErrReply, reply)
	}
	return int(reply[0]), reply[1] == 1, nil
}

// Leave removes the entry. The next beat would add it again.
func (h *Heartbeat) Leave(ctx context.Context) error {
	c, err := h.client()
	if err != nil {
		return err
	}
	if err := c.HDel(ctx, instancesKey, h.id).Err(); err != nil {
		return fmt.Errorf("remove heartbeat: %w", err)
	}
	return nil
}

// client returns the client of the master that owns the key.
func (h *Heartbeat) client() (*redis.Client, error) { return h.store.owner(instancesKey) }
