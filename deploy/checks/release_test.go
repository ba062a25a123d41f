package checks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// runPatience bounds each run of the release, and each wait for it.
const runPatience = 30 * time.Second

// inRoot returns the path of a file of the repository.
func inRoot(name ...string) string {
	return filepath.Join(append([]string{"..", ".."}, name...)...)
}

// release builds the program as it is shipped, without cgo, so that it runs in a root without
// libraries. It leaves out -trimpath, as the program of the package integration does, whose
// compiled packages it then shares.
var release = sync.OnceValues(func() (path string, err error) {
	if path, err = filepath.Abs(inRoot(".cache", "checks", "limitgate-static")); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-C", inRoot(), "-ldflags=-w", "-o", path, "./cmd/limitgate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build limitgate: %w\n%s", err, out)
	}
	return path, nil
})

// releasePath returns the path of the program.
func releasePath(t *testing.T) string {
	t.Helper()
	path, err := release()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runRelease runs the program with an environment, and returns its output. The error has the
// standard error.
func runRelease(t *testing.T, environ []string, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runPatience)
	defer cancel()
	command := exec.CommandContext(ctx, releasePath(t), args...)
	command.Env = append([]string{}, environ...)
	out, err := command.Output()
	if exit, failed := err.(*exec.ExitError); failed { //nolint:errorlint // Output returns it as it is
		err = fmt.Errorf("limitgate %v: %w: %s", args, err, exit.Stderr)
	}
	return string(out), err
}

// listening matches the log line of a program that listens.
var listening = regexp.MustCompile(`listening.* addr=(\S+) admin=(\S+)`)

// readText returns the content of a file of the repository.
func readText(t *testing.T, name ...string) string {
	t.Helper()
	content, err := os.ReadFile(inRoot(name...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// goList returns the lines of go list in the root of the repository.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-C", inRoot()}, args...)...)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}

// goVersion returns the version of Go that a pattern finds in a text.
func goVersion(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s is nowhere", pattern)
	}
	return found[1]
}
