package users

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/internal/failures"
)

var client = netip.MustParseAddr("192.0.2.1")

// chosen returns the rule for a password that was chosen, with parameters of a test.
func chosen(t testing.TB, password string) string {
	t.Helper()
	p, err := parsePassword(HashPassword(password))
	if err != nil || !p.match(password) || p.match(password+"x") {
		t.Fatalf("a new hash is of no use: %v", err)
	}
	return p.text
}

func TestAuthenticate(t *testing.T) {
	a := NewAuthenticator(mustParse(t, fmt.Sprintf("user gen on %s %s\nuser chosen on %s\nuser off off %s\nuser any on nopass",
		generated("one"), generated("two"), chosen(t, "a password"), generated("one"))), nil)
	for _, c := range []struct {
		name, password string
		waits, ok      bool
	}{
		{"gen", "one", false, true},
		{"gen", "two", false, true},
		{"any", "", false, true},
		{"any", "x", false, true},
		{"gen", "three", true, false},
		{"gen", "", true, false},
		{"off", "one", true, false},
		{"none", "one", true, false},
		{"", "", true, false},
		{"chosen", "a password", true, true},
		{"chosen", "a password", false, true},
		{"chosen", "a passwords", true, false},
		{"gen", strings.Repeat("x", 1<<20), true, false},
	} {
		if got := a.MayWait(c.name, c.password); got != c.waits {
			t.Errorf("%s with %.20q may wait: %v", c.name, c.password, got)
		}
		u, err := a.Authenticate(t.Context(), client, c.name, c.password)
		if c.ok && (err != nil || u.Name != c.name) || !c.ok && (!errors.Is(err, ErrWrong) || u != nil) {
			t.Errorf("%s with %.20q: %v, %v", c.name, c.password, u, err)
		}
	}
	if got, want := a.Counts(), (Counts{OK: 6, Wrong: 7, Hashes: 8}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if a := NewAuthenticator(mustParse(t, "user gen on "+generated("one")), nil); a.MayWait("none", "x") {
		t.Error("without a hash of Argon2id an attempt may wait")
	}
}

// TestReplace checks that a replaced Set counts at once, also for passwords that were right.
func TestReplace(t *testing.T) {
	hash := chosen(t, "a password")
	before := mustParse(t, "user a on "+hash+" ~x\nuser b on "+generated("b"))
	a := NewAuthenticator(before, nil)
	u, err := a.Authenticate(t.Context(), client, "a", "a password")
	if err != nil {
		t.Fatal(err)
	}
	after := mustParse(t, "user b on "+generated("b")+"\n\nuser c on "+hash)
	a.Replace(after)
	for _, name := range []string{"a", "c"} {
		if !a.MayWait(name, "a password") {
			t.Errorf("the password of %s is known to be right", name)
		}
	}
	if _, err := a.Authenticate(t.Context(), client, "a", "a password"); !errors.Is(err, ErrWrong) {
		t.Errorf("a user that was removed: %v", err)
	}
	if after.Keeps(u) || !after.Keeps(before.User("b")) {
		t.Error("connections of the wrong user go on")
	}
	for _, rules := range []string{
		"off " + generated("b"), "on " + generated("b") + " ~x", "on " + generated("b") + " +@check", "on nopass", "on " + generated("c"),
		"on " + hash, "on " + generated("b") + " ~*", "on " + generated("c") + " certificate=cn:b",
	} {
		if mustParse(t, "user b "+rules).Keeps(before.User("b")) {
			t.Errorf("a change to %q keeps connections", rules)
		}
	}
	for _, rules := range []string{generated("b") + " " + generated("c"), generated("c") + " " + generated("b"), generated("b") + " certificate=cn:b", generated("b") + " " + hash} {
		if !mustParse(t, "user b on "+rules).Keeps(before.User("b")) {
			t.Errorf("%q, which has another way to log in, closes connections", rules)
		}
	}
}

// TestFailures checks the limit of failures of an address, and that passwords whose check
// costs nothing are not refused by it.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAuthenticator(mustParse(t, fmt.Sprintf("user gen on %s\nuser chosen on %s\nuser known on %s", generated("one"), chosen(t, "a password"), chosen(t, "known"))), nil)
		ask := func(addr netip.Addr, name, password string) error {
			_, err := a.Authenticate(t.Context(), addr, name, password)
			return err
		}
		if err := ask(client, "known", "known"); err != nil {
			t.Fatal(err)
		}
		for i := range failures.Most {
			if err := ask(client, "chosen", fmt.Sprint("guess", i)); !errors.Is(err, ErrWrong) {
				t.Fatalf("failure %d: %v", i, err)
			}
		}
		mapped := netip.MustParseAddr("::ffff:192.0.2.1")
		for _, addr := range []netip.Addr{client, mapped} {
			if err := ask(addr, "chosen", "a password"); !errors.Is(err, ErrTooOften) {
				t.Errorf("from %s, behind %d failures: %v", addr, failures.Most, err)
			}
		}
		if err := ask(client, "none", "x"); !errors.Is(err, ErrTooOften) {
			t.Errorf("a user that does not exist: %v", err)
		}
		if err := ask(client, "gen", "two"); !errors.Is(err, ErrTooOften) {
			t.Errorf("a wrong password that is checked: %v", err)
		}
		for name, password := range map[string]string{"gen": "one", "known": "known"} {
			if err := ask(client, name, password); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := ask(netip.MustParseAddr("192.0.2.2"), "chosen", "wrong"); !errors.Is(err, ErrWrong) {
			t.Errorf("another address: %v", err)
		}
		time.Sleep(failures.Period / failures.Most)
		if err := ask(client, "chosen", "a password"); err != nil {
			t.Errorf("later: %v", err)
		}
	})
}

