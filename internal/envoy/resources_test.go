package envoy

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rlsxds "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// TestResources changes the extensions beside the resources of an xDS server, and the resources beside the
// extensions.
func TestResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "x.yaml")
		write := func(rules string) {
			t.Helper()
			if err := os.WriteFile(file, []byte("version: 1\ndomains: {mesh: {rules: {"+rules+"}}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * lookEvery)
			synctest.Wait()
		}
		resource := func(key string) [][]byte {
			t.Helper()
			content, err := proto.Marshal(&rlsxds.RateLimitConfig{Name: "r", Domain: "mesh", Descriptors: []*rlsxds.RateLimitDescriptor{
				{Key: key, RateLimit: &rlsxds.RateLimitPolicy{Unit: rlsxds.RateLimitUnit_DAY, RequestsPerUnit: 3}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			return [][]byte{content}
		}
		write("a: {algorithm: token_bucket, burst: 9}")
		s := newService(t, Behaviour{})
		var log syncbuffer.Buffer
		r, err := NewResources(file, rlsconfig.Options{}, s, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		check := func(when, want string) {
			t.Helper()
			if got := ask(t, s, "a=1 hits=0", 0); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		if err := r.Apply(resource("a")); err != nil {
			t.Fatal(err)
		}
		check("with extensions", "OK, OK 9/3")
		write("a: {algorithm: token_bucket, burst: 7}")
		check("with others", "OK, OK 7/3")
		write("a: {burst: 7}")
		check("with a mistake", "OK, OK 7/3")
		if got := log.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "only a token_bucket has one") {
			t.Errorf("the log is %s", got)
		}
		if err := r.Apply(resource("b")); err != nil { // the last good extensions count
			t.Errorf("resources beside a mistake: %v", err)
		}
		check("without the rule", "OK, OK")
		write("")
		if err := r.Apply(resource("a")); err != nil {
			t.Fatal(err)
		}
		check("without extensions", "OK, OK 3/3")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
