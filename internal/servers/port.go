package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// busPortOffset is the distance between the client port of a cluster node and the port of
// its cluster bus.
const busPortOffset = 10000

// portRange is a range of ports that servers are started on.
type portRange struct {
	first, count int
	withBus      bool
}

// All ranges, and the bus ports of the cluster's, lie below the ports that Linux (from
// 32768) and macOS (from 49152) give to outgoing connections, so no client can occupy a
// port between its choice and the server's start, or while a killed server waits for its
// restart.
var (
	singlePorts    = portRange{first: 23000, count: 6000}
	motoPorts      = portRange{first: 29000, count: 500}
	dynamoDBPorts  = portRange{first: 29500, count: 500}
	clusterPorts   = portRange{first: 20000, count: 2700, withBus: true}
	ratelimitPorts = portRange{first: 22700, count: 300}
)

// port is a port that no other process of this kind on this machine will choose until
// it is released.
type port struct {
	number int
	lock   *os.File
}

// reservePort finds a free port of the range and claims it.
func reservePort(from portRange) (*port, error) {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("limitgate-redistest-%d", os.Getuid()))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create port lock folder: %w", err)
	}
	start := rand.IntN(from.count)
	for i := range from.count {
		number := from.first + (start+i)%from.count
		lock, err := lockPort(folder, number)
		if err != nil {
			return nil, err
		}
		if lock == nil {
			continue
		}
		if isFree(number) && (!from.withBus || isFree(number+busPortOffset)) {
			return &port{number: number, lock: lock}, nil
		}
		_ = lock.Close()
	}
	return nil, fmt.Errorf("reserve port: none free between %d and %d", from.first, from.first+from.count-1)
}

// release lets other processes choose the port again.
func (p *port) release() {
	_ = p.lock.Close()
}

// lockPort takes the machine-wide lock of a port, and returns nil if another
// process or another server of this process holds it. The kernel gives the lock
// back when the process ends, however it ends.
func lockPort(folder string, number int) (*os.File, error) {
	name := filepath.Join(folder, strconv.Itoa(number))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open port lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock port %d: %w", number, err)
}

// isFree reports whether a server could listen on the port now.
func isFree(number int) bool {
	listener, err := net.Listen("tcp", loopbackAddr(number))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// loopbackAddr is the address of a port on the loopback interface.
func loopbackAddr(number int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(number))
}
