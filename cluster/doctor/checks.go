package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/limit"
)

// maxClockOffset is the largest difference of the clocks that is not reported.
const maxClockOffset = time.Second

// oldest is the first release of Redis that has the commands of the script.
var oldest = [2]int{6, 2}

// check adds the findings to the report and sets its verdict.
func (in *inspection) check(ctx context.Context) {
	r := in.report
	r.checkAddresses()
	if in.layout != nil {
		r.checkStore(in.layout)
		r.checkTLS(in.opts.TLS != nil)
		r.checkProbes()
		r.checkRights()
		r.checkSpeed(in.decisionTimeout)
		r.checkDurability()
	}
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "rights" || lacksRights(f.Text) }) {
		r.find(SeverityNote, "rights", "all that a user needs is "+cluster.Rights)
	}
	switch err := ctx.Err(); {
	case errors.Is(err, context.Canceled):
		r.find(SeverityFail, "time", "interrupted before everything was examined")
	case err != nil:
		r.find(SeverityFail, "time", "time ran out before everything was examined: allow more of it")
	}
	for _, f := range r.Findings {
		r.Verdict = max(r.Verdict, f.Severity)
	}
}

// lacksRights reports whether text contains the error of Redis, Valkey or one of their
// versions for a user without the needed rights, inside or outside of a script.
func lacksRights(text string) bool {
	return slices.ContainsFunc([]string{"NOPERM", "ACL failure", "The user executing the script"},
		func(part string) bool { return strings.Contains(text, part) })
}

// find adds a finding. Findings that differ only in their nodes are merged.
func (r *Report) find(severity Severity, check, text string, nodes ...string) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity == severity && f.Check == check && f.Text == text {
			f.Nodes = append(f.Nodes, nodes...)
			return
		}
	}
	r.Findings = append(r.Findings, Finding{Severity: severity, Check: check, Nodes: nodes, Text: text})
}

// each adds a finding for every master that could be examined.
func (r *Report) each(check string, say func(*MasterReport) (Severity, string)) {
	for i := range r.Masters {
		if m := &r.Masters[i]; m.Error == "" {
			if severity, text := say(m); text != "" {
				r.find(severity, check, text, m.Addr)
			}
		}
	}
}

func (r *Report) checkAddresses() {
	bad := SeverityFail
	if slices.ContainsFunc(r.Addresses, func(a AddressReport) bool { return a.Error == "" }) {
		bad = SeverityWarn
	}
	for _, a := range r.Addresses {
		switch {
		case a.Error != "" && a.away && r.oneNode():
			r.find(bad, "address", a.Error+"; "+cluster.OtherNodes, a.Addr)
		case a.Error != "":
			r.find(bad, "address", a.Error, a.Addr)
		case a.otherStore:
			r.find(SeverityFail, "address", "it leads to another store than the first address: proxies that start here would count apart, name the nodes of one store", a.Addr)
		default:
			r.find(SeverityOK, "address", "the topology can be fetched from it", a.Addr)
		}
	}
	if r.oneNode() && len(r.Masters) > 1 {
		r.find(SeverityNote, "address", "a proxy that starts while this node is down does not find the cluster: name several nodes, separated by commas", r.Addresses[0].Addr)
	}
}

// oneNode reports whether the store has one address, which is no name and so leads to one node.
func (r *Report) oneNode() bool { return len(r.Addresses) == 1 && cluster.IsNode(r.Addresses[0].Addr) }

