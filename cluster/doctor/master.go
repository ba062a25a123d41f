package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// masterInspection is the inspection of one master.
type masterInspection struct {
	prober *cluster.Prober
	layout *cluster.Layout
	addr   string
	opts   cluster.Options
	client *redis.Client
	tags   []string           // prefixes of keys that the master owns
	keys   []string           // keys to remove, which may have been written
	conn   *cluster.ProbeConn // nil without a connection
	report *MasterReport
}

// examine connects like a Store, and finds out the state of the master and the rights of
// the user.
func (m *masterInspection) examine(ctx context.Context) {
	began := time.Now()
	conn, err := m.prober.Connect(ctx, m.addr, m.layout.Cluster)
	if err != nil {
		m.report.Error = cluster.Explain(err)
		if m.layout.Cluster && errors.Is(err, syscall.ECONNREFUSED) { // the cluster names it: its address is right
			m.report.Error = "connection refused: start it again; a replica, if it has one, takes its slots over before long"
		}
		return
	}
	m.report.Connect = time.Since(began)
	m.report.Mode = conn.Mode()
	m.conn = conn
	m.readInfo(ctx)
	if m.layout.Cluster {
		m.readClusterInfo(ctx)
	}
	if len(m.tags) > 0 {
		m.probe(ctx)
	}
	m.report.MissingRights = m.missingRights(ctx)
}

// readInfo reads INFO. Fields that the master does not report stay empty.
func (m *masterInspection) readInfo(ctx context.Context) {
	info, err := m.client.Info(ctx).Result()
	if err != nil {
		return
	}
	if m.report.readInfo(info); m.report.Version == "" {
		m.report.Server, m.report.Version = m.askVersion(ctx)
	}
}

// readInfo parses an INFO reply.
func (r *MasterReport) readInfo(info string) {
	r.compatible = infoField(info, "redis_version")
	r.Server, r.Version = "Redis", r.compatible
	if v := infoField(info, "valkey_version"); v != "" {
		r.Server, r.Version = "Valkey", v
	}
	r.MemoryPolicy = infoField(info, "maxmemory_policy")
	if aof := infoField(info, "aof_enabled"); aof != "" {
		r.AOF = new(aof == "1")
	}
	for i := 0; ; i++ {
		text := infoField(info, fmt.Sprintf("slave%d", i))
		if text == "" {
			break
		}
		if addr, online := replicaAddr(text); online {
			r.Replicas = append(r.Replicas, addr)
		} else {
			r.Copying = append(r.Copying, addr)
		}
	}
}

// replicaAddr returns the address in text, ip=...,port=...,state=...,..., and whether the replica is
// online.
func replicaAddr(text string) (addr string, online bool) {
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	return net.JoinHostPort(fields["ip"], fields["port"]), fields["state"] == "online"
}

// askVersion reads from HELLO the version that INFO does not contain.
func (m *masterInspection) askVersion(ctx context.Context) (server, version string) {
	hello, err := m.client.Do(ctx, "HELLO").Slice()
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
func (m *masterInspection) readClusterInfo(ctx context.Context) {
	info, err := m.client.ClusterInfo(ctx).Result()
	if err != nil {
		return
	}
	m.report.ClusterState = infoField(info, "cluster_state")
	m.report.FullCoverage = fullCoverage(info)
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

// probeLogLimit is a limit that keeps its units in a sorted set, for a second.
var probeLogLimit = &limit.Limit{Params: bucket.Params{Algorithm: bucket.AlgorithmSlidingLog, Count: 10, Period: 1_000_000, Capacity: 10}}

// probe finds out what the script may do, from reading to writing. It stops if the script
// does not run at all, or if the connection is lost.
func (m *masterInspection) probe(ctx context.Context) {
	tag, p := m.tags[0], &m.report.Probes
	one := cluster.ProbeItem(tag+":one", "")
	several := []limit.Item{one, cluster.ProbeItem(tag+":two", "")}
	forms := []limit.Item{cluster.ProbeItem(tag, ":field"), one}
	peek := func(items []limit.Item) func() error { return func() error { return m.conn.Peek(items) } }
	if !m.try(ctx, &p.Script, peek(several[:1])) || p.Script != Done || !m.try(ctx, &p.Keys, peek(several)) {
		return
	}
	if m.layout.Cluster && !m.opts.DeclaredKeys &&
		!m.try(ctx, &p.Shard, m.conn.PeekUndeclared) {
		return
	}
	m.keys = append(m.keys, tag, tag+":one", tag+":log", tag+":secret", tag+":instances")
	// A call with one bucket and a call with several use different commands.
	if m.try(ctx, &p.Write, func() error { return m.conn.Take(forms, forms[:1]) }) {
		log := cluster.ProbeItem(tag+":log", "")
		log.Limit = probeLogLimit
		m.try(ctx, &p.Sets, func() error { return m.conn.Take([]limit.Item{log}) })
		m.try(ctx, &p.Secret, func() error { return m.conn.KeepSecret(tag + ":secret") })
		m.try(ctx, &p.Beat, func() error { return m.conn.Beat(tag + ":instances") })
	}
}

// try makes a probe, and reports whether to go on.
func (m *masterInspection) try(ctx context.Context, what *Outcome, probe func() error) bool {
	if !m.ready(ctx) {
		return false
	}
	err := probe()
	if _, refused := resp.AsError(err); err == nil || refused {
		*what = outcome(err)
		return true
	}
	m.disconnect(err)
	return false
}

// ready sets the deadline of the next exchange. It reports false if there is no connection
// or ctx has ended. It does not interrupt an exchange in progress: its commands could run
// after the keys are removed.
func (m *masterInspection) ready(ctx context.Context) bool {
	if m.conn == nil || ctx.Err() != nil {
		return false
	}
	deadline := time.Now().Add(m.opts.IOTimeout)
	if end, ok := ctx.Deadline(); ok && end.Add(removeTimeout).Before(deadline) {
		deadline = end.Add(removeTimeout)
	}
	m.conn.SetDeadline(deadline)
	return true
}

// disconnect records why the connection was lost, and closes it.
func (m *masterInspection) disconnect(err error) {
	m.report.Error = "the connection was lost during the inspection: " + cluster.Explain(err)
	m.close()
}

// close closes the connection.
func (m *masterInspection) close() {
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
}

// cleanUp removes the keys that were written, even after ctx has ended, and closes the
// connections.
func (m *masterInspection) cleanUp(ctx context.Context) {
	defer func() { _ = m.client.Close() }()
	m.close()
	if len(m.keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	pipe := m.client.Pipeline()
	for _, key := range m.keys {
		pipe.Unlink(ctx, key)
	}
	_, err := pipe.Exec(ctx)
	m.report.Probes.Remove = outcome(err)
}
