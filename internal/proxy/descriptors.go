package proxy

import (
	"log/slog"
	"math"

	"golang.org/x/sys/unix"
)

// ownDescriptors is the number of descriptors that a proxy needs beside those of its
// clients: 64 for the admin address, five for each of a dozen masters, and some for files
// and listeners.
const ownDescriptors = 160

// boundConns returns how many clients may be connected at once in a process with so many
// descriptors. A client beyond that would wait in the backlog; it is refused with an
// error reply instead.
func boundConns(maxConns int, descriptors uint64) int {
	room := max(descriptors/2, descriptors-min(descriptors, ownDescriptors))
	return max(1, min(maxConns, int(min(room, math.MaxInt32))))
}

// maxRLSConns bounds the connections to Envoy's rate limit service: each worker of an Envoy has one.
const maxRLSConns = 1024

// rlsConns returns how many of max_conns clients may be Envoys.
func rlsConns(maxConns int) int { return min(maxRLSConns, max(1, maxConns/8)) }

// boundConnsByLimit returns max_conns, or less if the descriptor limit of this process is
// too low for it.
func boundConnsByLimit(maxConns int, log *slog.Logger) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return maxConns // this system has no such limit
	}
	bound := boundConns(maxConns, limit.Cur)
	if bound < maxConns {
		log.Warn("lowering max_conns to what the limit of open files allows", "max_conns", bound, "open_files", limit.Cur)
	}
	return bound
}
