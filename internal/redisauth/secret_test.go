package redisauth

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/internal/run"
)

// versions are the versions of a secret, by their labels.
type versions struct {
	texts map[string]string
	reads int
	err   error
}

func (v *versions) read(_ context.Context, stage string) (string, error) {
	v.reads++
	return v.texts[stage], v.err
}

func newTestSecret(v *versions, user string) *Secret {
	return NewSecret(v.read, user, slog.New(slog.DiscardHandler))
}

func want(t *testing.T, s *Secret, user, password string) {
	t.Helper()
	if u, p, err := s.Credentials(t.Context()); u != user || p != password || err != nil {
		t.Errorf("got %q, %q, %v, want %q, %q", u, p, err, user, password)
	}
}

func TestSecretForms(t *testing.T) {
	want(t, newTestSecret(&versions{texts: map[string]string{stageCurrent: "plain text"}}, ""), "", "plain text")
	want(t, newTestSecret(&versions{texts: map[string]string{stageCurrent: `{"username": "u", "password": "p", "user_arn": "x"}`}}, ""), "u", "p")
	want(t, newTestSecret(&versions{texts: map[string]string{stageCurrent: `{"username": "u", "password": "p"}`}}, "mine"), "mine", "p")
	for _, text := range []string{"", `{"username": "hunter2"}`} {
		if _, _, err := newTestSecret(&versions{texts: map[string]string{stageCurrent: text}}, "").Credentials(t.Context()); !errors.Is(err, errNoPassword) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := newTestSecret(&versions{err: errors.New("denied")}, "").Credentials(t.Context()); err == nil || err.Error() != "denied" {
		t.Errorf("got %v", err)
	}
}

// TestRotation: the new password is read when the old one is refused, and the previous one is
// for nodes that do not know the new one yet.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &versions{texts: map[string]string{stageCurrent: "a"}}
		s := newTestSecret(v, "u")
		want(t, s, "u", "a")
		time.Sleep(time.Minute)
		v.texts = map[string]string{stageCurrent: "b", stagePrevious: "a"}
		want(t, s, "u", "a") // it is not known to be old yet
		if !s.Refused(t.Context(), "a") {
			t.Fatal("there is no other password")
		}
		want(t, s, "u", "b")
		if !s.Refused(t.Context(), "a") { // by another connection, meanwhile
			t.Error("there is no other password for the second connection")
		}
		want(t, s, "u", "b")
		if !s.Refused(t.Context(), "b") {
			t.Fatal("the previous password is not tried")
		}
		want(t, s, "u", "a")
		if !s.Refused(t.Context(), "a") { // the next node may know the present one
			t.Error("the present password is not tried again")
		}
		want(t, s, "u", "b")
	})
}

// TestSlowSecret: a read goes on when the connection that needs it has given up, and the next
// connections have the new password. Others get the present one meanwhile.
func TestSlowSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "a"
		s := NewSecret(func(ctx context.Context, _ string) (string, error) {
			if !run.Sleep(ctx, 2*time.Second) {
				return "", ctx.Err()
			}
			return text, nil
		}, "u", slog.New(slog.DiscardHandler))
		want(t, s, "u", "a")
		time.Sleep(time.Minute)
		text = "b"
		began := time.Now()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if s.Refused(ctx, "a") {
				t.Error("there is another password before it is read")
			}
			cancel()
			want(t, s, "u", "a")
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("three connections wait for %s", took)
		}
		time.Sleep(2 * time.Second)
		want(t, s, "u", "b")
		s.reads.Wait()
	})
}

// TestSecretOfBothVersions: a password that was read a moment ago is not read again when it is
// refused: the previous one is known as well.
func TestSecretOfBothVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &versions{texts: map[string]string{stageCurrent: "b", stagePrevious: "a"}}
		s := newTestSecret(v, "u")
		want(t, s, "u", "b")
		v.err = errors.New("denied")
		if !s.Refused(t.Context(), "b") {
			t.Error("the previous password is not tried")
		}
		want(t, s, "u", "a")
	})
}

// TestNodesThatDisagree: a node that knows the previous password alone keeps no connection from
// a node that knows the present one alone.
func TestNodesThatDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSecret(&versions{texts: map[string]string{stageCurrent: "b", stagePrevious: "a"}}, "u")
		logIn := func(knows string) error {
			for range 3 { // as a store does
				_, password, err := s.Credentials(t.Context())
				if err != nil || password == knows {
					return err
				}
				if !s.Refused(t.Context(), password) {
					break
				}
			}
			return errors.New("refused")
		}
		for i := range 40 {
			if err := logIn("ab"[i%2 : i%2+1]); err != nil {
				t.Fatalf("login %d: %v", i, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestHangingSecret: while a read hangs, connections get the present password at once, and Run
// ends at once.
func TestHangingSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		s := NewSecret(func(ctx context.Context, _ string) (string, error) {
			if hangs {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "a", nil
		}, "u", slog.New(slog.DiscardHandler))
		want(t, s, "u", "a")
		hangs = true
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.Run(ctx) })
		for began := time.Now(); time.Since(began) < 2*secretEvery; time.Sleep(time.Second) {
			at := time.Now()
			want(t, s, "u", "a")
			if took := time.Since(at); took > 0 {
				t.Fatalf("a connection waits for %s", took)
			}
		}
		at := time.Now()
		stop()
		wg.Wait()
		if took := time.Since(at); took > 0 {
			t.Errorf("the end takes %s", took)
		}
	})
}

// TestRefusalsAskRarely: however often passwords are refused, AWS is asked once in secretPause.
func TestRefusalsAskRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &versions{texts: map[string]string{stageCurrent: "a"}}
		s := newTestSecret(v, "")
		want(t, s, "", "a")
		for range 600 {
			_, password, _ := s.Credentials(t.Context())
			s.Refused(t.Context(), password)
			time.Sleep(100 * time.Millisecond)
		}
		if v.reads > 20 { // a minute has six pauses, and each a look at both versions
			t.Errorf("%d reads in a minute", v.reads)
		}
	})
}

// TestRefresh: the secret is read again from time to time, and a failure keeps the password.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, reads := time.Now(), 0
		s := NewSecret(func(context.Context, string) (string, error) {
			reads++
			switch at := time.Since(began); {
			case at < 20*time.Minute:
				return "a", nil
			case at < 40*time.Minute:
				return "b", nil
			default:
				return "", errors.New("denied")
			}
		}, "", slog.New(slog.DiscardHandler))
		want(t, s, "", "a")
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		want(t, s, "", "b")
		if reads < 8 {
			t.Errorf("%d reads in an hour", reads)
		}
	})
}

func TestFile(t *testing.T) {
	text := "a"
	f := &File{User: "u", Read: func() (string, error) { return text, nil }}
	if user, password, err := f.Credentials(t.Context()); user != "u" || password != "a" || err != nil {
		t.Error(user, password, err)
	}
	if f.Refused(t.Context(), "a") {
		t.Error("the file has another password")
	}
	text = "b"
	if !f.Refused(t.Context(), "a") {
		t.Error("the file has no other password")
	}
}
