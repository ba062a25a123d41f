package commands

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// redisVersion is the release of Redis whose behaviour clients may expect.
const redisVersion = "7.0.0"

func newRunID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func timeCommand(_ context.Context, s *Session, _ [][]byte) {
	now := s.h.opts.Now().UnixMicro()
	s.out.array(2)
	s.out.bulk(strconv.FormatInt(now/1e6, 10))
	s.out.bulk(strconv.FormatInt(now%1e6, 10))
}

func roleCommand(_ context.Context, s *Session, _ [][]byte) {
	s.out.array(3)
	s.out.bulk("master")
	s.out.integer(0)
	s.out.array(0)
}

func zeroCommand(_ context.Context, s *Session, _ [][]byte) { s.out.integer(0) }

func okCommand(_ context.Context, s *Session, _ [][]byte) { s.out.ok() }

// infoCommand replies with the sections that clients and people read.
func infoCommand(_ context.Context, s *Session, args [][]byte) {
	var b strings.Builder
	for _, sec := range infoSections {
		wanted := len(args) == 1
		for _, a := range args[1:] {
			wanted = wanted || equalFold(a, sec.name) || equalFold(a, "all") || equalFold(a, "default") || equalFold(a, "everything")
		}
		if wanted {
			if b.Len() > 0 {
				b.WriteString("\r\n")
			}
			fmt.Fprintf(&b, "# %s\r\n", sec.name)
			sec.write(s, &b)
		}
	}
	s.out.text(b.String())
}

// infoSections are the sections from which clients and exporters read.
var infoSections = []struct {
	name  string
	write func(*Session, *strings.Builder)
}{
	{"Server", func(s *Session, b *strings.Builder) {
		up := int64(s.h.opts.Now().Sub(s.h.started).Seconds())
		fmt.Fprintf(b, "redis_version:%s\r\nredis_mode:%s\r\nlimitgate_version:%s\r\nlimitgate_store:%s\r\n", redisVersion, serverMode, s.h.opts.Version, s.h.opts.Store)
		fmt.Fprintf(b, "os:%s %s\r\narch_bits:%d\r\nprocess_id:%d\r\nrun_id:%s\r\n", runtime.GOOS, runtime.GOARCH, strconv.IntSize, os.Getpid(), s.h.runID)
		_, port := s.endpoint()
		fmt.Fprintf(b, "tcp_port:%d\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n", port, up, up/86400)
	}},
	{"Clients", func(s *Session, b *strings.Builder) {
		fmt.Fprintf(b, "connected_clients:%d\r\nblocked_clients:0\r\n", s.h.count())
		if most := s.h.settings["maxclients"]; most != "" {
			fmt.Fprintf(b, "maxclients:%s\r\n", most)
		}
	}},
	{"Memory", func(_ *Session, b *strings.Builder) {
		fmt.Fprintf(b, "used_memory:%d\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n", memoryInUse())
	}},
	{"Persistence", func(_ *Session, b *strings.Builder) {
		b.WriteString("loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:0\r\n")
	}},
	{"Replication", func(_ *Session, b *strings.Builder) {
		b.WriteString("role:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n")
	}},
	{"Cluster", func(_ *Session, b *strings.Builder) { b.WriteString(clusterEnabled()) }},
	{"Limitgate", writeActivity},
	{"Keyspace", func(*Session, *strings.Builder) {}},
}