func (r *Report) checkStore(l *cluster.Layout) {
	unserved := 0
	for _, owner := range l.Owners {
		if owner < 0 {
			unserved++
		}
	}
	failing := 0
	for _, m := range r.Masters {
		if m.Error != "" {
			failing++
		}
	}
	switch {
	case unserved > 0:
		r.find(SeverityFail, "store", fmt.Sprintf("%d of %d slots have no master, and the backstop decides for their tenants: give the slots to a master", unserved, limit.NumHashSlots))
	case l.Cluster && failing > 0:
		r.find(SeverityWarn, "store", fmt.Sprintf("a cluster of %d masters, %d of which cannot be used", len(r.Masters), failing))
	case l.Cluster:
		r.find(SeverityOK, "store", fmt.Sprintf("a cluster of %d masters, which have all slots", len(r.Masters)))
	default:
		r.find(SeverityOK, "store", "a single Redis")
	}
	for _, m := range r.Masters {
		if m.Error != "" {
			r.find(SeverityFail, "master", m.Error, m.Addr)
		}
	}
	r.each("master", func(m *MasterReport) (Severity, string) {
		if m.Connect > cluster.DefaultDialTimeout {
			return SeverityWarn, fmt.Sprintf("connecting takes longer than the %s after which a proxy gives up: look for load or a slow network", cluster.DefaultDialTimeout)
		}
		return SeverityOK, "ROLE reports that it is a master"
	})
	r.each("state", func(m *MasterReport) (Severity, string) {
		if m.ClusterState != "" && m.ClusterState != "ok" {
			return SeverityFail, "it calls the cluster's state " + m.ClusterState + " and refuses every call: bring the missing masters back"
		}
		return SeverityOK, ""
	})
	r.each("version", checkVersion)
}

func checkVersion(m *MasterReport) (Severity, string) {
	var is [2]int
	if _, err := fmt.Sscanf(m.compatible, "%d.%d", &is[0], &is[1]); err != nil {
		if m.Version == "" {
			return SeverityNote, "it does not report its version: it should be Redis 6.2 or later, or Valkey"
		}
		return SeverityNote, fmt.Sprintf("%s %s: it should be able to do what Redis 6.2 can", m.Server, m.Version)
	}
	if slices.Compare(is[:], oldest[:]) < 0 {
		return SeverityFail, fmt.Sprintf("%s %s is too old, since buckets are written with commands of Redis 6.2: upgrade", m.Server, m.Version)
	}
	return SeverityOK, m.Server + " " + m.Version
}

// checkTLS reports whether connections are encrypted.
func (r *Report) checkTLS(encrypted bool) {
	if encrypted {
		r.find(SeverityOK, "tls", "connections to the store are encrypted, and its certificates verified")
		return
	}
	severity := SeverityNote
	for _, m := range r.Masters {
		host, _, _ := net.SplitHostPort(m.Addr)
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			severity = SeverityWarn
		}
	}
	r.find(severity, "tls", "connections to the store are not encrypted: set --redis-tls, unless only a private network lies between")
}

// checkProbes reports the results of the probes.
func (r *Report) checkProbes() {
	r.each("evalsha", checkScript)
	probe := func(check, yes, no string, of func(*Probes) Outcome) {
		r.each(check, func(m *MasterReport) (Severity, string) {
			switch o := of(&m.Probes); {
			case o == Done:
				return SeverityOK, yes
			case o.failed():
				return SeverityFail, refused(no, o)
			case o == "":
				return SeverityNote, "not tried, because of what else is wrong"
			}
			return SeverityOK, ""
		})
	}
	optional := func(check string, severity Severity, no string, of func(*Probes) Outcome) {
		r.each(check, func(m *MasterReport) (Severity, string) {
			if o := of(&m.Probes); o.failed() {
				return severity, refused(no, o)
			}
			return SeverityOK, ""
		})
	}
	probe("keys", "one call may use several keys of one slot", "no call may use several keys, as a tenant with several limits needs: allow it",
		func(p *Probes) Outcome { return p.Keys })
	r.each("mode", checkMode)
	r.each("writes", func(m *MasterReport) (Severity, string) {
		if o, why := m.Probes.writeRefusal(); why != "" {
			return SeverityFail, fmt.Sprintf("it refuses writes, so the backstop decides here: %s (%s)", why, o)
		}
		return SeverityOK, ""
	})
	probe("write", "the script writes buckets, as keys and as fields, with their expiry", "the script cannot write, so nothing is decided here: let it",
		func(p *Probes) Outcome { return p.Write })
	optional("sets", SeverityWarn, "limits of sliding_log and concurrency are not decided here, for lack of commands on sorted sets: allow those",
		func(p *Probes) Outcome { return p.Sets })
	optional("batch", SeverityFail, "a batch of decisions is refused, though single ones are not: mend what refuses it",
		func(p *Probes) Outcome { return p.Batch })
	probe("secret", "proxies can agree on the secret that addresses are hashed with",
		"proxies cannot agree on a secret here, and do not start without --privacy-ip-secret-file: allow SET and GETEX, or say that",
		func(p *Probes) Outcome { return p.Secret })
	optional("instances", SeverityWarn, "proxies cannot count each other here: allow what they lack, or give their number by --instances",
		func(p *Probes) Outcome { return p.Beat })
	optional("removal", SeverityWarn, "what was written here could not be removed, and expires within seconds: RL.RESET needs UNLINK",
		func(p *Probes) Outcome { return p.Remove })
}

