package commands

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path"
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

func aclCommand(_ context.Context, s *Session, args [][]byte) {
	if len(args) != 2 || !equalFold(args[1], "WHOAMI") {
		s.out.error("ERR unknown subcommand '" + quote(args[1]) + "'. Try ACL HELP.")
		return
	}
	s.out.bulk(defaultUser)
}

// redisSettings are the settings that redis-benchmark and clients ask for.
var redisSettings = [][2]string{
	{"appendonly", "no"}, {"databases", "1"}, {"maxmemory", "0"}, {"save", ""}, {"timeout", "0"},
}

// redisConfigCommand answers CONFIG GET pattern... as a map.
func redisConfigCommand(_ context.Context, s *Session, args [][]byte) {
	if !equalFold(args[1], "GET") {
		s.out.error("ERR unknown subcommand '" + quote(args[1]) + "'. Try CONFIG HELP.")
		return
	}
	if len(args) < 3 {
		s.out.error("ERR wrong number of arguments for 'config|get' command")
		return
	}
	var found [][2]string
	for _, setting := range redisSettings {
		for _, pattern := range args[2:] {
			if ok, err := path.Match(strings.ToLower(string(pattern)), setting[0]); ok && err == nil {
				found = append(found, setting)
				break
			}
		}
	}
	s.out.mapping(len(found))
	for _, setting := range found {
		s.out.pair(setting[0], setting[1])
	}
}

// infoCommand answers the sections that clients and people read.
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

var infoSections = []struct {
	name  string
	write func(*Session, *strings.Builder)
}{
	{"Server", func(s *Session, b *strings.Builder) {
		up := int64(s.h.opts.Now().Sub(s.h.started).Seconds())
		fmt.Fprintf(b, "redis_version:%s\r\nredis_mode:standalone\r\nlimitgate_version:%s\r\nlimitgate_store:%s\r\n", redisVersion, s.h.opts.Version, s.h.opts.Store)
		fmt.Fprintf(b, "os:%s %s\r\nprocess_id:%d\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n",
			runtime.GOOS, runtime.GOARCH, os.Getpid(), s.h.runID, up, up/86400)
	}},
	{"Clients", func(s *Session, b *strings.Builder) {
		fmt.Fprintf(b, "connected_clients:%d\r\nblocked_clients:0\r\n", len(s.h.open()))
	}},
	{"Persistence", func(_ *Session, b *strings.Builder) {
		b.WriteString("loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:0\r\n")
	}},
	{"Replication", func(_ *Session, b *strings.Builder) {
		b.WriteString("role:master\r\nconnected_slaves:0\r\n")
	}},
	{"Cluster", func(_ *Session, b *strings.Builder) {
		b.WriteString("cluster_enabled:0\r\n")
	}},
	{"Keyspace", func(*Session, *strings.Builder) {}},
}

// commandCommand describes the table, so that redis-cli can give hints.
func commandCommand(_ context.Context, s *Session, args [][]byte) {
	all := s.h.sorted()
	switch {
	case len(args) == 1:
		s.out.array(len(all))
		for _, c := range all {
			s.out.commandInfo(c)
		}
	case equalFold(args[1], "COUNT"):
		s.out.integer(int64(len(all)))
	case equalFold(args[1], "LIST"):
		s.out.array(len(all))
		for _, c := range all {
			s.out.bulk(c.name)
		}
	case equalFold(args[1], "INFO"):
		s.out.array(len(args) - 2)
		for _, a := range args[2:] {
			if c := s.h.lookup(a); c != nil {
				s.out.commandInfo(c)
			} else {
				s.out.nullArray()
			}
		}
	case equalFold(args[1], "DOCS"):
		s.commandDocs(args[2:], all)
	default:
		s.out.error("ERR unknown subcommand '" + quote(args[1]) + "'. Try COMMAND HELP.")
	}
}

func (r *reply) nullArray() {
	if r.resp3 {
		r.null()
		return
	}
	r.buf = append(r.buf, "*-1\r\n"...)
}

// commandInfo appends what COMMAND INFO says of a command: no arguments are
// keys, and there are no subcommands, tips or key specifications.
func (r *reply) commandInfo(c *command) {
	r.array(10)
	r.bulk(c.name)
	r.integer(int64(c.arity))
	r.set(len(c.flags))
	for _, f := range c.flags {
		r.simple(f)
	}
	r.integer(0)
	r.integer(0)
	r.integer(0)
	r.set(0)
	r.array(0)
	r.array(0)
	r.array(0)
}

func (s *Session) commandDocs(names [][]byte, all []*command) {
	docs := all
	if len(names) > 0 {
		docs = nil
		for _, n := range names {
			if c := s.h.lookup(n); c != nil {
				docs = append(docs, c)
			}
		}
	}
	s.out.mapping(len(docs))
	for _, c := range docs {
		s.out.bulk(c.name)
		s.out.mapping(3)
		s.out.pair("summary", c.summary)
		s.out.pair("since", "0.1.0")
		s.out.pair("group", c.group)
	}
}
