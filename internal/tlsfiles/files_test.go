package tlsfiles

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestFilesAreTriedAgain: files that could not be read for a time are used as soon as they can,
// also if they have the size and the time of the ones before.
func TestFilesAreTriedAgain(t *testing.T) {
	a := redistest.NewAuthority(t)
	cert, key := a.Issue("localhost", time.Now().Add(24*365*40*time.Hour))
	other, otherKey := a.Issue("localhosx", time.Now().Add(24*365*40*time.Hour))
	synctest.Test(t, func(t *testing.T) {
		var failures []string
		s, err := NewServer(ServerOptions{Cert: cert, Key: key, Failed: func(err error) { failures = append(failures, err.Error()) }})
		if err != nil {
			t.Fatal(err)
		}
		name := func() string {
			time.Sleep(2 * checkEvery)
			config, err := s.files.current()
			if err != nil {
				t.Fatal(err)
			}
			return config.Certificates[0].Leaf.DNSNames[0]
		}
		if err := os.Rename(key, key+".away"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := name(); got != "localhost" {
				t.Errorf("without a key the certificate of %s is used", got)
			}
		}
		if len(failures) != 1 || !strings.Contains(failures[0], "no such file") {
			t.Errorf("failures %q", failures)
		}
		if err := os.Rename(key+".away", key); err != nil {
			t.Fatal(err)
		}
		if got := name(); got != "localhost" {
			t.Errorf("the certificate of %s is used", got)
		}
		before, err := os.Stat(cert)
		if err != nil {
			t.Fatal(err)
		}
		for from, to := range map[string]string{other: cert, otherKey: key} {
			content, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(to, before.ModTime(), before.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		if got := name(); got != "localhosx" {
			t.Errorf("the certificate of %s is used", got)
		}
	})
}
