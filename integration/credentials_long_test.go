//go:build long

package integration

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// credentialLife is how long the credentials of an endpoint are valid.
const credentialLife = 20 * time.Second

const (
	credentialSecret = "s3cr3t-access-key-of-the-endpoint"
	endpointToken    = "t0ken-for-the-endpoint"
)

// credentialEndpoint serves credentials as the endpoint of a container does, and knows
// which ones are valid.
type credentialEndpoint struct {
	server *httptest.Server
	closed chan struct{}

	mu    sync.Mutex // guards the fields below
	fault func(w http.ResponseWriter) bool
	until map[string]time.Time // when keys expire
	asked int
}

func startCredentials(t *testing.T) *credentialEndpoint {
	t.Helper()
	e := &credentialEndpoint{until: map[string]time.Time{}, closed: make(chan struct{})}
	e.server = httptest.NewServer(e)
	t.Cleanup(func() {
		close(e.closed)
		e.server.Close()
	})
	return e
}

// environment returns the variables that direct a process to the endpoint.
func (e *credentialEndpoint) environment() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_CONTAINER_CREDENTIALS_FULL_URI=" + e.server.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN=" + endpointToken,
	}
}

// breakBy makes fault answer each request, if fault returns true. Nil restores the
// endpoint.
func (e *credentialEndpoint) breakBy(fault func(http.ResponseWriter) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault = fault
}

// ServeHTTP serves credentials.
func (e *credentialEndpoint) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	e.asked++
	fault, key, until := e.fault, "AKIA"+rand.Text()[:16], time.Now().Add(credentialLife)
	if fault == nil {
		e.until[key] = until
	}
	e.mu.Unlock()
	if fault == nil || !fault(w) {
		e.hand(w, key, until)
	}
}

func (e *credentialEndpoint) hand(w http.ResponseWriter, key string, until time.Time) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"AccessKeyId": key, "SecretAccessKey": credentialSecret, "Token": "session-" + key, "Expiration": until.UTC().Format(time.RFC3339),
	})
}

// requests returns the number of requests.
func (e *credentialEndpoint) requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// check refuses calls by their access key as AWS does.
func (e *credentialEndpoint) check(r request) refusal {
	e.mu.Lock()
	defer e.mu.Unlock()
	until, known := e.until[r.key]
	switch {
	case !known:
		return unknownKey
	case time.Now().After(until):
		return expiredToken
	}
	return refusal{}
}

// credentialFaults are the faults of credentials.
func credentialFaults(e *credentialEndpoint) map[string]func(http.ResponseWriter) bool {
	return map[string]func(http.ResponseWriter) bool{
		"errors": func(w http.ResponseWriter) bool {
			http.Error(w, `{"code":"InternalError","message":"try later"}`, http.StatusInternalServerError)
			return true
		},
		"hangs": func(http.ResponseWriter) bool {
			<-e.closed
			return true
		},
		"wrong ones": func(http.ResponseWriter) bool { return false }, // which are unknown
		"rubbish": func(w http.ResponseWriter) bool {
			fmt.Fprint(w, "<html>login</html>")
			return true
		},
	}
}

const (
	// faultTime is the duration of a fault.
	faultTime = 70 * time.Second
	// mendTime bounds the time after a fault until all processes agree.
	mendTime = 2 * time.Minute
)

// TestLongTableCredentials: while an endpoint has no credentials, or wrong ones, proxies
// decide as before and report stale limits. When it has valid ones again, all agree
// without help.
func TestLongTableCredentials(t *testing.T) {
	for name := range credentialFaults(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			breakCredentials(t, name)
		})
	}
}

// credentialScene is a control plane and proxies of a table with the credentials of an
// endpoint.
type credentialScene struct {
	people    *site // have good credentials
	endpoint  *credentialEndpoint
	guard     *guard
	processes []*proxy // a control plane, and then proxies
	decisions *decisions
}

func newCredentialScene(t *testing.T) *credentialScene {
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	people := *s
	c := &credentialScene{people: &people, endpoint: startCredentials(t), guard: startGuard(s)}
	c.guard.rule(c.endpoint.check)
	s.env = append(s.env, c.endpoint.environment()...)
	c.processes = []*proxy{s.controlPlane(), s.serve(filepath.Join(t.TempDir(), "snapshot")), s.serve(filepath.Join(t.TempDir(), "snapshot"))}
	people.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	enforce(t, "acme", 1000, c.processes[1:]...)
	c.decisions = startDecisions(t, c.processes[1], "acme")
	return c
}

