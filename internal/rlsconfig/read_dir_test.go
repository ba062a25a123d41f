package rlsconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// writeTree writes files with a line of their own content. A name with an arrow is a link.
func writeTree(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		name, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil && isLink {
			err = os.Symlink(target, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte("content of "+name), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadDir(t *testing.T) {
	for _, row := range []struct {
		name, dir string
		files     []string
		want      string // names and contents, in which the name is that without links
	}{
		{"files in folders", "", []string{"b.yaml", "a/c", "a/b/d.yml", "README", "empty/.keep"}, "README, a/b/d.yml, a/c, b.yaml"},
		{"names that begin with a dot", "", []string{".b.yaml", ".git/a", "a.yaml", "c/.d/e"}, "a.yaml"},
		{"ConfigMap of Kubernetes", "config", []string{
			"config/..2026_01/a.yaml", "config/..2026_01/sub/b.yaml", "config/..data -> ..2026_01",
			"config/a.yaml -> ..data/a.yaml", "config/sub -> ..data/sub",
		}, "a.yaml = config/..2026_01/a.yaml, sub/b.yaml = config/..2026_01/sub/b.yaml"},
		{"folder that is a link", "current", []string{"releases/2/a.yaml", "current -> releases/2"}, "a.yaml = releases/2/a.yaml"},
		{"links to folders that are read anyway", "", []string{"a/b/c.yaml", "d -> a", "e -> a/b", "z/link -> ../a"}, "a/b/c.yaml"},
		{"links in a circle", "in", []string{"in/a.yaml", "in/up -> ..", "in/self -> .", "other.yaml"}, "a.yaml = in/a.yaml"},
		{"link outside", "in", []string{"in/a -> ../out", "out/b.yaml", "out/back -> ../in"}, "a/b.yaml = out/b.yaml"},
		{"empty folder", "in", []string{"in/.keep"}, ""},
	} {
		dir := filepath.Join(writeTree(t, row.files...), row.dir)
		files, err := ReadDir(dir)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		var got []string
		for _, f := range files {
			name, _ := filepath.Rel(dir, f.Name)
			content := strings.TrimPrefix(string(f.Content), "content of ")
			if content != name {
				name += " = " + content
			}
			got = append(got, name)
		}
		if strings.Join(got, ", ") != row.want {
			t.Errorf("%s: the files are %q, want %s", row.name, got, row.want)
		}
	}
}

// writeZeros writes a file of that size, which takes no space.
func writeZeros(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// TestReadDirFails has folders that are refused, with their errors.
func TestReadDirFails(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(dir string) error
		want    string
	}{
		{"no folder", os.Remove, `there is no folder "DIR": it is --rls-config, or RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY`},
		{"a file", func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) }, `"DIR" is a file: name its folder, "PARENT"`},
		{"broken link", func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "a")) }, "read folder: lstat DIR/nowhere: no such file or directory"},
		{"named pipe", func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "a"), 0o600) }, "read folder: DIR/a is a named pipe: name a regular file, or a link to one"},
		{"large file", func(dir string) error {
			return writeZeros(filepath.Join(dir, "a"), maxFileBytes+1)
		}, "read folder: DIR/a has 10485761 bytes, and the largest such file 10485760"},
		{"many bytes", func(dir string) error {
			for i := range 7 {
				if err := writeZeros(filepath.Join(dir, fmt.Sprint(i)), maxFileBytes); err != nil {
					return err
				}
			}
			return nil
		}, "read folder: its files have more than 67108864 bytes together"},
		{"many files", func(dir string) error {
			for i := range maxFiles + 1 {
				target := "0" // one file, and links to it
				if i == 0 {
					if err := os.WriteFile(filepath.Join(dir, target), nil, 0o600); err != nil {
						return err
					}
				} else if err := os.Symlink(target, filepath.Join(dir, fmt.Sprint(i))); err != nil {
					return err
				}
			}
			return nil
		}, "read folder: there are more than 10000 files in it"},
		{"device", func(dir string) error { return os.Symlink("/dev/null", filepath.Join(dir, "a")) }, "read folder: DIR/a is a device: name a regular file, or a link to one"},
	} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err == nil {
			err = row.prepare(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ReadDir(dir); err == nil || strings.NewReplacer(dir, "DIR", filepath.Dir(dir), "PARENT").Replace(err.Error()) != row.want {
			t.Errorf("%s: the error is\n%v, want\n%s", row.name, err, row.want)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDir(filepath.Join(file, "config")); err == nil || !strings.HasPrefix(err.Error(), "there is no folder ") {
		t.Errorf("below a file: %v", err)
	}
}
