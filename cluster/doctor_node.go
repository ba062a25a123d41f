package cluster

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

// nodeInspection is the inspection of one master.
type nodeInspection struct {
	node   *node
	dialer *dialer
	tags   []string  // prefixes of keys that the master owns
	keys   []string  // keys to remove, which may have been written
	conn   *nodeConn // nil without a connection
	report *MasterReport
}

// examine connects like a pipeline, and finds out the state of the master and the rights of
// the user.
func (s *nodeInspection) examine(ctx context.Context) {
	began := time.Now()
	conn, err := s.dialer.dial(ctx)
	if err != nil {
		s.report.Error = explain(err)
		return
	}
	s.report.Connect = time.Since(began)
	s.report.Mode = conn.opts.mode()
	s.conn = conn
	s.readInfo(ctx)
	if s.dialer.cluster {
		s.readClusterInfo(ctx)
	}
	if len(s.tags) > 0 {
		s.probe(ctx)
	}
}

// readInfo reads INFO. Fields that the master does not report stay empty.
func (s *nodeInspection) readInfo(ctx context.Context) {
	info, err := s.node.client.Info(ctx).Result()
	if err != nil {
		return
	}
	if s.report.readInfo(info); s.report.Version == "" {
		s.report.Server, s.report.Version = s.askVersion(ctx)
	}
}

// readInfo parses an INFO reply.
func (m *MasterReport) readInfo(info string) {
	m.compatible = infoField(info, "redis_version")
	m.Server, m.Version = "Redis", m.compatible
	if v := infoField(info, "valkey_version"); v != "" {
		m.Server, m.Version = "Valkey", v
	}
	m.MemoryPolicy = infoField(info, "maxmemory_policy")
	if aof := infoField(info, "aof_enabled"); aof != "" {
		m.AOF = new(aof == "1")
	}
	for i := 0; ; i++ {
		text := infoField(info, fmt.Sprintf("slave%d", i))
		if text == "" {
			break
		}
		if addr := replicaAddr(text); addr != "" {
			m.Replicas = append(m.Replicas, addr)
		}
	}
}

// replicaAddr returns the address in text, ip=...,port=...,state=...,..., if the replica is
// online.
func replicaAddr(text string) string {
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	if fields["state"] != "online" {
		return ""
	}
	return net.JoinHostPort(fields["ip"], fields["port"])
}

// askVersion reads from HELLO the version that INFO does not contain.
func (s *nodeInspection) askVersion(ctx context.Context) (server, version string) {
	hello, err := s.node.client.Do(ctx, "HELLO").Slice()
	if err != nil {
		return "", ""
	}
	for i := 0; i+1 < len(hello); i += 2 {
		value, _ := hello[i+1].(string)
		switch hello[i] {
		case "server":
			server = value
		case "version":
			version = value
		}
	}
	return server, version
}

// readClusterInfo reads CLUSTER INFO.
func (s *nodeInspection) readClusterInfo(ctx context.Context) {
	info, err := s.node.client.ClusterInfo(ctx).Result()
	if err != nil {
		return
	}
	s.report.ClusterState = infoField(info, "cluster_state")
	s.report.FullCoverage = fullCoverage(info)
}

// fullCoverage derives cluster-require-full-coverage from a CLUSTER INFO reply. That is
// possible only while slots are missing: the state of the cluster then depends on the
// setting.
func fullCoverage(info string) string {
	missing := infoField(info, "cluster_slots_assigned") != fmt.Sprint(limit.NumHashSlots) || infoField(info, "cluster_slots_fail") != "0"
	switch state := infoField(info, "cluster_state"); {
	case missing && state == "ok":
		return "no"
	case missing && state == "fail":
		return "yes"
	default:
		return ""
	}
}

