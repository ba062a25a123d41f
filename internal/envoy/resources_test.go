package envoy

import (
	"context"
	"fmt"
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

// TestResourcesForExtensions: extensions that do not fit the resources in use come into use with the first ones
// that they fit, and a file that is away is reported each time.
func TestResourcesForExtensions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.yaml")
	write := func(rule string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("version: 1\ndomains: {mesh: {rules: {a: {"+rule+"}}}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resource := func(unit rlsxds.RateLimitUnit, count uint32) [][]byte {
		t.Helper()
		content, err := proto.Marshal(&rlsxds.RateLimitConfig{Name: "r", Domain: "mesh", Descriptors: []*rlsxds.RateLimitDescriptor{
			{Key: "a", RateLimit: &rlsxds.RateLimitPolicy{Unit: unit, RequestsPerUnit: count}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return [][]byte{content}
	}
	write("")
	s := newService(t, Behaviour{})
	r, err := NewResources(file, rlsconfig.Options{}, s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inUse := func() string {
		rule := s.config.Load().rules.Limited()[0]
		return fmt.Sprintf("%d %s%s", rule.Limit.RequestsPerUnit, rule.Limit.Unit, rule.Own.Suffix)
	}
	check := func(step string, err error, fails bool, want string) {
		t.Helper()
		if got := inUse(); (err != nil) != fails || got != want {
			t.Errorf("%s: %s, want %s: %v", step, got, want, err)
		}
	}
	check("resources", r.Apply(resource(rlsxds.RateLimitUnit_HOUR, 3)), false, "3 HOUR")
	write("calendar: true")
	check("extensions for others", r.look(), true, "3 HOUR")
	check("the file as it was", r.look(), false, "3 HOUR")
	check("resources that do not fit either", r.Apply(resource(rlsxds.RateLimitUnit_HOUR, 4)), false, "4 HOUR")
	check("resources that fit", r.Apply(resource(rlsxds.RateLimitUnit_DAY, 5)), false, "5 DAY;;f")
	check("wrong resources", r.Apply(resource(rlsxds.RateLimitUnit_UNKNOWN, 6)), true, "5 DAY;;f")
	check("resources that do not fit any more", r.Apply(resource(rlsxds.RateLimitUnit_HOUR, 7)), true, "5 DAY;;f")
	write("algorithm: token_bucket")
	check("extensions that fit", r.look(), false, "5 DAY;;t")
	write("calendar: 5")
	check("a mistake", r.look(), true, "5 DAY;;t")
	write("algorithm: token_bucket, burst: 9")
	check("none any more", r.look(), false, "5 DAY;;t")
	if n := s.stats.configErrors.Load(); n != 4 {
		t.Errorf("%d errors are counted", n)
	}
}

// TestResourcesAway: a file of extensions that cannot be read is reported each time that it goes away.
func TestResourcesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(file, []byte("version: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var log syncbuffer.Buffer
		r, err := NewResources(file, rlsconfig.Options{}, newService(t, Behaviour{}), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for range 2 {
			for _, names := range [][2]string{{file, file + "-away"}, {file + "-away", file}} {
				if err := os.Rename(names[0], names[1]); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * lookEvery)
				synctest.Wait()
			}
		}
		cancel()
		if err := <-ended; err != nil || strings.Count(log.String(), "level=ERROR") != 2 {
			t.Errorf("%v, and the log %s", err, log.String())
		}
	})
}

// TestResourcesFlood: a server whose resources change all the time does not fill the log with warnings.
func TestResourcesFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncbuffer.Buffer
		r, err := NewResources("", rlsconfig.Options{}, newService(t, Behaviour{}), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 { // of five seconds
			config := &rlsxds.RateLimitConfig{Name: "r", Domain: "mesh"}
			for n := range 100 {
				config.Descriptors = append(config.Descriptors, &rlsxds.RateLimitDescriptor{
					Key: fmt.Sprint("a*", n), RateLimit: &rlsxds.RateLimitPolicy{Unit: rlsxds.RateLimitUnit_DAY, RequestsPerUnit: uint32(i)},
				})
			}
			content, err := proto.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Apply([][]byte{content}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if lines := strings.Count(log.String(), "\n"); lines != maxWarnings {
			t.Errorf("%d lines are logged, want %d", lines, maxWarnings)
		}
	})
}
