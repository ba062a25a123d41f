package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// makeControlGroup creates a control group of version 2 with the limits of tasks and
// memory, until the test is over. It returns nil if that fails.
func makeControlGroup(tb testing.TB) *os.File {
	tb.Helper()
	own := ownControlGroup()
	if own == "" {
		return nil
	}
	// A group with processes does not delegate controllers, but its parent mostly does.
	for _, parent := range []string{own, filepath.Dir(own)} {
		group, err := makeControlGroupIn(parent)
		if err != nil {
			continue
		}
		tb.Cleanup(func() {
			_ = group.Close()
			eventually(tb, "the control group is empty", func() bool {
				err := os.Remove(group.Name())
				return err == nil || errors.Is(err, os.ErrNotExist)
			})
		})
		return group
	}
	return nil
}

// makeControlGroupIn creates the group in a parent that delegates the controllers it
// needs.
func makeControlGroupIn(parent string) (*os.File, error) {
	text, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	if err != nil {
		return nil, err
	}
	handed := strings.Fields(string(text))
	if !slices.Contains(handed, "pids") || !slices.Contains(handed, "memory") {
		return nil, errors.New("the parent does not control tasks and memory")
	}
	path, err := os.MkdirTemp(parent, "limitgate-test-")
	if err != nil {
		return nil, err
	}
	for name, limit := range map[string]int{"pids.max": taskLimit, "memory.max": memoryLimit} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(strconv.Itoa(limit)), 0); err != nil {
			return nil, errors.Join(fmt.Errorf("set limit: %w", err), os.Remove(path))
		}
	}
	// Swap would hide an excess of memory. Not every kernel has the file.
	_ = os.WriteFile(filepath.Join(path, "memory.swap.max"), []byte("0"), 0)
	group, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return group, nil
}

// ownControlGroup returns the folder of this process's control group of version 2, or "".
func ownControlGroup() string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for mount := range strings.Lines(string(mounts)) {
		fields := strings.Fields(mount)
		if len(fields) < 3 || fields[2] != "cgroup2" {
			continue
		}
		for group := range strings.Lines(string(groups)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(group), "0::"); ok {
				return filepath.Join(fields[1], path)
			}
		}
	}
	return ""
}
