package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func writeSecret(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	// The mode passed to WriteFile is subject to the umask; Chmod's is not.
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadSecret(t *testing.T) {
	sixteen, most := strings.Repeat("s", 16), strings.Repeat("s", 4096)
	for content, want := range map[string]string{
		sixteen: sixteen, sixteen + "\n": sixteen, sixteen + "\n\n": sixteen + "\n",
		most: most, most + "\n": most, "\x00\xff" + sixteen: "\x00\xff" + sixteen,
	} {
		for _, mode := range []os.FileMode{0o400, 0o600, 0o440} {
			got, err := ReadSecret(writeSecret(t, content, mode))
			if err != nil || string(got) != want {
				t.Errorf("of %d bytes with mode %o are read %d, %v", len(content), mode, len(got), err)
			}
		}
	}
}

func TestReadSecretRefuses(t *testing.T) {
	const short = "is secret"
	sixteen := strings.Repeat("s", 16)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct{ path, want string }{
		{writeSecret(t, short, 0o600), "read secret: PATH holds 9 bytes, and at least 16 are needed: openssl rand -hex 32 makes a good one"},
		{writeSecret(t, strings.Repeat("s", 15)+"\n", 0o600), "read secret: PATH holds 15 bytes, and at least 16 are needed: openssl rand -hex 32 makes a good one"},
		{writeSecret(t, strings.Repeat("s", 4097), 0o600), "read secret: PATH holds more than 4096 bytes: is it the right file?"},
		{writeSecret(t, strings.Repeat("s", 4096)+"\nx", 0o600), "read secret: PATH holds more than 4096 bytes: is it the right file?"},
		{writeSecret(t, strings.Repeat("s", 1<<20), 0o600), "read secret: PATH holds more than 4096 bytes: is it the right file?"},
		{writeSecret(t, sixteen, 0o644), "read secret: PATH is open to every user of this machine (mode 0644): chmod 600 it, or in Kubernetes mount it with defaultMode: 0400"},
		{writeSecret(t, sixteen, 0o602), "read secret: PATH is open to every user of this machine (mode 0602): chmod 600 it, or in Kubernetes mount it with defaultMode: 0400"},
		{t.TempDir(), "read secret: PATH is a directory: name a regular file, or a link to one"},
		{pipe, "read secret: PATH is a named pipe: name a regular file, or a link to one"},
		{missing, "read secret: there is no file \"PATH\""},
	} {
		_, err := ReadSecret(c.path)
		if err == nil {
			t.Errorf("accepted, want %s", c.want)
			continue
		}
		if got := strings.NewReplacer(Quote(c.path), `"PATH"`, c.path, "PATH").Replace(err.Error()); got != c.want {
			t.Errorf("refused with\n%s\nwant\n%s", got, c.want)
		}
		if strings.Contains(err.Error(), short) {
			t.Errorf("the content is shown: %v", err)
		}
	}
}
