package integration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// canary is a proxy that tries each changed file on some of the tenants.
type canary struct {
	*proxy
	path    string
	c       *redis.Client
	in, out string // a tenant in the canary, and one that is not
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	k := &canary{path: writeLimits(t, limitOf("1000/h"))}
	k.proxy = serve(t, k.path, append([]string{"--limits-canary", "25%"}, exact...)...)
	k.c = k.client()
	k.in, k.out = cohorts(2500)
	return k
}

// version returns the reply of RL.CONFIG VERSION.
func (k *canary) version() string {
	return asText(k.c.Do(context.Background(), "RL.CONFIG", "VERSION").Val())
}

// say sends RL.CONFIG with a word, and returns the error.
func (k *canary) say(word string) error {
	return k.c.Do(context.Background(), "RL.CONFIG", word).Err()
}

// want checks the limits of both tenants.
func (k *canary) want(t *testing.T, when string, in, out int64) {
	t.Helper()
	if a, b := limitOfTenant(t, k.c, k.in), limitOfTenant(t, k.c, k.out); a != in || b != out {
		t.Errorf("%s: tenants have %d and %d, want %d on trial and %d: %s", when, a, b, in, out, k.version())
	}
}

// await waits until the tenant in the canary has a limit, and checks the limit of the
// other one.
func (k *canary) await(t *testing.T, when string, in, out int64) {
	t.Helper()
	eventually(t, when, func() bool { return limitOfTenant(t, k.c, k.in) == in })
	k.want(t, when, in, out)
}

// TestCanaryWhileTheFileChanges: the canary is the newest valid file, beside the limits
// of all tenants. An invalid, empty or missing file ends no canary and is never promoted,
// and only a file that was the canary is promoted.
func TestCanaryWhileTheFileChanges(t *testing.T) {
	k := newCanary(t)
	replace(t, k.path, limitOf("2000/h"))
	k.await(t, "the first change", 2000, 1000)
	replace(t, k.path, limitOf("3000/h"))
	replace(t, k.path, limitOf("4000/h"))
	k.await(t, "two changes at once", 4000, 1000)
	if err := k.c.Do(t.Context(), "RL.LIMITS", k.in).Err(); err != nil {
		t.Error(err)
	}
	_ = k.cmd.Process.Signal(syscall.SIGHUP)
	for range 3 {
		if err := k.say("RELOAD"); err != nil {
			t.Error(err)
		}
	}
	k.want(t, "the same file again", 4000, 1000)
	replace(t, k.path, limitOf("1000/h"))
	k.await(t, "the file before", 1000, 1000)
	if said := k.version(); strings.Contains(said, "on 25 %") {
		t.Errorf("canary after the file was restored: %s", said)
	}
	if err := k.say("PROMOTE"); err == nil || !strings.Contains(err.Error(), "no limits are on trial") {
		t.Errorf("promoted: %v", err)
	}

	replace(t, k.path, limitOf("5000/h"))
	k.await(t, "another one", 5000, 1000)
	for what, spoil := range map[string]func(){
		"cut":   func() { replace(t, k.path, limitOf("6000/h")[:30]) },
		"empty": func() { replace(t, k.path, "") },
		"gone": func() {
			if err := os.Remove(k.path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		spoil()
		if err := k.say("PROMOTE"); err == nil {
			t.Errorf("%s: promoted", what)
		}
		eventually(t, what+": /readyz says so", func() bool { return strings.Contains(k.get("/readyz"), "limits_error") })
		k.want(t, what, 5000, 1000)
		if err := k.say("PROMOTE"); err == nil || !strings.Contains(err.Error(), k.path) {
			t.Errorf("%s: promoted: %v", what, err)
		}
		replace(t, k.path, limitOf("5000/h"))
		eventually(t, what+": and that it is over", func() bool { return !strings.Contains(k.get("/readyz"), "limits_error") })
		k.want(t, what+", and back", 5000, 1000)
	}

	if err := os.Remove(k.path); err != nil {
		t.Fatal(err)
	}
	if err := k.say("ABORT"); err != nil {
		t.Error(err)
	}
	k.want(t, "taken back without a file", 1000, 1000)
	replace(t, k.path, limitOf("5000/h"))
	eventually(t, "it waits for another file", func() bool { return strings.Contains(k.version(), "waits for another file") })
	k.want(t, "what was taken back comes again", 1000, 1000)
}

// promotions is how often a file is promoted while it changes.
const promotions = 40

// TestPromoteWhileTheFileChanges: the promoted limits have been the canary, whatever the
// file contains by then.
func TestPromoteWhileTheFileChanges(t *testing.T) {
	t.Parallel()
	k := newCanary(t)
	all, promoted := int64(1000), 0
	for n := range int64(promotions) {
		next, after := 10_000+2*n, 10_001+2*n
		replace(t, k.path, limitOf(perHour(next)))
		k.await(t, "it is tried", next, all)
		replace(t, k.path, limitOf(perHour(after)))
		tried := []int64{next, after}
		var err error
		if n%2 == 0 { // at once; otherwise when the next one is read
			err = k.say("PROMOTE")
		} else {
			eventually(t, "promoted", func() bool { err = k.say("PROMOTE"); return err == nil })
		}
		has := limitOfTenant(t, k.c, k.out)
		switch {
		case err == nil && slices.Contains(tried, has):
			promoted++
			all = has
		case err != nil && has == all && strings.Contains(err.Error(), "is on trial: wait until it is read, or try again"):
		default:
			t.Fatalf("round %d: %v, and others have %d, not %d", n, err, has, all)
		}
		if err == nil && has == next {
			t.Errorf("round %d: promoted is a file that is not there any more", n)
		}
		k.await(t, "the file is tried or promoted", after, all)
	}
	t.Logf("%d of %d were promoted", promoted, promotions)
}

func perHour(n int64) string { return fmt.Sprint(n, "/h") }
