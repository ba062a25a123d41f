package checks

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// build makes an image of the layout of the OCI in a folder, as the last stage of the Dockerfile
// does on an empty base: that of the Dockerfile is in a registry.
func (m *image) build(t *testing.T, folder string) v1.Image {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, source := range m.files {
		from := inRoot(source)
		mode := int64(0o644)
		if source == "" {
			from, mode = releasePath(t), 0o755
		}
		content, err := os.ReadFile(from)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg})
		}
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }, tarball.WithCompressionLevel(1))
	if err != nil {
		t.Fatal(err)
	}
	made, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	made, err = mutate.Config(made, v1.Config{
		User: m.user, Entrypoint: m.entrypoint, Cmd: m.command, Env: m.environ, Healthcheck: &v1.HealthConfig{Test: append([]string{"CMD"}, m.healthcheck...)},
	})
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.Write(folder, empty.Index)
	if err == nil {
		err = index.AppendImage(made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// unpack reads the image of a layout, writes its files below root, and returns its configuration.
func unpack(t *testing.T, folder, root string) v1.Config {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := packed.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(packed)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return config.Config
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, filepath.Clean("/"+h.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(to, content, fsMode(h))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// fsMode returns the rights of a file in an archive.
func fsMode(h *tar.Header) os.FileMode { return h.FileInfo().Mode().Perm() }

// enter makes the folder $1 a root that cannot be written to, in a mount namespace of its own, and
// runs the rest of its arguments there. $2 are options of chroot.
const enter = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && root=$1 options=$2 && shift 2 && exec chroot $options "$root" "$@"`

// inside returns a command that runs in a root as a user and a group. Without the rights of root it
// runs as the user of the tests, in a user namespace.
func inside(ctx context.Context, root, user string, environ, words []string) *exec.Cmd {
	args, as := []string{"--mount"}, "--userspec="+user+" --groups="+user[strings.Index(user, ":")+1:]
	if os.Geteuid() != 0 {
		args, as = []string{"--mount", "--map-root-user"}, "--groups="
	}
	command := exec.CommandContext(ctx, "unshare", append(append(args, "sh", "-euc", enter, "sh", root, as), words...)...)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environ...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = runPatience
	return command
}

// TestImageRuns builds the image on an empty base, and runs it: no library, no shell, no right to
// write, and no right of root is there. It decides by the limits that are in it, and its health
// check succeeds.
func TestImageRuns(t *testing.T) {
	made := ours(t)
	folder, root := t.TempDir(), t.TempDir()
	made.build(t, folder)
	config := unpack(t, folder, root)
	if mode := fileMode(t, root, "limitgate"); mode.Perm() != 0o755 {
		t.Errorf("the program has mode %s", mode)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	environ := append([]string{"LIMITGATE_LISTEN=127.0.0.1:0", "LIMITGATE_ADMIN=127.0.0.1:0"}, config.Env...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := inside(ctx, root, config.User, environ, config.Entrypoint)
	addr, admin := startService(t, running)
	checkProcess(t, running.Process.Pid, root, config.User)

	if got := ask(t, addr, "RL.CHECK acme op 203.0.113.7 1"); !strings.HasPrefix(got, "*7 :1 :200 :199 ") || !strings.Contains(got, " tenant ") {
		t.Errorf("a check: %s", got)
	}
	for n := range 11 {
		got := ask(t, addr, `RL.CHECK acme "POST /v1/login" 203.0.113.8 1`)
		if want := fmt.Sprintf("*7 :%d :10 ", b2i(n < 10)); !strings.HasPrefix(got, want) || !strings.Contains(got, " login ") {
			t.Errorf("login %d: %s, want %s", n+1, got, want)
		}
	}
	for range 5 { // over the rate of the rule that is not enabled
		if got := ask(t, addr, `RL.CHECK acme "POST /v1/exports" 203.0.113.9 1`); !strings.HasPrefix(got, "*7 :1 :200 ") {
			t.Errorf("an export: %s", got)
		}
	}
	check := inside(t.Context(), root, config.User, []string{"LIMITGATE_ADMIN=" + admin}, config.Healthcheck.Test[1:])
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), " is ready: limits version ") {
		t.Errorf("health: %v: %s", err, out)
	}
	cancel()
	if err := running.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("end: %v", err)
	}
	check = inside(t.Context(), root, config.User, []string{"LIMITGATE_ADMIN=" + admin}, config.Healthcheck.Test[1:])
	if out, err := check.CombinedOutput(); err == nil || check.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "nothing listens") {
		t.Errorf("health of a proxy that has ended: %v: %s", err, out)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkProcess checks that a process has the root and the user of a container. Without the rights of
// root the user is that of the tests.
func checkProcess(t *testing.T, pid int, root, user string) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(user, ":")
	if os.Geteuid() != 0 {
		id = fmt.Sprint(os.Geteuid())
	}
	if want := fmt.Sprintf("Uid:\t%s\t%s\t%s\t%s\n", id, id, id, id); !strings.Contains(string(status), want) {
		t.Errorf("the process has another user than %s:\n%s", id, status)
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 5 && fields[4] == "/" && strings.HasPrefix(fields[5], "ro") && strings.HasSuffix(fields[3], filepath.Base(root)) {
			return
		}
	}
	t.Errorf("no mount is a root that cannot be written to:\n%s", mounts)
}

// startService starts a proxy, and returns its addresses. The end of the test waits for the end of the log.
func startService(t *testing.T, command *exec.Cmd) (addr, admin string) {
	t.Helper()
	log, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return found[1], found[2]
		}
		t.Log(lines.Text())
	}
	t.Fatalf("limitgate does not listen: %v", command.Wait())
	return "", ""
}

// ask sends a command in a line, and returns the words of the reply of seven fields.
func ask(t *testing.T, addr, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(runPatience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		t.Fatal(err)
	}
	var words []string
	lines := bufio.NewScanner(conn)
	for len(words) < 10 && lines.Scan() { // *7, five numbers, and a length and a text for two
		words = append(words, lines.Text())
		if strings.HasPrefix(words[0], "-") {
			break
		}
	}
	return strings.Join(words, " ")
}
