package commands

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/limitgate/limitgate/limit"
)

// Cluster clients ask which node owns which hash slot and connect there. The reply is one
// node, this proxy, which owns them all: every proxy decides for every tenant.
//
// The node's address is the one on which the connection came in. Behind address
// translation it is not the address that the client dialled, which the server cannot
// know. In that case Options.Announce has the address, or the client maps addresses
// itself.

// endpoint returns the host and port that clients receive. An empty host, as in Redis,
// means the host that the client dialled.
func (s *Session) endpoint() (host string, port int64) {
	addr := s.h.opts.Announce
	if addr == "" {
		addr = s.local
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0
	}
	port, _ = parseInteger([]byte(text))
	return host, port
}

func clusterInfo(_ context.Context, s *Session, _ [][]byte) {
	s.out.text(fmt.Sprintf("cluster_state:ok\r\ncluster_slots_assigned:%[1]d\r\ncluster_slots_ok:%[1]d\r\n"+
		"cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\n"+
		"cluster_current_epoch:0\r\ncluster_my_epoch:0\r\ncluster_stats_messages_sent:0\r\n"+
		"cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n", slots))
}

// slots is the number of hash slots of a cluster.
const slots = 16384

func clusterSlots(_ context.Context, s *Session, _ [][]byte) {
	host, port := s.endpoint()
	s.out.array(1)
	s.out.array(3)
	s.out.integer(0)
	s.out.integer(slots - 1)
	s.out.array(4)
	s.out.bulk(host)
	s.out.integer(port)
	s.out.bulk(s.h.runID)
	s.out.mapping(0)
}

func clusterShards(_ context.Context, s *Session, _ [][]byte) {
	host, port := s.endpoint()
	s.out.array(1)
	s.out.mapping(2)
	s.out.bulk("slots")
	s.out.array(2)
	s.out.integer(0)
	s.out.integer(slots - 1)
	s.out.bulk("nodes")
	s.out.array(1)
	s.out.mapping(7)
	s.out.pair("id", s.h.runID)
	s.out.pair("port", port)
	s.out.pair("ip", host)
	s.out.pair("endpoint", host)
	s.out.pair("role", "master")
	s.out.pair("replication-offset", 0)
	s.out.pair("health", "online")
}

// clusterNodes reports port 0 for the cluster bus: there is none.
func clusterNodes(_ context.Context, s *Session, _ [][]byte) {
	host, port := s.endpoint()
	s.out.text(fmt.Sprintf("%s %s:%d@0 myself,master - 0 0 0 connected 0-%d\n", s.h.runID, host, port, slots-1))
}

func clusterMyID(_ context.Context, s *Session, _ [][]byte) { s.out.bulk(s.h.runID) }

func clusterKeySlot(_ context.Context, s *Session, args [][]byte) {
	s.out.integer(int64(limit.HashSlot(args[2])))
}

func clusterCountKeys(_ context.Context, s *Session, args [][]byte) {
	switch slot, ok := parseInteger(args[2]); {
	case !ok:
		s.out.error(notAnInteger)
	case slot < 0 || slot >= slots:
		s.out.error("ERR Invalid slot")
	default:
		s.out.integer(0)
	}
}

func clusterGetKeys(_ context.Context, s *Session, args [][]byte) {
	slot, ok := parseInteger(args[2])
	count, fine := parseInteger(args[3])
	switch {
	case !ok || !fine:
		s.out.error(notAnInteger)
	case slot < 0 || slot >= slots || count < 0:
		s.out.error("ERR Invalid slot or number of keys")
	default:
		s.out.array(0)
	}
}

// clusterReplicas replies that this node has none.
func clusterReplicas(_ context.Context, s *Session, args [][]byte) {
	if string(args[2]) != s.h.runID {
		s.out.error("ERR Unknown node " + quote(args[2]))
		return
	}
	s.out.array(0)
}

// clusterFlag is 1 although the mode is standalone. Cluster clients, of which some
// versions require it, then find a cluster. A client that chooses its protocol by the
// mode keeps the one address that it was given, which also works behind address
// translation. Clients of a single server read neither.
const (
	clusterFlag = 1
	serverMode  = "standalone"
)

func clusterEnabled() string { return "cluster_enabled:" + strconv.Itoa(clusterFlag) + "\r\n" }
