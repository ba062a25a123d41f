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

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// TestFolder changes the files of a folder beside Run, and checks the limits, the counters and the log.
func TestFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, s := t.TempDir(), newService(t, Behaviour{})
		write := func(limit string) {
			t.Helper()
			text := "domain: mesh\ndescriptors: [{key: a, rate_limit: {unit: year, requests_per_unit: " + limit + "}}]\n"
			if err := os.WriteFile(filepath.Join(dir, "limits.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var log syncbuffer.Buffer
		read := 0 // bytes of it
		f := NewFolder(dir, "", rlsconfig.Options{}, s, slog.New(slog.NewTextHandler(&log, nil)))
		loads, errors := s.stats.configLoads.Load(), s.stats.configErrors.Load()
		check := func(limit, logged string) {
			t.Helper()
			time.Sleep(3 * lookEvery)
			synctest.Wait()
			if got := strings.Join(s.Limits(), " "); !strings.Contains(got, "requests_per_unit="+limit+",") {
				t.Errorf("the limits are %s, want %s", got, limit)
			}
			got := log.String()[read:]
			if read += len(got); strings.Count(got, "\n") != 1 || !strings.Contains(got, logged) {
				t.Errorf("the log is %s, want one line with %s", got, logged)
			}
		}
		write("x")
		if err := f.Load(); err == nil || f.Loaded() {
			t.Fatalf("wrong files: loaded is %t, %v", f.Loaded(), err)
		}
		write("5")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		check("5", "in use")
		write("6")
		check("6", "in use")
		write("y")
		check("6", "using the earlier one")
		write("6")
		check("6", "in use")
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		check("6", "there is no folder")
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Fatal(err)
		}
		check("6", "in use")
		if loads, errors := s.stats.configLoads.Load()-loads, s.stats.configErrors.Load()-errors; loads != 4 || errors != 2 || !f.Loaded() {
			t.Errorf("%d loads and %d errors, want 4 and 2", loads, errors)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
