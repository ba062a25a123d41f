package bypass

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/internal/failures"
	"github.com/limitgate/limitgate/internal/jwks"
	"github.com/limitgate/limitgate/internal/jwks/jwkstest"
)

// keys returns the keys of signers, and the path of their JWKS.
func keys(t testing.TB, signers ...jwkstest.Signer) (*jwks.Keys, string) {
	t.Helper()
	var public []map[string]any
	for _, s := range signers {
		public = append(public, s.JWK(t))
	}
	path := jwkstest.Write(t, jwkstest.Set(t, public...))
	k, err := jwks.Open(t.Context(), jwks.Options{JWKS: path, ReadFile: func(path string, _ int) ([]byte, error) { return os.ReadFile(path) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return k, path
}

// sign returns a token of 5 units an hour; change changes its claims.
func sign(t testing.TB, by jwkstest.Signer, change func(*Claims)) string {
	t.Helper()
	c := &Claims{Name: "a load test", Rate: "5/h"}
	c.ID, c.ExpiresAt = "load-1", jwt.NewNumericDate(time.Now().Add(time.Hour))
	if change != nil {
		change(c)
	}
	text, err := Sign(by.Private.(ed25519.PrivateKey), by.ID, c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func newSigner(t testing.TB, id string) jwkstest.Signer {
	return jwkstest.NewSigner(t, id, jwt.SigningMethodEdDSA)
}

// outcome returns the outcome of a use.
func outcome(t testing.TB, tokens *Tokens, u Use) Outcome {
	t.Helper()
	before := map[Outcome]int64{}
	for _, o := range Outcomes() {
		before[o] = tokens.Count(o)
	}
	admitted := tokens.Admit(u)
	for _, o := range Outcomes() {
		if tokens.Count(o) == before[o] {
			continue
		}
		if tokens.Count(o) != before[o]+1 || admitted != (o == Used) {
			t.Errorf("%s is counted %d times, admitted: %t", o, tokens.Count(o)-before[o], admitted)
		}
		return o
	}
	t.Fatal("a use is not counted")
	return 0
}

func TestOutcomes(t *testing.T) {
	by, stranger := newSigner(t, "a"), newSigner(t, "a")
	k, _ := keys(t, by)
	tokens := New(k, Options{Log: slog.New(slog.DiscardHandler)})
	tokens.SetRevoked(map[string]struct{}{"gone": {}})
	at := func(d time.Duration) *jwt.NumericDate { return jwt.NewNumericDate(time.Now().Add(d)) }
	raw := func(claims jwt.MapClaims) string {
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
		token.Header["kid"] = "a"
		text, err := token.SignedString(by.Private)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	with := func(name string, value any) string {
		claims := jwt.MapClaims{"jti": "x", "name": "n", "rate": "5/s", "aud": Audience, "exp": time.Now().Add(time.Hour).Unix()}
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
		return raw(claims)
	}
	good := sign(t, by, nil)
	for i, c := range []struct {
		name, token string
		want        Outcome
	}{
		{"a token", good, Used},
		{"a clock behind", sign(t, by, func(c *Claims) { c.ID, c.NotBefore = "behind", at(leeway/2) }), Used},
		{"it ended a moment ago", sign(t, by, func(c *Claims) { c.ID, c.ExpiresAt = "ahead", at(-leeway/2) }), Used},
		{"it has ended", sign(t, by, func(c *Claims) { c.ExpiresAt = at(-leeway - time.Second) }), Expired},
		{"it has not begun", sign(t, by, func(c *Claims) { c.NotBefore = at(leeway + time.Minute) }), TooEarly},
		{"it has no real end", sign(t, by, func(c *Claims) { c.ExpiresAt = at(MaxLife + time.Hour) }), Invalid},
		{"it is revoked", sign(t, by, func(c *Claims) { c.ID = "gone" }), Revoked},
		{"its tenant", sign(t, by, func(c *Claims) { c.ID, c.Tenant = "own", "acme" }), Used},
		{"another tenant", sign(t, by, func(c *Claims) { c.Tenant = "acm" }), OtherTenant},
		{"more than its burst", sign(t, by, func(c *Claims) { c.ID, c.Burst = "small", 1 }), OverRate},
		{"another signer", sign(t, stranger, nil), Invalid},
		{"another key", sign(t, jwkstest.Signer{ID: "b", Private: by.Private}, nil), Invalid},
		{"a changed token", strings.Replace(good, ".", ".e", 1), Invalid},
		{"half a token", good[:len(good)/2], Invalid},
		{"a long token", good + strings.Repeat("x", maxToken), Invalid},
		{"no purpose", with("aud", nil), Invalid},
		{"another purpose", with("aud", "limitgate"), Invalid},
		{"no id", with("jti", nil), Invalid},
		{"an id of two lines", with("jti", "a\nb"), Invalid},
		{"no name", with("name", nil), Invalid},
		{"no rate", with("rate", nil), Invalid},
		{"a calendar's rate", with("rate", "5/day"), Invalid},
		{"a huge rate", with("rate", "1099511627777/s"), Invalid},
		{"no burst", with("burst", -1), Invalid},
		{"no end", with("exp", nil), Invalid},
		{"an end that no clock has", with("exp", 1e300), Invalid},
		{"a begin that no clock has", with("nbf", 1e30), Invalid},
		{"an end as text", with("exp", "2030-01-01"), Invalid},
		{"a rate as number", with("rate", 1000), Invalid},
		{"a burst as text", with("burst", "5"), Invalid},
		{"a purpose of another case", raw(jwt.MapClaims{"jti": "x", "name": "n", "rate": "5/s", "aud": "login", "AUD": Audience, "exp": time.Now().Add(time.Hour).Unix()}), Invalid},
		{"a tenant of another case", raw(jwt.MapClaims{"jti": "x", "name": "n", "rate": "5/s", "aud": Audience, "tenant": "other", "Tenant": "", "exp": time.Now().Add(time.Hour).Unix()}), OtherTenant},
		{"another spelling", good[:len(good)-5] + "\n" + good[len(good)-5:], Invalid},
		{"no tenant's name", with("tenant", "-"), Invalid},
		{"a tenant that is none", with("tenant", "a\x00"), Invalid},
	} {
		u := Use{Token: c.token, User: fmt.Sprint("u", i), Addr: "192.0.2.1:9", Tenant: "acme", Op: "GET", Cost: 2}
		for range 2 { // as it is known, too
			if got := outcome(t, tokens, u); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		}
	}
}

// TestRate checks that a token admits its rate and no more, whatever tenants use it, and a
// share of it as one of several proxies.
func TestRate(t *testing.T) {
	by := newSigner(t, "a")
	k, _ := keys(t, by)
	synctest.Test(t, func(t *testing.T) {
		proxies := 1
		tokens := New(k, Options{Log: slog.New(slog.DiscardHandler), Instances: func() int { return proxies }})
		token := sign(t, by, func(c *Claims) { c.Rate, c.ExpiresAt = "10/s", jwt.NewNumericDate(time.Now().Add(100*time.Hour)) })
		spend := func(n int) (used int) {
			for i := range n {
				if tokens.Admit(Use{Token: token, Tenant: fmt.Sprint("t", i%3), Cost: 1}) {
					used++
				}
			}
			return used
		}
		if got := spend(50); got != 10 {
			t.Errorf("%d uses of a burst of 10", got)
		}
		time.Sleep(time.Second)
		if got := spend(50); got != 10 {
			t.Errorf("%d uses a second later", got)
		}
		// A new token with the id is not a new burst.
		again := sign(t, by, func(c *Claims) {
			c.Rate, c.Name, c.ExpiresAt = "10/s", "again", jwt.NewNumericDate(time.Now().Add(100*time.Hour))
		})
		if tokens.Admit(Use{Token: again, Tenant: "t", Cost: 1}) {
			t.Error("another token of the id has units of its own")
		}
		proxies = 5
		time.Sleep(time.Minute)
		if got := spend(50); got != 2 {
			t.Errorf("%d uses as one of five proxies", got)
		}
	})
}

// TestKeys checks that two keys overlap, and that tokens of a key end with it although they are
// known.
func TestKeys(t *testing.T) {
	first, second := newSigner(t, "first"), newSigner(t, "second")
	synctest.Test(t, func(t *testing.T) {
		k, path := keys(t, first, second)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Run(ctx) }()
		tokens := New(k, Options{Log: slog.New(slog.DiscardHandler)})
		u := func(by jwkstest.Signer) Use {
			return Use{Token: sign(t, by, func(c *Claims) { c.ID = by.ID }), Tenant: "t", Cost: 1}
		}
		for _, by := range []jwkstest.Signer{first, second} {
			if got := outcome(t, tokens, u(by)); got != Used {
				t.Errorf("key %s: %s", by.ID, got)
			}
		}
		if err := os.WriteFile(path, jwkstest.Set(t, second.JWK(t)), 0o600); err != nil {
			t.Fatal(err)
		}
		before := u(first)
		time.Sleep(6 * time.Minute)
		if got := outcome(t, tokens, before); got != Invalid {
			t.Errorf("after its key: %s", got)
		}
		if got := outcome(t, tokens, u(second)); got != Used {
			t.Errorf("the key that stays: %s", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestWrongTokens checks that wrong tokens cost few checks of signatures, and that they harm
// neither known tokens nor those of other users and hosts.
func TestWrongTokens(t *testing.T) {
	by := newSigner(t, "a")
	k, _ := keys(t, by)
	tokens := New(k, Options{Log: slog.New(slog.DiscardHandler)})
	known := Use{Token: sign(t, by, nil), User: "u", Addr: "192.0.2.1:1", Tenant: "t", Cost: 1}
	if got := outcome(t, tokens, known); got != Used {
		t.Fatal(got)
	}
	wrong := known
	for i := range 10_000 {
		wrong.Token, wrong.Addr = fmt.Sprint("wrong", i), fmt.Sprintf("192.0.2.1:%d", i)
		_ = tokens.Admit(wrong)
	}
	if n := tokens.Count(Invalid); n < failures.Most || n > failures.Most+5 {
		t.Errorf("%d signatures were checked", n)
	}
	if got := outcome(t, tokens, known); got != Used {
		t.Errorf("a known token: %s", got)
	}
	next := known
	next.Token = sign(t, by, func(c *Claims) { c.ID = "next" })
	if got := outcome(t, tokens, next); got != Unchecked {
		t.Errorf("a new token of the user at the host: %s", got)
	}
	for _, other := range []Use{{User: "v", Addr: next.Addr}, {User: "u", Addr: "192.0.2.2:1"}} {
		other.Token, other.Tenant, other.Cost = next.Token, "t", 1
		if got := outcome(t, tokens, other); got != Used {
			t.Errorf("of %s at %s: %s", other.User, other.Addr, got)
		}
	}
}

// TestKnownTokensOutliveKeys checks that wrong tokens do not keep a known token from being checked
// again when a key is added.
func TestKnownTokensOutliveKeys(t *testing.T) {
	by, next := newSigner(t, "a"), newSigner(t, "b")
	synctest.Test(t, func(t *testing.T) {
		k, path := keys(t, by)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Run(ctx) }()
		tokens := New(k, Options{Log: slog.New(slog.DiscardHandler)})
		known := Use{Token: sign(t, by, nil), User: "u", Addr: "192.0.2.1:1", Tenant: "t", Cost: 1}
		if got := outcome(t, tokens, known); got != Used {
			t.Fatal(got)
		}
		if err := os.WriteFile(path, jwkstest.Set(t, next.JWK(t), by.JWK(t)), 0o600); err != nil {
			t.Fatal(err)
		}
		before := k.Generation()
		time.Sleep(6 * time.Minute)
		if k.Generation() == before {
			t.Fatal("the keys are the former ones")
		}
		for i := range 100 {
			_ = tokens.Admit(Use{Token: fmt.Sprint("wrong", i), User: "u", Addr: "192.0.2.1:1", Tenant: "t", Cost: 1})
		}
		if tokens.Count(Unchecked) == 0 {
			t.Error("all wrong tokens were checked")
		}
		if got := outcome(t, tokens, known); got != Used {
			t.Errorf("a known token: %s", got)
		}
		before = k.Generation()
		time.Sleep(time.Hour)
		if k.Generation() != before {
			t.Error("keys that stay have another generation")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestLog checks that each use has a line, refusals a line a minute, and that a log that
// writes nothing holds up no use.
func TestLog(t *testing.T) {
	by := newSigner(t, "a")
	k, _ := keys(t, by)
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		tokens := New(k, Options{Log: slog.New(slog.NewTextHandler(&text, nil))})
		token := sign(t, by, func(c *Claims) { c.Rate, c.ExpiresAt = "2000/d", jwt.NewNumericDate(time.Now().Add(48*time.Hour)) })
		buffer := []byte("GET /secret")
		for range maxLines + 100 {
			_ = tokens.Admit(Use{Token: token, User: "u", Addr: "192.0.2.77:1", Tenant: "t", Op: string(buffer), Cost: 1})
		}
		flush := func() string {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := tokens.Run(ctx); err != nil {
				t.Error(err)
			}
			defer text.Reset()
			return text.String()
		}
		got := flush()
		if n := strings.Count(got, "\n"); n != maxLines+1 || !strings.Contains(got, "level=WARN msg=\"uses of bypass tokens were not logged: the log is slower than they are\" uses=100\n") {
			t.Errorf("%d lines: %.300s", n, got)
		}
		if want := `level=INFO msg="bypass token used" id=load-1 name="a load test" outcome=used user=u tenant=t op="GET /secret" cost=1`; !strings.Contains(got, want) {
			t.Errorf("the log has not %s: %.300s", want, got)
		}
		if strings.Contains(got, "192.0.2.77") || strings.Contains(got, token) {
			t.Error("the log has an address, or the token")
		}
		refuse := func() {
			for range 100 {
				_ = tokens.Admit(Use{Token: token, User: "u", Tenant: "t", Cost: 2001})
			}
		}
		refuse()
		time.Sleep(refusalEvery)
		refuse()
		if got := flush(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "outcome=over_rate") {
			t.Errorf("refusals: %s", got)
		}
	})
}

func TestSignRefuses(t *testing.T) {
	by := newSigner(t, "a")
	for want, change := range map[string]func(*Claims){
		"jti must be":   func(c *Claims) { c.ID = "" },
		"name must":     func(c *Claims) { c.Name = "" },
		"rate: a rate":  func(c *Claims) { c.Rate = "5" },
		"exp must be":   func(c *Claims) { c.ExpiresAt = nil },
		"the token has": func(c *Claims) { c.Issuer = strings.Repeat("i", maxToken) },
	} {
		c := &Claims{Name: "n", Rate: "5/s"}
		c.ID, c.ExpiresAt = "i", jwt.NewNumericDate(time.Now().Add(time.Hour))
		change(c)
		if _, err := Sign(by.Private.(ed25519.PrivateKey), "a", c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestParseRevoked(t *testing.T) {
	got, err := ParseRevoked([]byte("# gone\r\na-1\n\n  b.2 # why\nc:3"))
	if err != nil || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	for _, id := range []string{"a-1", "b.2", "c:3"} {
		if _, ok := got[id]; !ok {
			t.Errorf("%s is missing", id)
		}
	}
	for _, text := range []string{"a\nb c", "a\n" + strings.Repeat("x", maxID+1), "a\nä", "a\n" + strings.Repeat("x", 100_000)} {
		if ids, err := ParseRevoked([]byte(text)); err == nil {
			t.Errorf("%.20q: %v", text, ids)
		}
	}
}

func FuzzAdmit(f *testing.F) {
	by := newSigner(f, "a")
	k, _ := keys(f, by)
	good := sign(f, by, nil)
	f.Add(good)
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Fuzz(func(t *testing.T, token string) {
		tokens := New(k, Options{Log: slog.New(slog.DiscardHandler)})
		if tokens.Admit(Use{Token: token, Tenant: "t", Cost: 1}) && token != good {
			t.Errorf("%q is admitted", token)
		}
	})
}

func FuzzParseRevoked(f *testing.F) {
	f.Add([]byte("a\nb # c\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ids, err := ParseRevoked(text)
		for id := range ids {
			if !isID(id) || !bytes.Contains(text, []byte(id)) {
				t.Errorf("%q: %q, %v", text, id, err)
			}
		}
	})
}
