package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// statsReply returns a reply of INFO.
func statsReply(run string, decisions, denied, backstop int64, took string) string {
	return fmt.Sprintf("# Server\r\nlimitgate_version:test\r\nrun_id:%s\r\n\r\n# Clients\r\nconnected_clients:3\r\n\r\n# Limitgate\r\n"+
		"limitgate_limits_version:abc\r\nlimitgate_limits_stale:0\r\nlimitgate_decisions:%d\r\nlimitgate_denied:%d\r\nlimitgate_would_deny:%d\r\n"+
		"limitgate_source_backstop:%d\r\nlimitgate_decision_usec:%s\r\n", run, decisions, denied, denied, backstop, took)
}

// TestStatsLines: a line has what happened since the state before, of one process, and the names of
// the columns stand above the first line and each twentieth.
func TestStatsLines(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	read := func(after time.Duration, reply string) *stats {
		s, err := parseStats(reply, "x:1", begin.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := read(0, statsReply("a", 1000, 100, 10, "1.0=900,64.0=100"))
	second := read(2*time.Second, statsReply("a", 3000, 600, 110, "1.0=1900,20.5=900,64.0=190,4096.0=10"))
	idle := read(3*time.Second, statsReply("a", 3000, 600, 110, "1.0=1900,20.5=900,64.0=190,4096.0=10"))
	restarted := read(4*time.Second, statsReply("b", 5, 0, 0, ""))
	var out bytes.Buffer
	p := statsPrinter{w: &out}
	for _, s := range []*stats{first, second, idle, restarted} {
		if err := p.print(s); err != nil {
			t.Fatal(err)
		}
	}
	const header = "CLIENTS  DECISIONS/S   DENIED/S  DENIED  BACKSTOP   P50 MS   P99 MS  LIMITS\n"
	const want = header +
		"      3         1000        250   25.0%      5.0%    0.001    0.064  abc\n" +
		"      3            0          0       -         -        -        -  abc\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	for range 2 * headerEvery {
		_ = p.print(restarted)
	}
	if got := strings.Count(out.String(), header); got != 3 {
		t.Errorf("%d headers above %d lines", got, 2+2*headerEvery)
	}
	out.Reset()
	p = statsPrinter{w: &out, asJSON: true}
	_, _ = p.print(first), p.print(second)
	var line statsLine
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%v of\n%s", err, out.String())
	}
	if line.Decisions != 1000 || line.WouldDeny != 250 || *line.Backstop != 5 || *line.P99 != 0.064 || line.Limits != "abc" || line.Clients != 3 {
		t.Errorf("got %s", out.String())
	}
}

// TestStatsOfOthers: a Redis has no decisions, and neither has a limitgate for a user of one tenant.
func TestStatsOfOthers(t *testing.T) {
	for reply, want := range map[string]string{
		"# Server\r\nredis_version:7.0.15\r\n":                               "x:1 is no limitgate",
		"# Server\r\nlimitgate_version:1\r\n\r\n# Limitgate\r\nrun_id:a\r\n": "--user that has +@read ~*",
	} {
		if _, err := parseStats(reply, "x:1", time.Time{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
