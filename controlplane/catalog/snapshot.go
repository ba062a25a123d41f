package catalog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/limitgate/limitgate/controlplane/table"
)

// A snapshot is a text file that people can read: a line with its format and the name
// of the table, one item as JSON on each line, and at the end the SHA-256 of all lines
// before. It holds no secrets.
const (
	snapshotHead = table.SnapshotBegin + "2 of "
	snapshotEnd  = "sha256 "
)

var (
	// ErrNoSnapshot is returned for a snapshot that does not exist.
	ErrNoSnapshot = errors.New("there is none yet: the first reading of the table writes it")
	// ErrDamaged is returned for a snapshot that was not written completely.
	ErrDamaged = errors.New("the snapshot is damaged: delete the file, which is written again from the table; until then a start needs the table")
	// ErrNotSnapshot is returned for a file that holds something else than a snapshot.
	ErrNotSnapshot = errors.New("is no snapshot, and would be replaced by one: name a new file")
	// ErrOtherTable is returned for a snapshot of another table.
	ErrOtherTable = errors.New("the snapshot is of another table")
)

// CheckSnapshotPath returns an error for the path of a snapshot that WriteSnapshot can never write: a folder,
// or a file in a folder that is not there. It returns one for a file that is no snapshot, which a snapshot
// would replace.
func CheckSnapshotPath(path string) error {
	problem := &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("write limits snapshot: %w", problem)
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		problem.Err = fs.ErrNotExist
		return fmt.Errorf("write limits snapshot: %w", problem)
	}
	if !mayReplace(path) {
		return fmt.Errorf("write limits snapshot: %q %w", path, ErrNotSnapshot)
	}
	return nil
}

// mayReplace reports whether a snapshot may replace the file at path: there is none, it is a snapshot of some
// release, or the rest of one that a crash has left behind.
func mayReplace(path string) bool {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return false // to open a pipe would wait for its other end
	}
	f, err := os.Open(path)
	if err != nil {
		return true // reading and writing it report why
	}
	defer func() { _ = f.Close() }()
	begin := make([]byte, len(table.SnapshotBegin))
	n, _ := io.ReadFull(f, begin)
	begin = bytes.TrimRight(begin[:n], "\x00")
	return bytes.HasPrefix([]byte(table.SnapshotBegin), begin)
}

// WriteSnapshot writes the items of the named table to a file, atomically.
func WriteSnapshot(path, name string, items []table.Item) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%q\n", snapshotHead, name)
	for i := range items {
		line, err := json.Marshal(&items[i])
		if err != nil {
			return fmt.Errorf("write snapshot: %w", err)
		}
		b.Write(append(line, '\n'))
	}
	fmt.Fprintln(&b, checksum(b.Bytes()))
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // after the rename it is gone
	_, err = file.Write(b.Bytes())
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// ReadSnapshot reads a file of WriteSnapshot, which must be of the named table. It
// returns no items of a damaged file.
func ReadSnapshot(path, name string) (items []table.Item, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read snapshot %s: %w", path, ErrNoSnapshot)
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	body, last, ok := cutLastLine(content)
	if !ok || last != checksum(body) {
		return nil, fmt.Errorf("read snapshot %s: %w", path, ErrDamaged)
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, len(body)+1)
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			of, ok := strings.CutPrefix(lines.Text(), snapshotHead)
			if !ok {
				return nil, fmt.Errorf("read snapshot %s: this release reads %q", path, snapshotHead)
			}
			if of != strconv.Quote(name) {
				return nil, fmt.Errorf("read snapshot %s: %w: %s, and this proxy has %q", path, ErrOtherTable, of, name)
			}
			continue
		}
		var it table.Item
		if err := json.Unmarshal(lines.Bytes(), &it); err != nil {
			return nil, fmt.Errorf("read snapshot %s: %w", path, err)
		}
		items = append(items, it)
	}
	return items, nil
}

// checksum returns the last line of a snapshot.
func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return snapshotEnd + hex.EncodeToString(sum[:])
}

// cutLastLine cuts off the last line, which must be complete.
func cutLastLine(content []byte) (rest []byte, last string, ok bool) {
	trimmed, whole := bytes.CutSuffix(content, []byte("\n"))
	i := bytes.LastIndexByte(trimmed, '\n')
	if !whole || i < 0 {
		return nil, "", false
	}
	return content[:i+1], strings.TrimSuffix(string(content[i+1:]), "\n"), true
}
