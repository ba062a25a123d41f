//go:build long

package integration

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	lambdaLasts  = 40 * time.Second
	lambdaPause  = 25 * time.Millisecond // between two changes
	lambdaKills  = 4 * time.Second       // between two kills of a function
	lambdaAgain  = 10                    // retries of a failed event: there are fewer consecutive failures
	lambdaDigest = 3 * time.Second       // between two digests
)

// unreliable rules that a tenth of the calls are refused, that for a twentieth only the
// reply is lost, and that for a tenth of the batches one half is refused.
func unreliable(operation string, _ int) ruling {
	switch x := rand.Float64(); {
	case x < 0.10:
		return refused
	case x < 0.15:
		return answerLost
	case x < 0.25 && operation == "PublishBatch":
		return halved
	}
	return letThrough
}

// TestLongLambda changes limits all the time while calls of the functions fail, and while
// the functions are killed. In the end each change was published, in order, there is
// exactly one audit object for it, and proxies enforce the table.
func TestLongLambda(t *testing.T) {
	s := newLambdaScene(t)
	bucket := s.archive()
	s.start(lambdaAgain)
	writes := startCensor(s.site)
	auditor := s.site.function("audit", append(writes.environment(), "LIMITGATE_AUDIT_BUCKET="+auditBucket)...)
	audit := s.mapStream(auditor, "limits", lambdaBatch, lambdaAgain, s.onward.url)
	var all []*proxy
	for range 2 {
		all = append(all, s.serve(filepath.Join(t.TempDir(), "snapshot")))
	}
	s.censor.by(unreliable)
	writes.by(unreliable)
	digests, failed := s.disturb(t, s.relay, auditor)
	s.censor.by(nil)
	writes.by(nil)
	last := time.Now()
	s.mapping.await(s.records())
	s.enforced(t, all...)
	agreed := time.Since(last)
	audit.await(s.records())
	changes, published := s.checkPublished(t)
	entries := readAudit(t, bucket)
	s.changer.check(t, entries)
	if letters := s.onward.read(); len(letters) > 0 {
		t.Errorf("given up: %v", letters)
	}
	repairs := 0
	for _, p := range all {
		repairs += metric(p.get("/metrics"), "limitgate_config_repairs_total")
	}

	var text strings.Builder
	rows := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "function\tprocesses\tevents\tdone in part\terrors")
	for name, m := range map[string]*mapping{"relay": s.mapping, "audit": audit} {
		events, parts, errs := m.deliveredEvents()
		fmt.Fprintf(rows, "%s\t%d\t%d\t%d\t%d\n", name, m.started(), len(events), parts, errs)
		if m.started() < 3 || parts == 0 || errs == 0 {
			t.Errorf("%s: nothing went wrong", name)
		}
	}
	_ = rows.Flush()
	t.Logf("%d changes, %d of them by hand, in %s: %d were published in %d messages, and %d objects are of them; %d digests, and %d that failed; proxies read the table %d times, and agreed %s after the last change\n%s",
		s.changer.made, s.changer.byHand, lambdaLasts, changes, published, len(entries), digests, failed, repairs, agreed.Round(100*time.Millisecond), text.String())
}

// disturb changes limits for a while, sometimes kills a function while it processes an
// event, and makes the relay publish digests of the table.
func (s *lambdaScene) disturb(t *testing.T, victims ...*function) (digests, failed int) {
	t.Helper()
	end, killed, digested := time.Now().Add(lambdaLasts), time.Now(), time.Now()
	for n := 0; time.Now().Before(end); {
		s.changer.change()
		pause(lambdaPause)
		if victim := victims[n%len(victims)]; time.Since(killed) > lambdaKills && victim.isBusy() {
			victim.kill()
			n++
			killed = time.Now()
		}
		if time.Since(digested) > lambdaDigest {
			if _, err := s.relay.invoke(t.Context(), []byte(`{"source":"aws.events"}`)); err != nil {
				failed++
			} else {
				digests++
			}
			digested = time.Now()
		}
	}
	return digests, failed
}

// isBusy reports whether the function is processing an event.
func (f *function) isBusy() bool {
	if !f.one.TryLock() {
		return true
	}
	f.one.Unlock()
	return false
}
