package drill

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// MarkKey is the key by which a store says that it is for tests, and markValue its value.
const (
	MarkKey   = "lg:test-store"
	markValue = "yes"
)

// ErrNotMarked is returned for a store that does not say that it is for tests.
var ErrNotMarked = errors.New("the store is not marked as one for tests")

// Store is the Redis or Redis Cluster that a drill disturbs. One goroutine at a time may use it.
type Store struct {
	dial    func(addr string) *redis.Client
	clients map[string]*redis.Client
	// seed is the address that answered.
	seed    string
	cluster bool
	shards  []shard
}

// shard is a master, its replicas and its hash slots.
type shard struct {
	master   string
	id       string // of the master in a cluster
	replicas []string
	slots    [][2]int
}

// OpenStore finds the masters behind the first of addrs that answers. Dial returns a client of one
// node. The caller closes the store.
func OpenStore(ctx context.Context, addrs []string, dial func(addr string) *redis.Client) (*Store, error) {
	s := &Store{dial: dial, clients: map[string]*redis.Client{}}
	var errs []error
	for _, addr := range addrs {
		err := s.discover(ctx, addr)
		if err == nil {
			return s, nil
		}
		errs = append(errs, fmt.Errorf("find masters by %s: %w", addr, err))
	}
	s.Close()
	return nil, errors.Join(errs...)
}

// Close closes the connections.
func (s *Store) Close() {
	for _, c := range s.clients {
		_ = c.Close()
	}
}

// client returns the client of a node.
func (s *Store) client(addr string) *redis.Client {
	if s.clients[addr] == nil {
		s.clients[addr] = s.dial(addr)
	}
	return s.clients[addr]
}

// discover reads the masters from a node.
func (s *Store) discover(ctx context.Context, addr string) error {
	slots, err := s.client(addr).ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS does not exist before Redis 7
	s.seed = addr
	if err != nil && strings.Contains(err.Error(), "cluster support disabled") {
		role, err := s.role(ctx, addr)
		if err == nil && role != "master" {
			err = fmt.Errorf("its role is %s: give the address of its master", role)
		}
		s.shards = []shard{{master: addr}}
		return err
	}
	s.cluster = true
	s.shards = shardsOf(slots, addr)
	if err == nil && len(s.shards) == 0 {
		err = errors.New("no master has hash slots")
	}
	return err
}

// shardsOf returns the shards of a reply of CLUSTER SLOTS from a node.
func shardsOf(slots []redis.ClusterSlot, from string) []shard {
	var shards []shard
	for _, r := range slots {
		if len(r.Nodes) == 0 {
			continue
		}
		master := addrOf(r.Nodes[0].Addr, from)
		i := slices.IndexFunc(shards, func(s shard) bool { return s.master == master })
		if i < 0 {
			i = len(shards)
			shards = append(shards, shard{master: master, id: r.Nodes[0].ID})
			for _, n := range r.Nodes[1:] {
				shards[i].replicas = append(shards[i].replicas, addrOf(n.Addr, from))
			}
		}
		shards[i].slots = append(shards[i].slots, [2]int{r.Start, r.End})
	}
	return shards
}

// addrOf returns the address of a node, which has no host if it is that of the node that was asked.
func addrOf(addr, from string) string {
	if host, port, err := net.SplitHostPort(addr); err == nil && host == "" {
		host, _, _ = net.SplitHostPort(from)
		return net.JoinHostPort(host, port)
	}
	return addr
}

// Masters returns the addresses of the masters.
func (s *Store) Masters() []string {
	var all []string
	for _, shard := range s.shards {
		all = append(all, shard.master)
	}
	slices.Sort(all)
	return all
}

// owner returns the shard of a key.
func (s *Store) owner(ctx context.Context, key string) (shard, error) {
	if !s.cluster {
		return s.shards[0], nil
	}
	slot, err := s.client(s.seed).ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return shard{}, fmt.Errorf("find hash slot: %w", err)
	}
	for _, shard := range s.shards {
		for _, r := range shard.slots {
			if int(slot) >= r[0] && int(slot) <= r[1] {
				return shard, nil
			}
		}
	}
	return shard{}, fmt.Errorf("find master: no master serves hash slot %d", slot)
}

// replicas returns the addresses of the replicas of a shard. CLUSTER SLOTS has the names by which
// nodes want to be called, but leaves replicas out that have not reported their data yet.
func (s *Store) replicas(ctx context.Context, of shard) ([]string, error) {
	lines, err := s.client(of.master).Do(ctx, "CLUSTER", "REPLICAS", of.id).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("list replicas of %s: %w", of.master, err)
	}
	all := slices.Clone(of.replicas)
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		name, _, _ := strings.Cut(fields[1], "@") // HOST:PORT@BUS-PORT
		if addr := addrOf(name, of.master); !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all, nil
}

// CheckMark returns ErrNotMarked unless the store says that it is for tests.
func (s *Store) CheckMark(ctx context.Context) error {
	o, err := s.owner(ctx, MarkKey)
	if err != nil {
		return err
	}
	value, err := s.client(o.master).Get(ctx, MarkKey).Result()
	if errors.Is(err, redis.Nil) || err == nil && value != markValue {
		return ErrNotMarked
	}
	if err != nil {
		return fmt.Errorf("read mark: %w", err)
	}
	return nil
}

// role returns the role that a node reports.
func (s *Store) role(ctx context.Context, addr string) (string, error) {
	reply, err := s.client(addr).Do(ctx, "ROLE").Slice()
	if err != nil {
		return "", fmt.Errorf("read role: %w", err)
	}
	if len(reply) == 0 {
		return "", errors.New("read role: the reply is empty")
	}
	return fmt.Sprint(reply[0]), nil
}
