package proxy

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/limit"
)

// claims is a store with one claim.
type claims struct {
	held string
	err  error
}

func (c *claims) Claim(_ context.Context, _, value string, _ time.Duration) (string, error) {
	if c.held == "" {
		c.held = value
	}
	return c.held, c.err
}

// TestHashing: a proxy that hashes addresses in another way than those before it has one line, if a limit counts addresses and
// the other way is not that of the previous secret.
func TestHashing(t *testing.T) {
	hasher := func(secret string, bits int, previous string) *limit.AddrHasher {
		h, err := limit.NewAddrHasher([]byte(strings.Repeat(secret, 16)), limit.Prefixes{IPv4: bits})
		if err != nil {
			t.Fatal(err)
		}
		if previous != "" {
			if err := h.Rotate([]byte(strings.Repeat(previous, 16))); err != nil {
				t.Fatal(err)
			}
		}
		return h
	}
	byIP, byTenant := setOf(t, `{id: ip, by: [tenant, ip], rate: 9/s}`), setOf(t, `{id: t, by: [tenant], rate: 9/s}`)
	first := hasher("a", 32, "")
	for name, row := range map[string]struct {
		hasher *limit.AddrHasher
		limits *limit.Set
		err    error
		lines  int
	}{
		"alike":               {hasher("a", 32, ""), byIP, nil, 0},
		"another secret":      {hasher("b", 32, ""), byIP, nil, 1},
		"another prefix":      {hasher("a", 24, ""), byIP, nil, 1},
		"the previous secret": {hasher("b", 32, "a"), byIP, nil, 0},
		"no address counts":   {hasher("b", 32, ""), byTenant, nil, 0},
		"no store":            {hasher("b", 32, ""), byIP, errors.New("away"), 0},
	} {
		log := new(syncbuffer.Buffer)
		setting, to := hashing(row.hasher, fixedLimits{set: row.limits}.Set), slog.New(slog.NewTextHandler(log, nil))
		store := &claims{first.Fingerprint(), row.err}
		setting.look(t.Context(), store, to)
		if got := log.String(); got != "" {
			t.Errorf("%s: at the first look: %s", name, got)
		}
		for range 5 {
			setting.look(t.Context(), store, to)
		}
		got := log.String()
		if strings.Count(got, "\n") != row.lines || row.lines > 0 && !strings.Contains(got, `there="IPv4 prefix 32, IPv6 prefix 64, secret `) {
			t.Errorf("%s: %s", name, got)
		}
		if strings.Contains(got, strings.Repeat("a", 8)) || strings.Contains(got, strings.Repeat("b", 8)) {
			t.Errorf("%s: a secret is in %s", name, got)
		}
	}
}

// TestCounting: proxies with another --instances than those before them have one line, and not after one look.
func TestCounting(t *testing.T) {
	for here, lines := range map[string]int{"3": 0, "4": 1, "heartbeat": 1} {
		log, store := new(syncbuffer.Buffer), &claims{"3", nil}
		setting := counting(here)
		for i := range 5 {
			setting.look(t.Context(), store, slog.New(slog.NewTextHandler(log, nil)))
			if got := log.String(); strings.Count(got, "\n") != min(i, lines) {
				t.Errorf("%s: after %d looks: %s", here, i+1, got)
			}
		}
	}
}

// TestSameLimits: proxies with other limits than those before them have one line after some looks, and none if their limits change
// meanwhile or become the same.
func TestSameLimits(t *testing.T) {
	versions := []*limit.Set{setOf(t, `{id: a, by: [tenant], rate: 1/s}`), setOf(t, `{id: a, by: [tenant], rate: 2/s}`), setOf(t, `{id: a, by: [tenant], rate: 3/s}`)}
	for name, row := range map[string]struct {
		looks []int // the version at each look; 0 is that of the others
		lines int
	}{
		"other limits":  {slices.Repeat([]int{1}, 3*limitsLooks), 1},
		"the same":      {slices.Repeat([]int{0}, 3*limitsLooks), 0},
		"for a while":   {slices.Concat(slices.Repeat([]int{1}, limitsLooks-1), []int{0}, slices.Repeat([]int{1}, limitsLooks-1)), 0},
		"other ones":    {slices.Concat(slices.Repeat([]int{1}, limitsLooks-1), slices.Repeat([]int{2}, limitsLooks-1)), 0},
		"again too new": {slices.Concat(slices.Repeat([]int{1}, limitsLooks-1), slices.Repeat([]int{2}, limitsLooks)), 1},
	} {
		log, store, now := new(syncbuffer.Buffer), &claims{versions[0].Version, nil}, 0
		setting := sameLimits(func() *limit.Set { return versions[now] })
		for _, now = range row.looks {
			setting.look(t.Context(), store, slog.New(slog.NewTextHandler(log, nil)))
		}
		if got := log.String(); strings.Count(got, "\n") != row.lines || row.lines > 0 && !strings.Contains(got, "there="+versions[0].Version) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
