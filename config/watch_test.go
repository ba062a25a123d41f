package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// testTimeout is the time limit of a test's waits. A test that passes never waits that long.
const testTimeout = 20 * time.Second

// watched is a file under a running watcher.
type watched struct {
	t       *testing.T
	path    string
	reloads chan string // content of the file at each reload
	w       *Watcher
}

// watch starts a watcher of the file at path. When it returns, Run is watching.
func watch(t *testing.T, path string) *watched {
	t.Helper()
	f := &watched{t: t, path: path, reloads: make(chan string, 100)}
	f.w = NewWatcher(path, func() {
		content, _ := os.ReadFile(path)
		f.reloads <- string(content)
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run ended with %v", err)
			}
		case <-time.After(testTimeout):
			t.Error("Run does not end")
		}
	})
	// Run answers a trigger only once it watches.
	f.w.Trigger()
	f.next()
	return f
}

// next returns the content of the file at the next reload.
func (f *watched) next() string {
	f.t.Helper()
	select {
	case content := <-f.reloads:
		return content
	case <-time.After(testTimeout):
		f.t.Fatal("no reload")
		return ""
	}
}

// await waits for the reload that sees content. A reload before it may see a file that is
// partly written.
func (f *watched) await(content string) {
	f.t.Helper()
	for seen := f.next(); seen != content; {
		seen = f.next()
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatcherSeesWriteInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, "one")
	f := watch(t, path)
	write(t, path, "two")
	f.await("two")
	write(t, path, "six") // same length as before
	f.await("six")
}

func TestWatcherSeesRenameOver(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "limits.yaml")
	write(t, path, "one")
	f := watch(t, path)
	for _, content := range []string{"two", "three"} {
		write(t, filepath.Join(folder, ".limits.yaml.swp"), content)
		must(t, os.Rename(filepath.Join(folder, ".limits.yaml.swp"), path))
		f.await(content)
	}
}

// Kubernetes creates a new folder, and swaps the link through which the file's link
// leads; no event has the name of the file.
func TestWatcherSeesConfigMapSwap(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "limits.yaml")
	publish := func(version, content string) {
		must(t, os.Mkdir(filepath.Join(folder, version), 0o700))
		write(t, filepath.Join(folder, version, "limits.yaml"), content)
		must(t, os.Symlink(version, filepath.Join(folder, "..data_tmp")))
		must(t, os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")))
	}
	publish("..2026_1", "one")
	must(t, os.Symlink(filepath.Join("..data", "limits.yaml"), path))
	f := watch(t, path)
	for _, v := range []struct{ version, content string }{{"..2026_2", "two"}, {"..2026_3", "three"}} {
		publish(v.version, v.content)
		f.await(v.content)
	}
}

func TestWatcherSeesFileComeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, "one")
	f := watch(t, path)
	must(t, os.Remove(path))
	f.await("") // reported once that it has gone
	write(t, path, "two")
	f.await("two")
}

// TestWatcherSeesOtherCause: a file that cannot be read for another cause than before is reported again.
func TestWatcherSeesOtherCause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, "one")
	f := watch(t, path)
	must(t, os.Remove(path))
	f.await("")
	must(t, os.Mkdir(path, 0o700))
	f.await("")
}

func TestWatcherSeesFolderComeBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "limits")
	must(t, os.Mkdir(folder, 0o700))
	path := filepath.Join(folder, "limits.yaml")
	write(t, path, "one")
	f := watch(t, path)

	must(t, os.RemoveAll(folder))
	must(t, os.Mkdir(folder, 0o700))
	write(t, path, "two")
	f.await("two")

	must(t, os.Rename(folder, folder+".old"))
	must(t, os.Mkdir(folder, 0o700))
	write(t, path, "three")
	f.await("three")

	// The new folder is watched, not only checked once.
	write(t, path, "four")
	f.await("four")
}

func TestWatcherReloadsOnTriggerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, "one")
	f := watch(t, path)
	for range 3 {
		f.w.Trigger()
		if got := f.next(); got != "one" {
			t.Fatalf("the trigger reloads %q", got)
		}
	}
}

// The test calls look itself instead of Run, because it cannot wait for a reload that
// does not happen.
func TestWatcherIgnoresSameContent(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "limits.yaml")
	write(t, path, "one")
	reloads := 0
	w := NewWatcher(path, func() { reloads++ })
	for i, step := range []struct {
		content string
		reloads int
	}{{"one", 0}, {"two", 1}, {"two", 1}, {"one", 2}} {
		write(t, filepath.Join(folder, "new"), step.content)
		must(t, os.Rename(filepath.Join(folder, "new"), path))
		w.look()
		if reloads != step.reloads {
			t.Errorf("%d reloads after step %d, want %d", reloads, i, step.reloads)
		}
	}
}

func TestTriggerIsCoalescedAndNeverBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, "one")
	var running, reloads atomic.Int32
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	w := NewWatcher(path, func() {
		if running.Add(1) != 1 {
			t.Error("two reloads at a time")
		}
		reloads.Add(1)
		entered <- struct{}{}
		<-leave
		running.Add(-1)
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	w.Trigger() // before Run
	go func() { ended <- w.Run(ctx) }()
	<-entered
	for range 1000 {
		w.Trigger() // would block forever if it waited for the reload
	}
	leave <- struct{}{}
	<-entered
	if len(w.trigger) != 0 {
		t.Error("a third reload is due")
	}
	cancel()
	select {
	case err := <-ended:
		t.Fatalf("Run ended during a reload: %v", err)
	default:
	}
	leave <- struct{}{}
	if err := <-ended; err != nil || reloads.Load() != 2 {
		t.Errorf("%d reloads, want 2; Run ended with %v", reloads.Load(), err)
	}
}

func TestRunNeedsAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "missing")
	w := NewWatcher(filepath.Join(folder, "limits.yaml"), func() { t.Error("reloaded") })
	if err := w.Run(t.Context()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), folder) {
		t.Errorf("Run of a file in the missing folder %s ends with %v", folder, err)
	}
}

func TestRunEndsWithoutLeftovers(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, "one")
	ctx, cancel := context.WithCancel(t.Context())
	w := NewWatcher(path, cancel)
	w.Trigger()
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
}

// A file beside it that is written all the time, such as a log, must not delay the reload
// forever.
func TestWatcherInABusyFolder(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "limits.yaml")
	write(t, path, "one")
	f := watch(t, path)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(settleTime / 5)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_ = os.WriteFile(filepath.Join(folder, "log"), []byte("x"), 0o600)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	write(t, path, "two")
	f.await("two")
}

func TestWatcherSeesChangeBeforeRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, "one")
	reloaded := make(chan struct{}, 10)
	w := NewWatcher(path, func() { reloaded <- struct{}{} })
	write(t, path, "two")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	select {
	case <-reloaded:
	case <-time.After(testTimeout):
		t.Error("a change between NewWatcher and Run is lost")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPoll: where the system can watch no more folders, a change is found all the same, and a
// trigger works.
func TestPoll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	synctest.Test(t, func(t *testing.T) {
		reloads := make(chan string, 10)
		w := NewWatcher(path, func() {
			content, _ := os.ReadFile(path)
			reloads <- string(content)
		})
		w.open = func() (*fsnotify.Watcher, error) { return nil, unix.EMFILE }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(10*pollPause + pollPause/2) // the file is not read while it is written
		write("two")
		time.Sleep(2 * pollPause)
		w.Trigger()
		time.Sleep(2 * pollPause)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(reloads)
		var got []string
		for content := range reloads {
			got = append(got, content)
		}
		if !slices.Equal(got, []string{"two", "two"}) {
			t.Errorf("reloaded %q, want once for the change and once for the trigger", got)
		}
	})
}
