package cluster

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// instancesKey holds who is there, see heartbeat.lua.
	instancesKey = "lg:instances"
	// instanceTTL is how long an entry lives after a beat. A proxy that beats once a
	// second may lose some in a row, to a failover for example; one that is killed
	// keeps its share no longer than that.
	instanceTTL = 5 * time.Second
	// sweepInterval is how often entries that have ended are looked for.
	sweepInterval = time.Second
	// maxInstances bounds the entries. The look at so many takes the store some
	// milliseconds; larger fleets give their number.
	maxInstances = 10_000
)

//go:embed scripts/heartbeat.lua
var heartbeatLua string

var beatScript = newScript(heartbeatLua)

// beatArgs are the arguments of a beat.
func beatArgs(id string) []string {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	return []string{id, ms(instanceTTL), ms(sweepInterval), strconv.Itoa(maxInstances)}
}

// Heartbeat says in the store that a proxy is there, and counts those that do. One
// goroutine may use it.
type Heartbeat struct {
	store *Store
	id    string // of this process, by chance
	args  []any

	count   int       // by the last beat that was answered; 0 before
	missed  bool      // a beat was not answered since
	believe time.Time // from when a smaller count is believed
}

// NewHeartbeat returns the heartbeat of this process. It begins with its first beat.
func (s *Store) NewHeartbeat() *Heartbeat {
	h := &Heartbeat{store: s, id: rand.Text()}
	for _, arg := range beatArgs(h.id) {
		h.args = append(h.args, arg)
	}
	return h
}

// Beat says that this proxy is there, for five seconds, and returns how many are:
// at least 1, at most 10,001.
//
// A store that lost the entries, or was away so long that they ended, first knows
// only those who came back before others. So for as long as an entry lives after a
// beat that was not answered, or that found the own entry gone, the count does not
// fall. With an error it returns how many there were, as far as the other masters
// remember, or 0.
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
		return h.count, fmt.Errorf("beat: %w", err)
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

// beat runs the script, and loads it where it is missing: it has done nothing then.
func (h *Heartbeat) beat(ctx context.Context) (n int, gone bool, err error) {
	c, err := h.client()
	if err != nil {
		return 0, false, err
	}
	keys := []string{instancesKey}
	reply, err := c.EvalSha(ctx, beatScript.sha, keys, h.args...).Int64Slice()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		if err := c.ScriptLoad(ctx, beatScript.text).Err(); err != nil {
			return 0, false, fmt.Errorf("load script: %w", err)
		}
		reply, err = c.EvalSha(ctx, beatScript.sha, keys, h.args...).Int64Slice()
	}
	if err != nil {
		return 0, false, err
	}
	if len(reply) != 2 || reply[0] < 1 || reply[0] > maxInstances+1 {
		return 0, false, fmt.Errorf("%w: %v to a beat", errReply, reply)
	}
	return int(reply[0]), reply[1] == 1, nil
}

// Leave takes the entry out. The next beat would bring it back.
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

// client returns the connections to the master of the key.
func (h *Heartbeat) client() (*redis.Client, error) { return h.store.owner(instancesKey) }
