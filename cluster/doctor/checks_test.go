package doctor

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/cluster"
)

// healthy returns a report of a single healthy master.
func healthy() *Report {
	return &Report{Kind: "cluster", Masters: []MasterReport{{
		Addr: "127.0.0.1:6379", Server: "Redis", Version: "7.2.4", compatible: "7.2.4", Mode: cluster.ModeShardWide,
		Connect: time.Millisecond, Clock: Clock{Offset: 900 * time.Millisecond, Within: time.Millisecond},
		RoundTrip: RoundTrip{pings, 100 * time.Microsecond, 200 * time.Microsecond, 300 * time.Microsecond},
		Decision:  Decision{1600, 17 * time.Microsecond, 3 * time.Microsecond, 64},
		Replicas:  []string{"127.0.0.1:6380"}, MemoryPolicy: "noeviction", AOF: new(true), ClusterState: "ok", FullCoverage: "no",
		Probes: Probes{Done, Done, Done, Done, Done, Done, Done, Done, Done},
	}}}
}

// checked returns the report with the findings after a change of its first master.
func checked(change func(*MasterReport)) *Report {
	r := healthy()
	change(&r.Masters[0])
	in := inspection{report: r, layout: &cluster.Layout{Cluster: true}, decisionTimeout: 5 * time.Millisecond}
	in.check(context.Background())
	return r
}

func TestJudge(t *testing.T) {
	for name, row := range map[string]struct {
		change   func(*MasterReport)
		severity Severity
		check    string
		text     string
	}{
		"old":             {func(m *MasterReport) { m.Version, m.compatible = "6.0.16", "6.0.16" }, SeverityFail, "version", "Redis 6.0.16 is too old"},
		"old enough":      {func(m *MasterReport) { m.Version, m.compatible = "6.2.0", "6.2.0" }, SeverityOK, "version", "Redis 6.2.0"},
		"new":             {func(m *MasterReport) { m.Version, m.compatible = "10.0.1", "10.0.1" }, SeverityOK, "version", "Redis 10.0.1"},
		"no INFO":         {func(m *MasterReport) { m.Version, m.compatible = "9", "" }, SeverityNote, "version", "should be able to do what Redis 6.2 can"},
		"no version":      {func(m *MasterReport) { m.Version, m.compatible = "", "" }, SeverityNote, "version", "does not report its version"},
		"far":             {func(m *MasterReport) { m.RoundTrip.Median = 6 * time.Millisecond }, SeverityFail, "roundtrip", "raise --decision-timeout"},
		"tail":            {func(m *MasterReport) { m.RoundTrip.P99 = 3 * time.Millisecond }, SeverityWarn, "roundtrip", "now and then"},
		"slow dial":       {func(m *MasterReport) { m.Connect = time.Second }, SeverityWarn, "master", "longer than the 300ms"},
		"fast clock":      {func(m *MasterReport) { m.Clock.Offset = 3 * time.Second }, SeverityWarn, "clock", "3s off"},
		"slow clock":      {func(m *MasterReport) { m.Clock.Offset = -time.Hour }, SeverityWarn, "clock", "1h0m0s off"},
		"no clock":        {func(m *MasterReport) { m.Clock = Clock{} }, SeverityWarn, "clock", "could not be read"},
		"cost":            {func(*MasterReport) {}, SeverityOK, "cost", "17µs alone, and for 3µs among 64: it decides 333,000 a second"},
		"no cost":         {func(m *MasterReport) { m.Decision = Decision{} }, SeverityWarn, "cost", "could not be measured"},
		"no policy":       {func(m *MasterReport) { m.MemoryPolicy = "" }, SeverityNote, "memory", "noeviction"},
		"no AOF reported": {func(m *MasterReport) { m.AOF = nil }, SeverityNote, "persistence", "need one"},
		"elsewhere":       {func(m *MasterReport) { m.Addr = "10.0.0.1:6379" }, SeverityWarn, "tls", "private network"},
		"by name":         {func(m *MasterReport) { m.Addr = "redis:6379" }, SeverityWarn, "tls", "private network"},
		"down":            {func(m *MasterReport) { m.ClusterState = "fail" }, SeverityFail, "state", "refuses every call"},
		"coverage":        {func(m *MasterReport) { m.FullCoverage = "yes" }, SeverityWarn, "coverage", "set cluster-require-full-coverage no"},
		"no batch":        {func(m *MasterReport) { m.Probes.Batch = "ERR x" }, SeverityFail, "batch", "(ERR x)"},
		"no disk":         {func(m *MasterReport) { m.Probes.Write = "MISCONF Redis is configured to save" }, SeverityFail, "writes", "it cannot save its data: look at its log"},
		"not tried":       {func(m *MasterReport) { m.Probes.Secret = "" }, SeverityNote, "secret", "not tried"},
		"no keys":         {func(m *MasterReport) { m.Probes = Probes{} }, SeverityFail, "evalsha", "was not tried"},
	} {
		t.Run(name, func(t *testing.T) {
			r := checked(row.change)
			r.expect(t, row.severity, row.check, row.text)
			if want := max(SeverityNote, row.severity); r.Verdict != want { // tls is at least a note
				t.Errorf("the verdict is %s, want %s", r.Verdict, want)
			}
		})
	}
}

