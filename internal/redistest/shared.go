package redistest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

// Every test binary has at most one server and one cluster to share. The first test that
// needs one starts it.
var (
	sharedMutex   sync.Mutex
	sharedFolder  string // empty unless Main runs
	sharedNode    shared[*Node]
	sharedCluster shared[*Cluster]
)

// shared is a server or cluster that is started once, successfully or not.
type shared[T interface{ Close() error }] struct {
	started bool
	value   T
	err     error
}

func (s *shared[T]) get(start func() (T, error)) (T, error) {
	if !s.started {
		s.started = true
		s.value, s.err = start()
	}
	return s.value, s.err
}

// close ends the server or cluster if it was started.
func (s *shared[T]) close() error {
	if running := s.started && s.err == nil; running {
		return s.value.Close()
	}
	return nil
}

// Main runs the tests of a package that shares servers, ends the servers and
// returns the exit code. Call it from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
func Main(m *testing.M) int {
	folder, err := os.MkdirTemp("", "limitgate-redistest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "create folder for shared redis servers:", err)
		return 1
	}
	sharedFolder = folder
	code := m.Run()
	if err := errors.Join(sharedNode.close(), sharedCluster.close(), os.RemoveAll(folder)); err != nil {
		fmt.Fprintln(os.Stderr, "end shared redis servers:", err)
		return 1
	}
	return code
}

// SharedNode returns the single server that the tests of this binary share. Tests share
// its keys: use keys of your own. Never kill, stop or reconfigure it.
func SharedNode(tb testing.TB) *Node {
	tb.Helper()
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	node, err := sharedNode.get(func() (*Node, error) {
		folder, err := makeSharedFolder("single")
		if err != nil {
			return nil, err
		}
		node, err := servers.StartNode(folder)
		return &Node{node}, err
	})
	if err != nil {
		tb.Fatalf("start shared redis: %v", err)
	}
	return node
}

// SharedCluster returns the cluster of three masters with a replica each that the tests
// of this binary share. Tests share its keys: use keys of your own. Never kill, stop or
// reconfigure its nodes.
func SharedCluster(tb testing.TB) *Cluster {
	tb.Helper()
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	cluster, err := sharedCluster.get(func() (*Cluster, error) {
		folder, err := makeSharedFolder("cluster")
		if err != nil {
			return nil, err
		}
		cluster, err := servers.StartCluster(lasting(tb), folder, 3, 1)
		if err != nil {
			return nil, err
		}
		return wrapCluster(cluster), nil
	})
	if err != nil {
		tb.Fatalf("start shared redis cluster: %v", err)
	}
	return cluster
}

// makeSharedFolder returns an error without Main, because no code would end the servers
// in the folder.
func makeSharedFolder(name string) (string, error) {
	if sharedFolder == "" {
		return "", errors.New("share redis servers: the package needs a TestMain that calls redistest.Main")
	}
	folder := filepath.Join(sharedFolder, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", fmt.Errorf("create folder for shared redis: %w", err)
	}
	return folder, nil
}
