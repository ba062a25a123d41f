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
			if problem := f.Problem(); (problem != "") != (logged != "in use") {
				t.Errorf("the problem is %q, the log has %s", problem, logged)
			}
			got := log.String()[read:]
			if read += len(got); strings.Count(got, "\n") != 1 || !strings.Contains(got, logged) {
				t.Errorf("the log is %s, want one line with %s", got, logged)
			}
		}
		if err := f.Load(); err == nil || !strings.HasSuffix(err.Error(), "has no files: write the limits of a domain into one") || f.Loaded() {
			t.Fatalf("no files: loaded is %t, %v", f.Loaded(), err)
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
		if err := os.Remove(filepath.Join(dir, "limits.yaml")); err != nil {
			t.Fatal(err)
		}
		check("6", "level=ERROR msg=\"failed to load the rate limit configuration, using the earlier one\"")
		write("6")
		check("6", "in use")
		if loads, errors := s.stats.configLoads.Load()-loads, s.stats.configErrors.Load()-errors; loads != 5 || errors != 3 || !f.Loaded() {
			t.Errorf("%d loads and %d errors, want 5 and 3", loads, errors)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestTornFolder: files of two configurations, as a reading beside a swap of links has them, do not come into
// use, and neither do files that change all the time.
func TestTornFolder(t *testing.T) {
	s := newService(t, Behaviour{})
	f := NewFolder("folder", "", rlsconfig.Options{}, s, slog.New(slog.DiscardHandler))
	var readings [][2]int // the limits of two files
	f.readDir = func(string) ([]rlsconfig.File, error) {
		next := readings[0]
		if len(readings) > 1 {
			readings = readings[1:]
		}
		var files []rlsconfig.File
		for i, n := range next {
			files = append(files, rlsconfig.File{Name: fmt.Sprint(i), Content: fmt.Appendf(nil, "domain: d%d\ndescriptors: [{key: a, rate_limit: {unit: hour, requests_per_unit: %d}}]\n", i, n)})
		}
		return files, nil
	}
	for _, c := range []struct {
		readings [][2]int
		want     string // limits of one, or an error
	}{
		{[][2]int{{1, 1}}, "1"},
		{[][2]int{{1, 2}, {2, 2}}, "2"}, // a swap in the first reading
		{[][2]int{{2, 3}, {3, 3}, {3, 4}, {4, 4}}, "4"},
		{[][2]int{{5, 6}, {6, 7}, {7, 8}, {8, 9}, {9, 10}, {4, 4}}, errChanging.Error()},
		{[][2]int{{11, 11}, {4, 4}}, "4"}, // it is what it was
	} {
		readings = c.readings
		got := c.want
		if err := f.Load(); err != nil {
			got = err.Error()
		} else {
			lines := s.Limits()
			for i, line := range lines {
				if want := fmt.Sprintf("d%d.a: unit=HOUR requests_per_unit=%s, shadow_mode: false, quota_mode: false", i, c.want); line != want {
					t.Errorf("%v: %s, want %s", c.readings, line, want)
				}
			}
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.readings, got, c.want)
		}
	}
}