// probe finds out what the script may do, from reading to writing. It stops if the script
// does not run at all, or if the connection is lost.
func (s *nodeInspection) probe(ctx context.Context) {
	tag, p := s.tags[0], &s.report.Probes
	one := probeItem(tag+":one", "")
	several := []limit.Item{one, probeItem(tag+":two", "")}
	forms := []limit.Item{probeItem(tag, ":field"), one}
	if !s.decides(ctx, &p.Script, opPeek, several[:1]) || p.Script != Done || !s.decides(ctx, &p.Keys, opPeek, several) {
		return
	}
	if s.dialer.cluster && !s.dialer.opts.DeclaredKeys &&
		!s.try(ctx, &p.Shard, func() error { return s.dialer.probe(s.conn) }) {
		return
	}
	s.keys = append(s.keys, tag, tag+":one", tag+":log", tag+":secret", tag+":instances")
	// A call with one bucket and a call with several use different commands.
	if s.decides(ctx, &p.Write, opTake, forms, forms[:1]) {
		log := probeItem(tag+":log", "")
		log.Limit = probeLogLimit
		s.decides(ctx, &p.Sets, opTake, []limit.Item{log})
		s.try(ctx, &p.Secret, func() error { return s.keepSecret(tag + ":secret") })
		s.try(ctx, &p.Beat, func() error { return s.beat(tag + ":instances") })
	}
}

// decides runs calls with declared keys as a probe.
func (s *nodeInspection) decides(ctx context.Context, what *Outcome, v op, calls ...[]limit.Item) bool {
	return s.try(ctx, what, func() error {
		return s.dialer.try(s.conn, s.dialer.probeBatch(v, batchOptions{declared: true}, calls...))
	})
}

// try makes a probe, and reports whether to go on.
func (s *nodeInspection) try(ctx context.Context, what *Outcome, probe func() error) bool {
	if !s.ready(ctx) {
		return false
	}
	err := probe()
	if _, refused := resp.AsError(err); err == nil || refused {
		*what = outcome(err)
		return true
	}
	s.disconnect(err)
	return false
}

// ready sets the deadline of the next exchange. It reports false if there is no connection
// or ctx has ended. It does not interrupt an exchange in progress: its commands could run
// after the keys are removed.
func (s *nodeInspection) ready(ctx context.Context) bool {
	if s.conn == nil || ctx.Err() != nil {
		return false
	}
	patience := time.Now().Add(s.dialer.opts.IOTimeout)
	if end, ok := ctx.Deadline(); ok && end.Add(removeTimeout).Before(patience) {
		patience = end.Add(removeTimeout)
	}
	_ = s.conn.SetDeadline(patience)
	return true
}

// disconnect records why the connection was lost, and closes it.
func (s *nodeInspection) disconnect(err error) {
	s.report.Error = "the connection was lost during the inspection: " + explain(err)
	s.hangUp()
}

// keepSecret runs on a key the commands for agreeing on a secret.
func (s *nodeInspection) keepSecret(key string) error {
	const ttl = "5000" // ms
	out := resp.AppendCommand(nil, "SET", key, "probe", "NX", "PX", ttl)
	return s.exchange(resp.AppendCommand(out, "GETEX", key, "PX", ttl), 2, func(int, []string) error { return nil })
}

// beat runs on a key the commands of a proxy's heartbeat.
func (s *nodeInspection) beat(key string) error {
	out := resp.AppendCommand(nil, "SCRIPT", "LOAD", beatScript.text)
	out = resp.AppendCommand(out, append([]string{"EVALSHA", beatScript.sha, "1", key}, beatArgs("probe")...)...)
	out = resp.AppendCommand(out, "HDEL", key, "probe")
	return s.exchange(out, 3, func(int, []string) error { return nil })
}

// hangUp closes the connection.
func (s *nodeInspection) hangUp() {
	if s.conn != nil {
		s.conn.hangUp()
		s.conn = nil
	}
}

// cleanUp removes the keys that were written, even after ctx has ended, and closes the
// connections.
func (s *nodeInspection) cleanUp(ctx context.Context) {
	defer func() { _ = s.node.client.Close() }()
	s.hangUp()
	if len(s.keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	pipe := s.node.client.Pipeline()
	for _, key := range s.keys {
		pipe.Unlink(ctx, key)
	}
	_, err := pipe.Exec(ctx)
	s.report.Probes.Remove = outcome(err)
}
