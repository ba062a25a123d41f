//go:build long

package integration

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// gateWatch is how long a proxy with a faulty gate is watched: longer than the pause
	// after an error, so that its failed calls are counted.
	gateWatch = 20 * time.Second
	// gateCalls bounds the calls of a proxy in that time: two requests, three attempts
	// each, before and after a pause.
	gateCalls = 2*2*3 + 1
	// gateOpen is a gate that makes the scene's revision the canary of all tenants.
	gateOpen = `{"revision":1,"percent":100,"threshold":100}`
)

// silent does not reply.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // otherwise the end of the connection is not noticed
	<-r.Context().Done()
}

// gateFault is a fault of a gate with a canary.
type gateFault struct {
	befall func(a *appConfig)
	limit  int64  // the enforced limit during it: 200 by the revision, 100 without it
	says   string // the text in /readyz during it, "" for none
}

var gateFaults = map[string]gateFault{
	"cut in half":      {func(a *appConfig) { a.put(gateOpen[:20]) }, 200, "read gate: unexpected end of JSON input"},
	"nothing":          {func(a *appConfig) { a.put("") }, 200, ""}, // the reply of AppConfig if nothing has changed
	"null":             {func(a *appConfig) { a.put("null") }, 200, "read gate"},
	"limits":           {func(a *appConfig) { a.put(`{"version":1,"plans":{"free":[]}}`) }, 200, "read gate"},
	"a list":           {func(a *appConfig) { a.put(`[1]`) }, 200, "read gate"},
	"a huge revision":  {func(a *appConfig) { a.put(`{"revision":9223372036854775807,"percent":100,"threshold":5}`) }, 100, ""},
	"beyond numbers":   {func(a *appConfig) { a.put(`{"revision":1e40,"percent":100,"threshold":5}`) }, 200, "read gate"},
	"percent of 1000":  {func(a *appConfig) { a.put(`{"revision":1,"percent":1000,"threshold":5}`) }, 200, "percent and threshold are from 0 to 100"},
	"ten megabytes":    {func(a *appConfig) { a.put(strings.Repeat("x", 10<<20)) }, 200, "the configuration has 10485760 bytes"},
	"twice in a poll":  {func(a *appConfig) { a.put(`{"revision":0}`); a.put(`{"revision":1,"percent":100,"threshold":99}`) }, 200, ""},
	"a former version": {func(a *appConfig) { a.put(`{"revision":0,"percent":0,"threshold":0}`) }, 100, ""},
	"sessions expire":  {func(a *appConfig) { a.expire() }, 200, "poll AppConfig"}, // for one poll
	"an error":         {func(a *appConfig) { a.fail("", status(500, "InternalServerException", "{}")) }, 200, "poll AppConfig"},
	"no permission":    {func(a *appConfig) { a.fail("", status(403, "AccessDeniedException", `{"Message":"no"}`)) }, 200, "AccessDeniedException"},
	"a captive portal": {func(a *appConfig) { a.fail("", status(200, "", html)) }, 200, "poll AppConfig"},
	"half a portal":    {func(a *appConfig) { a.fail("GET configuration", status(200, "", html)) }, 200, "no token for the next poll"},
	"a long error":     {func(a *appConfig) { a.fail("", status(500, "", strings.Repeat("x", 10<<20))) }, 200, "poll AppConfig"},
	"a connection that ends": {func(a *appConfig) {
		a.fail("", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	}, 200, "poll AppConfig"},
}

// gated is a proxy with a faulty gate of its own.
type gated struct {
	*proxy
	name   string
	gate   *appConfig
	fault  gateFault
	client *redis.Client
	wrong  bool // it has enforced another limit
}

// gated starts a proxy for each fault.
func (s *site) gated() (all []*gated) {
	s.tb.Helper()
	for name, fault := range gateFaults {
		g := &gated{name: name, gate: newAppConfig(s.tb), fault: fault}
		g.gate.put(gateOpen)
		mine := *s
		mine.env = g.gate.environment()
		g.proxy = mine.serve(filepath.Join(s.tb.TempDir(), "snapshot"), "--cells-table", "cells", "--rollout-gate", gateName)
		g.client = g.proxy.client()
		all = append(all, g)
	}
	return all
}

// TestLongTableGate: whatever AppConfig replies, proxies apply the last valid state of
// the gate or the new one, report the fault, and make no more calls than allowed. When it
// replies again they apply its state.
func TestLongTableGate(t *testing.T) {
	s := newSite(t)
	s.push(freeAt(t, "100/s"), "ann")
	s.env = newAppConfig(t).environment()
	s.rollOut(0, "start", "--percent", "100", freeAt(t, "200/s"), tableURL)
	s.controlPlane()
	all := s.gated()
	for _, g := range all {
		enforce(t, "beta", 200, g.proxy)
		g.fault.befall(g.gate)
	}
	for _, g := range all {
		g.suffer(t)
	}
	for end := time.Now().Add(gateWatch); time.Now().Before(end); pause(200 * time.Millisecond) {
		for _, g := range all {
			if n := limitOfTenant(t, g.client, "beta"); n != g.fault.limit && !g.wrong {
				g.wrong = true
				t.Errorf("%s: it enforces %d, want %d: %s\n%s", g.name, n, g.fault.limit, g.get("/readyz"), g.output())
			}
		}
	}
	for _, g := range all {
		calls, errs := g.gate.count(""), strings.Count(g.output(), "level=ERROR")
		t.Logf("%s: %d calls, %d errors in a log of %d bytes: %s", g.name, calls, errs, len(g.output()), g.get("/readyz"))
		if g.gate.failing() && calls > gateCalls {
			t.Errorf("%s: %d calls in %s", g.name, calls, gateWatch)
		}
		if errs > 4 || len(g.output()) > 16<<10 {
			t.Errorf("%s: %d errors are logged:\n%.2000s", g.name, errs, g.output())
		}
		g.gate.fail("", nil)
		g.gate.put(`{"revision":0}`)
	}
	for _, g := range all {
		enforce(t, "beta", 100, g.proxy)
		if said := g.get("/readyz"); strings.Contains(said, "limits_error") {
			t.Errorf("%s: when all is well /readyz says %s", g.name, said)
		}
	}
}

// suffer waits until a proxy shows the effects of its gate's fault.
func (g *gated) suffer(t *testing.T) {
	t.Helper()
	late := time.Now().Add(startTimeout)
	for {
		said := g.get("/readyz")
		if strings.Contains(said+g.output(), g.fault.says) { // the fault may be over
			break
		}
		if time.Now().After(late) {
			t.Errorf("%s: /readyz says %s, not %q", g.name, said, g.fault.says)
			return
		}
		pause(100 * time.Millisecond)
	}
}

// gateSilence bounds the time until a proxy reports that AppConfig does not reply.
const gateSilence = 40 * time.Second

// TestLongTableGateSilent: while AppConfig accepts requests and does not reply, a proxy
// applies the last state of the gate, and reports that the current one is unknown. One
// that starts meanwhile does start, without a canary. Both follow the gate when it
// replies.
func TestLongTableGateSilent(t *testing.T) {
	s := newSite(t)
	s.push(freeAt(t, "100/s"), "ann")
	gate := newAppConfig(t)
	s.env = gate.environment()
	s.rollOut(0, "start", "--percent", "100", freeAt(t, "200/s"), tableURL)
	s.controlPlane()
	start := func() *proxy {
		return s.serve(filepath.Join(t.TempDir(), "snapshot"), "--cells-table", "cells", "--rollout-gate", gateName)
	}
	before := start()
	enforce(t, "beta", 200, before)
	gate.fail("", silent)
	began := time.Now()
	meanwhile := start()
	t.Logf("a proxy has started after %s", time.Since(began).Round(time.Millisecond))
	for what, p := range map[string]*proxy{"the one before": before, "the one that has started": meanwhile} {
		for !strings.Contains(p.get("/readyz"), "poll AppConfig") {
			if time.Since(began) > gateSilence {
				t.Fatalf("%s does not say within %s that the gate is not known: %s", what, gateSilence, p.get("/readyz"))
			}
			pause(100 * time.Millisecond)
		}
		t.Logf("%s says so after %s", what, time.Since(began).Round(time.Millisecond))
	}
	enforce(t, "beta", 200, before)
	enforce(t, "beta", 100, meanwhile)
	if n := gate.count(""); n > gateCalls {
		t.Errorf("%d calls in %s", n, time.Since(began))
	}
	gate.fail("", nil)
	for end := time.Now().Add(gateSilence); limitOfTenant(t, meanwhile.client(), "beta") != 200 && time.Now().Before(end); {
		pause(100 * time.Millisecond)
	}
	enforce(t, "beta", 200, before, meanwhile)
	gate.put(`{"revision":0}`)
	enforce(t, "beta", 100, before, meanwhile)
}

// failing reports whether calls return a fault.
func (a *appConfig) failing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fault != nil
}

// expire expires all sessions.
func (a *appConfig) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.sessions)
	a.expired++
}
