package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/limitgate/limitgate/controlplane/table"
)

func written(tb testing.TB, items ...table.Item) (path string, content []byte) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "snapshot")
	if err := WriteSnapshot(path, "table", items); err != nil {
		tb.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return path, content
}

// TestSnapshot: a written snapshot is read back, tombstones and unusual bodies
// included.
func TestSnapshot(t *testing.T) {
	want := []table.Item{
		shared, free, acme, item("TENANT#gone", 7, ""), item("TENANT#ü \u2028 <&>\n", 1, `{"plan": "free"}`),
		item("TENANT#long", 1, `["`+strings.Repeat("x", 200_000)+`"]`), item("TENANT#lines", 1, "{\n\"plan\":\r\n\"free\"}"),
	}
	for n := range len(want) + 1 {
		path, _ := written(t, want[:n]...)
		got, err := ReadSnapshot(path, "table")
		if err != nil || len(got) != n {
			t.Fatalf("%d items of %d: %v", len(got), n, err)
		}
		for i := range got {
			a, errA := json.Marshal(&want[i]) // the same JSON, but for spaces
			b, errB := json.Marshal(&got[i])
			if errA != nil || errB != nil || string(a) != string(b) {
				t.Errorf("got %.200s, want %.200s", b, a)
			}
		}
	}
}

// TestSnapshotIsText: people can read it.
func TestSnapshotIsText(t *testing.T) {
	_, content := written(t, shared, item("TENANT#acme", 2, ""))
	lines := strings.Split(string(content), "\n")
	want := []string{
		`limitgate limits, snapshot 2 of "table"`,
		`{"key":"SHARED","body":{"version":1,"default_plan":"free"},"version":1,"actor":"test","at":"2026-01-01T00:00:01Z"}`,
		`{"key":"TENANT#acme","version":2,"actor":"test","at":"2026-01-01T00:00:02Z","deleted":true}`,
	}
	if len(lines) != len(want)+2 || strings.Join(lines[:3], "\n") != strings.Join(want, "\n") || !strings.HasPrefix(lines[3], "sha256 ") || lines[4] != "" {
		t.Errorf("%s", content)
	}
}

// TestSnapshotDamaged: a file that is truncated, has more after its end or has another
// byte anywhere is rejected as damaged.
func TestSnapshotDamaged(t *testing.T) {
	path, content := written(t, shared, free, acme)
	refused := func(damaged []byte, what string) {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if items, err := ReadSnapshot(path, "table"); !errors.Is(err, ErrDamaged) || items != nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "delete the file, which is written again from the table") {
			t.Errorf("%s: %d items, %v", what, len(items), err)
		}
	}
	for n := range content {
		refused(content[:n], fmt.Sprintf("the first %d bytes", n))
		refused(content[n+1:], fmt.Sprintf("without the first %d bytes", n+1))
		for bit := range 8 {
			flipped := append([]byte(nil), content...)
			flipped[n] ^= 1 << bit
			refused(flipped, fmt.Sprintf("byte %d is %q", n, flipped[n]))
		}
	}
	for _, more := range []string{"\n", " ", "x", string(content)} {
		refused(append(append([]byte(nil), content...), more...), fmt.Sprintf("%.20q behind", more))
	}
}

// TestSnapshotOfAnotherRelease: an undamaged file that this release cannot read.
func TestSnapshotOfAnotherRelease(t *testing.T) {
	path, content := written(t, shared)
	for name, body := range map[string]string{
		"another head": strings.Replace(string(content), "snapshot 2", "snapshot 3", 1),
		"no item":      strings.Replace(string(content), `{"key"`, `["key"`, 1),
	} {
		body = body[:strings.LastIndex(body, snapshotEnd)]
		if err := os.WriteFile(path, []byte(body+checksum([]byte(body))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if items, err := ReadSnapshot(path, "table"); err == nil || errors.Is(err, ErrDamaged) || items != nil {
			t.Errorf("%s: %d items, %v", name, len(items), err)
		}
	}
	if items, err := ReadSnapshot(path, "another"); err == nil || items != nil {
		t.Errorf("of another table: %d items, %v", len(items), err)
	}
	if _, err := ReadSnapshot(path+"-not", "table"); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestSnapshotNotWritten: a write that fails leaves the old file, and no other.
func TestSnapshotNotWritten(t *testing.T) {
	path, content := written(t, shared, free)
	if err := WriteSnapshot(path, "table", []table.Item{shared, {Key: "TENANT#a", Body: json.RawMessage("no JSON")}}); err == nil {
		t.Error("an item without JSON was written")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(content) {
		t.Errorf("%s: %v", got, err)
	}
	folder := filepath.Join(filepath.Dir(path), "folder")
	if err := os.MkdirAll(filepath.Join(folder, "in use"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{folder, filepath.Join(folder, "not", "there")} {
		if err := WriteSnapshot(to, "table", []table.Item{shared}); err == nil {
			t.Errorf("written to %s", to)
		}
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(names) != 2 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// TestSnapshotOfAnotherTable: the limits of another table are rejected, with both
// names.
func TestSnapshotOfAnotherTable(t *testing.T) {
	path, _ := written(t, shared, free)
	if items, err := ReadSnapshot(path, "dynamodb://staging"); !errors.Is(err, ErrOtherTable) || items != nil ||
		!strings.Contains(err.Error(), `"table"`) || !strings.Contains(err.Error(), `"dynamodb://staging"`) {
		t.Errorf("%d items, %v", len(items), err)
	}
}

// TestCheckSnapshotPath: a snapshot replaces no file of another kind, and the rest of one that a crash left.
func TestCheckSnapshotPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for content, ok := range map[string]bool{
		"": true, "limitgate limits, snapshot 2 of \"t\"\n": true, "limitgate limits, snapshot 1 of": true, "limitgate li": true,
		"\x00\x00\x00\x00": true, "version: 1\nplans: {}\nshared: []\n": false, "notes": false, "\x00\x00notes and more of them, to a line": false,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CheckSnapshotPath(path); (err == nil) != ok || !ok && !errors.Is(err, ErrNotSnapshot) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if err := CheckSnapshotPath(path + "-new"); err != nil {
		t.Error(err)
	}
	if err := syscall.Mkfifo(path+"-pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckSnapshotPath(path + "-pipe"); !errors.Is(err, ErrNotSnapshot) {
		t.Errorf("a pipe that nobody reads: %v", err)
	}
}