// refused returns the finding of a probe that a master refuses, with its remedy behind a colon.
func refused(text string, o Outcome) string { return fmt.Sprintf("%s (%s)", text, o) }

// writeRefusal returns the first outcome that shows that a master refuses all writes, why, and what to do; "" if none does.
func (p *Probes) writeRefusal() (o Outcome, why string) {
	for _, o := range []Outcome{p.Write, p.Script, p.Keys, p.Sets, p.Batch, p.Secret, p.Beat} {
		if why := cluster.ReplyRefusesWrites(string(o)); why != "" {
			return o, why
		}
	}
	return "", ""
}

// failed reports whether a probe failed, for a reason of its own: that a master refuses all writes is a finding of its own.
func (o Outcome) failed() bool {
	return o != "" && o != Done && cluster.ReplyRefusesWrites(string(o)) == ""
}

func checkScript(m *MasterReport) (Severity, string) {
	switch o := m.Probes.Script; {
	case o == Done:
		return SeverityOK, "SCRIPT LOAD and EVALSHA work"
	case o == "":
		return SeverityFail, "the script was not tried, because no key was found that is this master's"
	case m.ClusterState == "fail" && strings.HasPrefix(string(o), "CLUSTERDOWN"): // the finding about its state says so
		return SeverityNote, "not tried, because of what else is wrong"
	case lacksRights(string(o)) && strings.Contains(string(o), " access "): // rights on keys, not on commands
		return SeverityFail, fmt.Sprintf("the user may not use all keys that begin with lg:, so nothing can be found out: allow them (%s)", o)
	default:
		return SeverityFail, refused("the script does not run, so nothing is decided here: allow SCRIPT LOAD and EVALSHA", o)
	}
}

func checkMode(m *MasterReport) (Severity, string) {
	switch {
	case m.Mode != cluster.ModePerSlot:
		return SeverityOK, m.Mode.String()
	case m.Probes.Shard == "" || m.Probes.Shard == Done:
		return SeverityOK, m.Mode.String()
	default:
		return SeverityNote, fmt.Sprintf("%s, which is as exact and costs the store more, because scripts may not use keys that they do not declare (%s)", m.Mode, m.Probes.Shard)
	}
}

// checkSpeed reports the clocks and round trips of the masters, and the cost of decisions.
func (r *Report) checkSpeed(timeout time.Duration) {
	r.each("clock", func(m *MasterReport) (Severity, string) {
		switch c := m.Clock; {
		case c.Within == 0:
			return SeverityWarn, "its clock could not be read"
		case c.Offset.Abs()-c.Within > maxClockOffset:
			return SeverityWarn, fmt.Sprintf("its clock is %s off this machine's: limits go by the store's, so if that is the wrong one days and months end at the wrong moment; synchronize both",
				c.Offset.Abs().Round(maxClockOffset/10))
		default:
			return SeverityOK, fmt.Sprintf("its clock and this machine's agree within %s; the store's decides", maxClockOffset)
		}
	})
	r.each("roundtrip", func(m *MasterReport) (Severity, string) {
		switch t := m.RoundTrip; {
		case t.Exchanges == 0:
			return SeverityWarn, "the round trip could not be measured"
		case timeout <= 0:
			return SeverityOK, ""
		case t.Median >= timeout:
			return SeverityFail, fmt.Sprintf("the median round trip exceeds the decision timeout of %s, so the backstop decides most: bring proxy and store together, or raise --decision-timeout", timeout)
		case t.P99 >= timeout/2:
			return SeverityWarn, fmt.Sprintf("one round trip in a hundred takes half of the decision timeout of %s or more, and the backstop will decide now and then: look for load, or raise --decision-timeout", timeout)
		default:
			return SeverityOK, fmt.Sprintf("round trips are well below the decision timeout of %s", timeout)
		}
	})
	r.checkCost()
}