// TestNoMajority: where the cluster is down, no right is to blame for a script that did not run, and the node that is named for
// a command answers.
func TestNoMajority(t *testing.T) {
	r := checked(func(m *MasterReport) {
		m.ClusterState, m.Probes.Script, m.FullCoverage = "fail", "CLUSTERDOWN The cluster is down", ""
	})
	r.expect(t, SeverityFail, "state", "refuses every call")
	r.expect(t, SeverityNote, "evalsha", "not tried")
	r.Masters = append([]MasterReport{{Addr: "127.0.0.1:1", Error: "connection refused"}}, r.Masters...)
	r.Findings = nil
	r.checkCoverage()
	_, port, _ := net.SplitHostPort(r.Masters[1].Addr)
	r.expect(t, SeverityNote, "coverage", "-p "+port+" CONFIG GET")
}

func TestFindJoinsNodes(t *testing.T) {
	var r Report
	r.find(SeverityOK, "a", "same", "1")
	r.find(SeverityOK, "a", "other", "2")
	r.find(SeverityOK, "a", "same", "3")
	if len(r.Findings) != 2 || !slices.Equal(r.Findings[0].Nodes, []string{"1", "3"}) {
		t.Errorf("got %+v", r.Findings)
	}
}

func TestReadInfo(t *testing.T) {
	var m MasterReport
	m.readInfo("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nmaxmemory_policy:volatile-ttl\r\naof_enabled:1\r\n" +
		"slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=1\r\nslave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\nslave2:ip=fd00::1,port=6379,state=online,offset=14,lag=0\r\n")
	if m.Server != "Valkey" || m.Version != "8.1.1" || m.compatible != "7.2.4" || m.MemoryPolicy != "volatile-ttl" || !*m.AOF ||
		strings.Join(m.Replicas, " ") != "10.0.0.2:6379 [fd00::1]:6379" || strings.Join(m.Copying, " ") != "10.0.0.3:6379" {
		t.Errorf("got %+v", m)
	}
}

// TestReplicas: a replica without a copy of the data is named, and a master without one is not said to have none elsewhere.
func TestReplicas(t *testing.T) {
	for info, want := range map[string]string{
		"": "no replica is connected to it",
		"slave0:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\n":                                                           "its replica 10.0.0.3:6379 has no copy of its data yet",
		"slave0:ip=10.0.0.3,port=6379,state=send_bulk,offset=0,lag=0\r\nslave1:ip=10.0.0.2,port=6379,state=online,offset=0,lag=0\r\n": "every write is copied to a replica",
	} {
		m := &MasterReport{Addr: "a"}
		m.readInfo(info)
		r := &Report{Masters: []MasterReport{*m}}
		r.checkDurability()
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "replicas" && strings.Contains(f.Text, want) }) {
			t.Errorf("%q: %+v, want %s", info, r.Findings, want)
		}
	}
}

func TestSummarize(t *testing.T) {
	var times []time.Duration
	for i := range 100 {
		times = append(times, time.Duration(100-i))
	}
	if got := summarize(times); got != (RoundTrip{100, 1, 51, 99}) {
		t.Errorf("got %+v", got)
	}
	if got := summarize([]time.Duration{7}); got != (RoundTrip{1, 7, 7, 7}) {
		t.Errorf("got %+v", got)
	}
	if got := summarize(nil); got != (RoundTrip{}) {
		t.Errorf("got %+v", got)
	}
}

// TestProbeTags checks that a master with a single slot has keys too.
func TestProbeTags(t *testing.T) {
	all := probeTags("run", func(uint16) bool { return true })
	one := probeTags("run", func(slot uint16) bool { return slot == 4711 })
	if len(all) != batchSize || len(one) == 0 || len(one) > batchSize {
		t.Errorf("%d and %d tags", len(all), len(one))
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != batchSize {
		t.Error("two tags are the same")
	}
}