// TestNetworks checks that a client cannot evade the limit by another address of its network.
func TestNetworks(t *testing.T) {
	a := NewAuthenticator(mustParse(t, "user a on "+generated("one")), nil)
	ask := func(addr string) error {
		_, err := a.Authenticate(t.Context(), netip.MustParseAddr(addr), "a", "wrong")
		return err
	}
	for i := range failures.Most {
		_ = ask(fmt.Sprintf("2001:db8::%x", i))
	}
	if err := ask("2001:db8::ffff"); !errors.Is(err, ErrTooOften) {
		t.Errorf("another address of the network: %v", err)
	}
	if err := ask("2001:db8:0:1::1"); !errors.Is(err, ErrWrong) {
		t.Errorf("another network: %v", err)
	}
}

// TestStorm: a fleet that connects again at once costs one computation for each user, and a
// crowd of wrong passwords is refused instead of being queued without a bound.
func TestStorm(t *testing.T) {
	a := NewAuthenticator(mustParse(t, "user a on "+chosen(t, "a password")), nil)
	storm := func(n int, password func(i int) string) (results map[error]int) {
		var mu sync.Mutex
		var all sync.WaitGroup
		results = map[error]int{}
		for i := range n {
			all.Go(func() {
				_, err := a.Authenticate(t.Context(), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), "a", password(i))
				mu.Lock()
				defer mu.Unlock()
				results[err]++
			})
		}
		all.Wait()
		return results
	}
	if got := storm(maxWaiting, func(int) string { return "a password" }); got[nil] != maxWaiting || a.verified.Len() != 1 {
		t.Errorf("right passwords: %v, %d computations", got, a.verified.Len())
	}
	if got := storm(1000, func(int) string { return "a password" }); got[nil] != 1000 {
		t.Errorf("right passwords that are known: %v", got)
	}
	got := storm(1000, func(i int) string { return fmt.Sprint(i) })
	if got[ErrWrong]+got[ErrBusy] != 1000 || got[ErrBusy] == 0 || got[ErrWrong] < maxWaiting {
		t.Errorf("wrong passwords: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range cap(a.hashing) {
		a.hashing <- struct{}{}
	}
	if _, err := a.Authenticate(ctx, client, "a", "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that is gone: %v", err)
	}
}

// TestWrongTimes checks that wrong passwords cost the same for users that exist and others, and
// prints how long they take.
func TestWrongTimes(t *testing.T) {
	a := NewAuthenticator(mustParse(t, fmt.Sprintf("user one on %s\nuser two on %s %s\nuser gen on %s\nuser gone off %s",
		chosen(t, "x"), chosen(t, "x"), chosen(t, "y"), generated("x"), generated("x"))), nil)
	const rounds = 3
	times := map[string][]time.Duration{}
	for i := range rounds {
		for j, name := range []string{"one", "two", "gen", "gone", "none"} {
			begin := time.Now()
			if _, err := a.Authenticate(t.Context(), netip.AddrFrom4([4]byte{10, byte(i), byte(j), 1}), name, "wrong"); !errors.Is(err, ErrWrong) {
				t.Fatal(name, err)
			}
			if n := a.Counts().Hashes; n != 2 {
				t.Fatalf("%s costs %d computations, and another user 2", name, n)
			}
			a.count.hashes.Store(0)
			times[name] = append(times[name], time.Since(begin))
		}
	}
	for name, all := range times {
		slices.Sort(all)
		t.Logf("%-5s min %6.1f ms, median %6.1f ms, max %6.1f ms", name, ms(all[0]), ms(all[rounds/2]), ms(all[rounds-1]))
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// refusingTokens accepts the token "good".
type refusingTokens struct{}

func (refusingTokens) Verify(token string) (tenant string, until time.Time, err error) {
	if token == "good" {
		return "acme", time.Now().Add(time.Hour), nil
	}
	return "", until, errors.New("no key fits the token")
}

// TestTokenFailures: tokens that are refused keep neither valid ones nor passwords out.
func TestTokenFailures(t *testing.T) {
	a := NewAuthenticator(mustParse(t, "user chosen on "+chosen(t, "a password")), refusingTokens{})
	begun := time.Now()
	a.now = func() time.Time { return begun }
	results := map[bool]int{}
	for range 3 * failures.Most {
		_, err := a.Authenticate(t.Context(), client, TokenName, "bad")
		if !errors.Is(err, ErrToken) && !errors.Is(err, ErrTooOften) {
			t.Fatal(err)
		}
		results[errors.Is(err, ErrTooOften)]++
	}
	if results[false] != failures.Most || results[true] != 2*failures.Most {
		t.Errorf("refused %d, too often %d", results[false], results[true])
	}
	u, err := a.Authenticate(t.Context(), client, TokenName, "good")
	if err != nil || u.Tenant() != "acme" || !u.May(Check) || !u.May(Read) || u.May(Admin|Dialects) {
		t.Errorf("a valid token: %v, %v", u, err)
	}
	if _, err := a.Authenticate(t.Context(), client, "chosen", "a password"); err != nil {
		t.Errorf("a password: %v", err)
	}
}