// checkCost reports the cost of a decision on the slowest master.
func (r *Report) checkCost() {
	var worst *MasterReport
	for i := range r.Masters {
		if m := &r.Masters[i]; m.Decision.Calls > 0 && (worst == nil || m.Decision.Batched > worst.Decision.Batched) {
			worst = m
		}
	}
	if worst == nil {
		r.find(SeverityWarn, "cost", "what a decision costs could not be measured")
		return
	}
	d := worst.Decision
	text := fmt.Sprintf("a decision on one bucket keeps a master busy for %s alone, and for %s among %d",
		d.Alone.Round(100*time.Nanosecond), d.Batched.Round(100*time.Nanosecond), d.BatchSize)
	if d.Batched > 0 {
		text += fmt.Sprintf(": it decides %s a second at most", thousands(int64(time.Millisecond/d.Batched)))
	}
	r.find(SeverityOK, "cost", text)
}

// thousands writes a number of thousands with commas.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d,000", n)
	}
	return fmt.Sprintf("%d,%03d,000", n/1000, n%1000)
}

// checkDurability reports how the masters may lose data.
func (r *Report) checkDurability() {
	r.each("memory", func(m *MasterReport) (Severity, string) {
		switch m.MemoryPolicy {
		case noEviction:
			return SeverityOK, "maxmemory-policy is noeviction"
		case "":
			return SeverityNote, "it does not report its maxmemory-policy: see that it is noeviction"
		default:
			return SeverityWarn, evicts(m.MemoryPolicy)
		}
	})
	r.each("replicas", func(m *MasterReport) (Severity, string) {
		switch {
		case len(m.Replicas) > 0:
		case len(m.Copying) > 0:
			return SeverityNote, "its replica " + m.Copying[0] + " has no copy of its data yet: should the master go down before that, the backstop decides"
		default:
			return SeverityNote, "no replica is connected to it: while it is down the backstop decides; add a replica, or look why one that it should have is not connected"
		}
		return SeverityOK, "every write is copied to a replica, and a failover may lose the last moments"
	})
	r.each(CheckPersistence, func(m *MasterReport) (Severity, string) {
		switch {
		case m.AOF == nil:
			return SeverityNote, "it does not report whether it keeps an AOF: counts that are kept for a day or more need one"
		case *m.AOF:
			return SeverityOK, "counters survive a restart, in the AOF"
		default:
			return SeverityWarn, "a restart may come back empty, and forgets the counts of limits that keep them for a day or more, such as a quota by the month: if there are such limits, set appendonly yes"
		}
	})
	r.checkCoverage()
}

// checkCoverage reports cluster-require-full-coverage: whether a dead shard stops the
// others. CONFIG returns it reliably but may be forbidden. Without CONFIG the state of the
// cluster shows it only while slots are missing.
func (r *Report) checkCoverage() {
	if r.Kind != "cluster" {
		return
	}
	known := map[string][]string{}
	for _, m := range r.Masters {
		known[m.FullCoverage] = append(known[m.FullCoverage], m.Addr)
	}
	if nodes := known["yes"]; nodes != nil {
		r.find(SeverityWarn, "coverage", "slots are missing, and for that it refuses those it has: set cluster-require-full-coverage no on every node", nodes...)
	}
	if nodes := known["no"]; nodes != nil {
		r.find(SeverityOK, "coverage", "slots are missing or down, and it serves those it has", nodes...)
	}
	if len(known["yes"])+len(known["no"]) == 0 {
		at := max(0, slices.IndexFunc(r.Masters, func(m MasterReport) bool { return m.ClusterState != "" })) // it answers
		host, port, _ := net.SplitHostPort(r.Masters[at].Addr)
		r.find(SeverityNote, "coverage", fmt.Sprintf("cluster-require-full-coverage cannot be seen from the state of the cluster: it should be no, so that a dead shard does not take the others with it; where it is allowed, redis-cli -h %s -p %s CONFIG GET cluster-require-full-coverage shows it", host, port))
	}
}