// isStale reports whether a proxy reports that its limits may be stale.
func (p *proxy) isStale() bool {
	return metric(p.get("/metrics"), "limitgate_config_stale") == 1 && strings.Contains(p.get("/readyz"), `"limits":"stale, `)
}

// logged counts the lines of a log.
func (p *proxy) logged() int { return strings.Count(p.output(), "\n") }

// digestTime is the longest interval between two digests, with a margin.
const digestTime = 12 * time.Second

func breakCredentials(t *testing.T, name string) {
	c := newCredentialScene(t)
	pause(digestTime) // from then on a proxy knows when the next one is late
	_, before, _ := c.decisions.mark()
	var first []int
	for _, p := range c.processes {
		first = append(first, p.logged())
	}
	c.guard.reset()
	c.endpoint.breakBy(credentialFaults(c.endpoint)[name])
	begun, asked := time.Now(), c.endpoint.requests()
	pause(credentialLife) // the last valid ones may be cached
	c.people.push(tableLimits(t, "acme: {plan: free}"), "bob")
	c.watchStale(t, begun)
	_, during, n := c.decisions.mark()
	calls, all := c.guard.counts()
	endpoint := c.endpoint.requests() - asked
	t.Logf("%d decisions, p99 %s, before %s; %d calls of AWS: %v; %d of the endpoint", n, during, before, all, calls, endpoint)
	if during > 10*before+slowDecision {
		t.Errorf("decisions take %s, before %s", during, before)
	}
	if seconds := int(faultTime / time.Second); all > 10*seconds || endpoint > 20*seconds {
		t.Errorf("too many calls in %s: %d of AWS, %d of the endpoint", faultTime, all, endpoint)
	}
	for i, p := range c.processes {
		if n := p.logged() - first[i]; n < 1 && name != "hangs" || n > 10 { // a call that hangs has not failed yet
			t.Errorf("process %d logs %d lines in %s:\n%s", i, n, faultTime, p.output())
		}
	}
	c.endpoint.breakBy(nil)
	c.awaitMend(t, time.Now())
}

// slowDecision is the allowance for a busy machine in the time of a decision.
const slowDecision = 20 * time.Millisecond

// staleTime bounds the time until proxies report stale limits: three digests are missing.
const staleTime = 45 * time.Second

// watchStale checks that proxies report stale limits in time, and until the fault is
// over.
func (c *credentialScene) watchStale(t *testing.T, begun time.Time) {
	t.Helper()
	said := map[int]bool{}
	for time.Since(begun) < faultTime {
		for i, p := range c.processes[1:] {
			since := time.Since(begun).Round(100 * time.Millisecond)
			switch stale := p.isStale(); {
			case stale && !said[i]:
				said[i] = true
				t.Logf("proxy %d is stale after %s: %s", i, since, p.get("/readyz"))
			case !stale && (said[i] || since > staleTime):
				t.Errorf("after %s proxy %d is not stale: %s", since, i, p.get("/readyz"))
				return
			}
		}
		pause(200 * time.Millisecond)
	}
}

// awaitMend waits until the proxies use the limits that were pushed during the fault, and
// are not stale.
func (c *credentialScene) awaitMend(t *testing.T, mended time.Time) {
	t.Helper()
	for i, p := range c.processes[1:] {
		client := p.client()
		for {
			got, err := check(client, "acme", "-", "-")
			if err != nil {
				t.Fatal(err)
			}
			if got.limit == 100 && !p.isStale() {
				t.Logf("proxy %d agrees %s after it was mended", i, time.Since(mended).Round(100*time.Millisecond))
				break
			}
			if time.Since(mended) > mendTime {
				t.Fatalf("not within %s: proxy %d gives %d, %s\n%s", mendTime, i, got.limit, p.get("/readyz"), p.output())
			}
			pause(100 * time.Millisecond)
		}
	}
	if err := c.decisions.err(); err != nil {
		t.Error(err)
	}
	for _, p := range c.processes {
		if log := p.output(); strings.Contains(log, credentialSecret) || strings.Contains(log, endpointToken) || strings.Contains(log, "session-AKIA") {
			t.Errorf("a log has a secret:\n%s", log)
		}
	}
}
