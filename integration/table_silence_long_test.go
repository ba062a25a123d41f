//go:build long

package integration

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sns"
)

// biteTime bounds the time until a change takes effect that is written while no control
// plane runs.
const biteTime = 2 * time.Minute

// TestLongTableSilence: with the last control plane killed, a proxy reports stale limits,
// and uses limits pushed meanwhile within two minutes. When a control plane runs again it
// no longer reports stale limits. The same holds if the subscription of the proxy is
// deleted.
func TestLongTableSilence(t *testing.T) {
	for name, silence := range map[string]func(t *testing.T, s *site, plane *proxy){
		"no control plane": func(_ *testing.T, _ *site, plane *proxy) { _ = plane.stop(syscall.SIGKILL) },
		"no subscription":  unsubscribeAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.push(tableLimits(t, "acme: {plan: free}"), "ann")
			plane := s.controlPlane()
			p := s.serve(filepath.Join(t.TempDir(), "snapshot"))
			enforce(t, "acme", 100, p)
			pause(2 * time.Second) // a digest has arrived
			silence(t, s, plane)
			s.push(tableLimits(t, "acme: {plan: gold}"), "bob")
			began := time.Now()
			c := p.client()
			await := func(what string, ok func() bool) {
				t.Helper()
				for !ok() {
					if time.Since(began) > biteTime {
						t.Fatalf("not within %s: %s\n%s", biteTime, what, p.output())
					}
					pause(100 * time.Millisecond)
				}
				t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond))
			}
			version := func() string { return asText(c.Do(context.Background(), "RL.CONFIG", "VERSION").Val()) }
			await("it says that it is stale", func() bool { return strings.Contains(version(), "no digest of the limits has come") })
			await("the change bites", func() bool {
				got, err := check(c, "acme", "-", "-")
				return err == nil && got.limit == 1000
			})
			if name == "no control plane" {
				s.controlPlane()
				await("it is well again", func() bool { return !strings.Contains(version(), "no digest") })
			}
		})
	}
}

// unsubscribeAll deletes the subscriptions of all proxies, and leaves their queues.
func unsubscribeAll(t *testing.T, s *site, _ *proxy) {
	t.Helper()
	for _, arn := range s.Subscriptions(t) {
		if _, err := sns.NewFromConfig(s.Config).Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &arn}); err != nil {
			t.Fatal(err)
		}
	}
}
