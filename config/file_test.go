package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// specialFiles returns paths that are not regular files, by their type.
func specialFiles(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	pipe, link, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return map[string]string{"a named pipe": pipe, "a link to a named pipe": link, "a socket": socket, "a directory": dir, "a device": "/dev/zero"}
}

// soon fails the test when do does not return: reading a pipe waits for a writer.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(testTimeout):
		t.Fatalf("%s does not return", what)
	}
}

// TestOnlyRegularFiles: limits and settings are read from regular files only. All others
// are rejected at once, with a message that names their type.
func TestOnlyRegularFiles(t *testing.T) {
	for what, path := range specialFiles(t) {
		t.Run(what, func(t *testing.T) {
			kind := strings.TrimPrefix(what, "a link to ")
			want := path + " is " + kind + ": name a regular file, or a link to one"
			soon(t, "reading limits", func() {
				want := want
				if what == "a directory" {
					want = Quote(path) + " is a folder: name a file; a folder of Envoy's limits is for limitgate serve --rls-config"
				}
				if _, err := ReadLimitsFile(path); err == nil || err.Error() != "read limits: "+want {
					t.Errorf("limits: %v, want %s", err, want)
				}
			})
			soon(t, "reading settings", func() {
				_, _, _, err := Load([]string{"--config", path}, nil, ReadSettingsFile)
				if err == nil || err.Error() != "flag --config: read settings file: "+want {
					t.Errorf("settings: %v, want %s", err, want)
				}
			})
			soon(t, "a watcher", func() { NewWatcher(path, func() {}) })
		})
	}
}

// TestLinkToNothing: a link whose file does not exist is named as such.
func TestLinkToNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.Symlink("..data/limits.yaml", path); err != nil {
		t.Fatal(err)
	}
	want := "read limits: " + Quote(path) + ` is a link to "..data/limits.yaml", which does not exist`
	if _, err := ReadLimitsFile(path); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestLinkToLinkToNothing: a link to a link is not said to be one to nothing.
func TestLinkToLinkToNothing(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	if err := errors.Join(os.Symlink("b.yaml", first), os.Symlink("missing.yaml", second)); err != nil {
		t.Fatal(err)
	}
	want := "read limits: " + Quote(first) + ` is a link to "b.yaml", which is a link to no file`
	if _, err := ReadLimitsFile(first); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestNginxOrYAML: a limits file with a mistake is no configuration of nginx, whatever one of its lines is like.
func TestNginxOrYAML(t *testing.T) {
	for content, is := range map[string]bool{
		"include parts.yaml;\nhttp {\n}\n": true,
		"version: 1\nplans:\n  p:\n    - {id: a, by: [tenant, rate: 10/s}\ninclude parts.yaml;\n": false,
		"- {rule_id: a, match: \"x}\n  include a;\n":                                              false,
	} {
		if IsNginx([]byte(content)) != is {
			t.Errorf("IsNginx of %q is not %v", content, is)
		}
	}
}

// TestReloadOfPipe: if a limits file becomes a named pipe, the last good limits stay. A
// link to a regular file, as in a ConfigMap, is followed.
func TestReloadOfPipe(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "..data"), filepath.Join(dir, "limits.yaml")
	write(t, target, "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 1/s}]}}")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	s, _, err := OpenLimits(path, nil, limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version := s.Status().Version
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(target, 0o600); err != nil {
		t.Fatal(err)
	}
	soon(t, "Reload", func() {
		if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "is a named pipe") {
			t.Errorf("got %v", err)
		}
	})
	if st := s.Status(); st.Version != version || !strings.Contains(st.Error, "is a named pipe") {
		t.Errorf("got %+v", st)
	}
}

// allocated returns how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHugeFiles: a file over the maximum size is rejected without reading more than
// needed, by the watcher too.
func TestHugeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge")
	write(t, path, "version: 1\n")
	const huge = 2 << 30
	if err := os.Truncate(path, huge); err != nil { // a sparse file
		t.Fatal(err)
	}
	n := allocated(func() {
		NewWatcher(path, func() {})
		_, err := ReadLimitsFile(path)
		if want := fmt.Sprintf("read limits: %s has %d bytes, and the largest limits file %d", path, huge, MaxLimitsFileBytes); err == nil || err.Error() != want {
			t.Errorf("limits: %v, want %s", err, want)
		}
		_, _, _, err = Load([]string{"--config", path}, nil, ReadSettingsFile)
		if want := fmt.Sprintf("flag --config: read settings file: %s has %d bytes, and the largest settings file %d; is it the limits file?", path, huge, maxSettingsFileBytes); err == nil || err.Error() != want {
			t.Errorf("settings: %v, want %s", err, want)
		}
	})
	if n > 1<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}
