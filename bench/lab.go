package bench

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/internal/servers"
)

//go:embed gcra.lua
var gcraText string

// gcraSHA is the SHA-1 by which Redis identifies the yardstick's script.
var gcraSHA = func() string {
	sum := sha1.Sum([]byte(gcraText))
	return hex.EncodeToString(sum[:])
}()

// masters is the number of masters of the cluster.
const masters = 3

// lab holds the servers of the cases. They are started when a case first needs them, and
// ended by close.
type lab struct {
	binary   string // path of limitgate
	folder   string
	settings Settings
	files    int
	running  string                           // the name of the running case
	profiles string                           // the folder for profiles, or empty
	say      func(format string, args ...any) // shows the progress of a case

	redis      *backend
	cell       *backend // a Redis with redis-cell
	cellModule string   // the file of the module, or empty
	// envoyRatelimit is a binary of envoyproxy/ratelimit, or empty.
	envoyRatelimit string
	cluster        *servers.Cluster
	tls            *encryption // of the proxies that have it
}

func newLab(binary string, settings Settings, say func(string, ...any)) (*lab, error) {
	folder, err := os.MkdirTemp("", "limitgate-bench-")
	if err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	return &lab{binary: binary, folder: folder, settings: settings, say: say}, nil
}

// close ends all servers and removes their files.
func (l *lab) close() error {
	var errs []error
	for _, b := range []*backend{l.redis, l.cell} {
		if b != nil {
			errs = append(errs, b.nodes[0].Close())
		}
	}
	if l.cluster != nil {
		errs = append(errs, l.cluster.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(l.folder))...)
}

// newFolder returns a new folder for a server.
func (l *lab) newFolder() (string, error) {
	l.files++
	path := filepath.Join(l.folder, "server-"+strconv.Itoa(l.files))
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("create folder: %w", err)
	}
	return path, nil
}

// writeFile writes a file for a proxy, and returns its path.
func (l *lab) writeFile(name string, text []byte) (path string, err error) {
	path = filepath.Join(l.folder, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write file for limitgate: %w", err)
	}
	return path, nil
}

// backend is a store, empty and with the yardstick's script: one Redis, or the masters of
// a cluster.
type backend struct {
	nodes []*servers.Node
	// owner returns the node that owns a hash slot.
	owner func(slot uint16) int
}

func (b *backend) addrs() []string {
	addrs := make([]string, len(b.nodes))
	for i, n := range b.nodes {
		addrs[i] = n.Addr
	}
	return addrs
}

func (b *backend) pids() []int {
	pids := make([]int, len(b.nodes))
	for i, n := range b.nodes {
		pids[i] = n.PID()
	}
	return pids
}

// ownRedis starts a Redis, with further arguments, that the caller ends.
func (l *lab) ownRedis(args ...string) (*backend, error) {
	folder, err := l.newFolder()
	if err != nil {
		return nil, err
	}
	node, err := servers.StartNode(folder, args...)
	if err != nil {
		return nil, err
	}
	return &backend{nodes: []*servers.Node{node}, owner: func(uint16) int { return 0 }}, nil
}

// single returns the one Redis.
func (l *lab) single(ctx context.Context) (*backend, error) {
	if l.redis == nil {
		b, err := l.ownRedis()
		if err != nil {
			return nil, err
		}
		l.redis = b
	}
	return l.redis, l.redis.empty(ctx)
}

// clustered returns the cluster without replicas.
func (l *lab) clustered(ctx context.Context) (*backend, error) {
	if l.cluster == nil {
		folder, err := l.newFolder()
		if err != nil {
			return nil, err
		}
		if l.cluster, err = servers.StartCluster(ctx, folder, masters, 0); err != nil {
			return nil, err
		}
	}
	b := &backend{nodes: l.cluster.Nodes[:masters], owner: l.cluster.FirstOwner}
	return b, b.empty(ctx)
}

func (b *backend) empty(ctx context.Context) error {
	for _, node := range b.nodes {
		if _, err := node.Ask(ctx, "FLUSHALL", "SYNC"); err != nil {
			return err
		}
		if _, err := node.Ask(ctx, "SCRIPT", "LOAD", gcraText); err != nil {
			return err
		}
	}
	return nil
}

// executions is how often a command was called, by clients and scripts, and how long that
// took by the server's own clock.
type executions struct{ calls, micros int64 }

// keysRead is the entry of the keys that commands read, in place of a command: an MGET reads many.
const keysRead = "keys read"

// commands returns the executions of each command.
func (b *backend) commands(ctx context.Context) (map[string]executions, error) {
	commands := make(map[string]executions)
	for _, node := range b.nodes {
		fields, err := node.Fields(ctx, "INFO", "commandstats")
		if err != nil {
			return nil, err
		}
		for name, stats := range fields {
			name, found := strings.CutPrefix(name, "cmdstat_")
			if !found {
				continue
			}
			e := commands[name]
			var calls, micros int64
			if _, err := fmt.Sscanf(stats, "calls=%d,usec=%d,", &calls, &micros); err != nil {
				return nil, fmt.Errorf("read command statistics %q: %w", stats, err)
			}
			commands[name] = executions{e.calls + calls, e.micros + micros}
		}
		read, err := node.Fields(ctx, "INFO", "stats")
		if err != nil {
			return nil, err
		}
		for _, name := range [...]string{"keyspace_hits", "keyspace_misses"} {
			n, err := strconv.ParseInt(read[name], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			commands[keysRead] = executions{calls: commands[keysRead].calls + n}
		}
	}
	return commands, nil
}

// patience are flags for long timeouts with an overloaded store: the benchmark measures
// the store's decisions, not those of the backstop.
var patience = []string{"--decision-timeout", "5s", "--redis-io-timeout", "10s"}

// start starts a limitgate with the limits.
func (l *lab) start(limits string, store *backend, flags ...string) (*servers.Limitgate, error) {
	return l.startWith(nil, limits, store, flags...)
}

// startWith is like start, with additional environment variables.
func (l *lab) startWith(environment []string, limits string, store *backend, flags ...string) (*servers.Limitgate, error) {
	l.files++
	path, err := l.writeFile("limits-"+strconv.Itoa(l.files)+".yaml", []byte(limits))
	if err != nil {
		return nil, err
	}
	// Heartbeats would be counted with the commands of decisions.
	flags = append([]string{"--limits", path, "--instances", "1"}, flags...)
	if l.profiles != "" || l.explains() {
		flags = append(flags, "--pprof")
	}
	if store != nil {
		flags = append(flags, "--redis", strings.Join(store.addrs(), ","))
	}
	return servers.StartLimitgateWith(environment, l.binary, flags...)
}
