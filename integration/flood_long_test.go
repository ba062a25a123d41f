//go:build long

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tables "github.com/limitgate/limitgate/controlplane/table"
)

// resident returns how many bytes of memory a process has.
func (p *proxy) resident() int {
	p.tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kB, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kB << 10
}

// floodMessages is how many messages are sent to the queue of each proxy.
const floodMessages = 10_000

// floods are bodies of messages that no control plane sends.
var floods = map[string]func(i int) string{
	"garbage": func(i int) string { return strings.Repeat("no JSON ", 50) + fmt.Sprint(i) },
	"forged items": func(i int) string {
		body := fmt.Sprintf(`{"plan":"gold","overrides":{"tenant":{"rate":"%d/s"}}}`, i+1)
		return asJSON(tables.Message{Item: &tables.Item{Key: fmt.Sprintf("TENANT#forged%d", i), Version: 7, Actor: "eve", At: time.Now(), Body: json.RawMessage(body)}})
	},
	"forged digests": func(i int) string {
		return asJSON(tables.Message{Digest: &tables.Digest{Count: int64(i)}, Every: 1 << 40, At: time.Now()})
	},
	"forged orders to read": func(int) string { return asJSON(tables.Message{Reread: true, At: time.Now()}) },
}

func asJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// TestLongTableFlood: ten thousand foreign messages ahead of those of a control plane
// delay no decision, and keep memory and calls within bounds. Limits pushed meanwhile
// take effect.
func TestLongTableFlood(t *testing.T) {
	for name, body := range floods {
		t.Run(name, func(t *testing.T) { floodProxy(t, body) })
	}
}

func floodProxy(t *testing.T, body func(i int) string) {
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	people := *s
	g := startGuard(s)
	s.controlPlane()
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	people.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	enforce(t, "acme", 1000, p)
	d := startDecisions(t, p, "acme")
	pause(5 * time.Second)
	p50Before, p99Before, _ := d.mark()
	residentBefore, linesBefore := p.resident(), p.logged()
	g.reset()
	var sent atomic.Int64
	g.flood(func() (string, bool) {
		if sent.Load() == floodMessages {
			return "", false
		}
		return body(int(sent.Add(1))), true
	})
	eventually(t, "the flood has come", func() bool { return sent.Load() > 0 })
	begun := time.Now()
	people.push(tableLimits(t, "acme: {plan: free}"), "bob")
	changed := time.Now()
	bites, most := s.awaitBite(t, p, 100)
	eventually(t, "the flood is over", func() bool { most = max(most, p.resident()); return sent.Load() == floodMessages })
	lasted := time.Since(begun)
	p50, p99, n := d.mark()
	pause(floodAfter)
	calls, all := g.counts()
	t.Logf("%d messages are gone in %s; the change bites after %s; %d decisions, p50 %s p99 %s, before %s %s", floodMessages, lasted, bites, n, p50, p99, p50Before, p99Before)
	t.Logf("memory %d MB before, at most %d MB; %d calls: %v; %d lines", residentBefore>>20, most>>20, all, calls, p.logged()-linesBefore)
	if p99 > 10*p99Before+slowDecision {
		t.Errorf("decisions take %s, before %s", p99, p99Before)
	}
	if most > residentBefore+floodMemory {
		t.Errorf("it takes %d MB more", (most-residentBefore)>>20)
	}
	if n := p.logged() - linesBefore; n > floodLines {
		t.Errorf("%d lines of log:\n%.2000s", n, p.output())
	}
	// Each message is received and deleted once, ten at a time, and the table is read
	// every two seconds at most.
	if rest, scans := all-calls["ReceiveMessage"]-calls["DeleteMessageBatch"], int(time.Since(changed)/time.Second)+5; calls["Scan"] > 8*scans || rest > 40*scans {
		t.Errorf("too many calls of AWS in %s: %v", time.Since(changed), calls)
	}
	if got, err := check(p.client(), "forged5", "-", "-"); err != nil || got.limit != 100 {
		t.Errorf("%s after the flood a forged tenant has %d, %v", floodAfter, got.limit, err)
	}
	t.Logf("%s after the flood: %s", floodAfter, p.get("/readyz"))
	if err := d.err(); err != nil {
		t.Error(err)
	}
}

const (
	// floodAfter is the time after a flood until all is as before: two digests, ten
	// seconds apart, three seconds for settling, and a read.
	floodAfter = 30 * time.Second
	// floodMemory bounds the additional memory of a proxy, and floodLines the lines that
	// it may log.
	floodMemory = 150 << 20
	floodLines  = 30
)

// awaitBite waits until a proxy gives acme a limit, and returns how long that took, and
// the peak memory of the proxy.
func (s *site) awaitBite(t *testing.T, p *proxy, limit int64) (took time.Duration, most int) {
	t.Helper()
	c, begun := p.client(), time.Now()
	for {
		most = max(most, p.resident())
		got, err := check(c, "acme", "-", "-")
		if err != nil {
			t.Fatal(err)
		}
		if took = time.Since(begun); got.limit == limit {
			return took, most
		}
		if took > 2*time.Minute {
			t.Fatalf("the change does not bite: %s\n%.2000s", p.get("/readyz"), p.output())
		}
		pause(20 * time.Millisecond)
	}
}
