package rlsconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/limitgate/limitgate/config"
)

const (
	// maxFiles and maxTotalBytes bound the files of a folder, which are held while they are
	// compiled.
	maxFiles      = 10_000
	maxTotalBytes = 64 << 20
	// maxFolders bounds the folders, which may be empty.
	maxFolders = 10_000
)

// ReadDir returns all files in a folder and in the folders below it, whatever their names end in,
// sorted by their names. It leaves out files and folders with a name that begins with a dot, such
// as those that Kubernetes keeps beside the links of a ConfigMap.
//
// A link to a file is that file. A link to a folder is followed unless the folder is read anyway or
// contains the link: Kubernetes makes such links for items with a path. In contrast
// envoyproxy/ratelimit follows no links to folders, but finds the same files in the folders that
// begin with a dot.
func ReadDir(dir string) ([]File, error) {
	root, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("there is no folder %s: it is --rls-config, or RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY", config.Quote(dir))
	}
	if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name its folder, %s", config.Quote(dir), config.Quote(filepath.Dir(dir)))
	}
	if err != nil {
		return nil, fmt.Errorf("read folder: %w", err)
	}
	d := &dirReader{seen: map[string]bool{}}
	for d.pending = []folder{{dir, root}}; len(d.pending) > 0; {
		next := d.pending[0]
		d.pending = d.pending[1:]
		if d.above(next.real) {
			continue
		}
		if err := d.walk(next); err != nil {
			return nil, fmt.Errorf("read folder: %w", err)
		}
	}
	slices.SortFunc(d.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return d.files, nil
}

// folder is a folder or a file that is not read yet.
type folder struct {
	name string // for messages
	real string // without links
}

// dirReader reads folders.
type dirReader struct {
	files   []File
	bytes   int
	seen    map[string]bool // folders, without links
	pending []folder        // the folder of ReadDir, and links to folders
}

// walk reads a folder and those below it. It adds links to folders to the pending ones: they are
// read behind all others, so that the files of a folder have the names without links.
func (d *dirReader) walk(f folder) error {
	if d.seen[f.real] {
		return nil
	}
	if d.seen[f.real] = true; len(d.seen) > maxFolders {
		return fmt.Errorf("there are more than %d folders below it", maxFolders)
	}
	entries, err := os.ReadDir(f.real)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := d.entry(folder{filepath.Join(f.name, entry.Name()), filepath.Join(f.real, entry.Name())}, entry.Type()); err != nil {
			return err
		}
	}
	return nil
}

// above reports whether a folder contains one that is read.
func (d *dirReader) above(path string) bool {
	prefix := strings.TrimSuffix(path, string(filepath.Separator)) + string(filepath.Separator)
	for seen := range d.seen {
		if strings.HasPrefix(seen, prefix) {
			return true
		}
	}
	return false
}

// entry reads an entry of a folder.
func (d *dirReader) entry(f folder, kind fs.FileMode) error {
	switch {
	case kind.IsDir():
		return d.walk(f)
	case kind&fs.ModeSymlink != 0:
		target, err := filepath.EvalSymlinks(f.real)
		if err != nil {
			return err
		}
		info, err := os.Stat(target)
		if err != nil {
			return err
		}
		if info.IsDir() {
			d.pending = append(d.pending, folder{f.name, target})
			return nil
		}
	}
	return d.file(f)
}

// file reads a file, below the folder without links: the files are those of one folder while the link to it
// is replaced.
func (d *dirReader) file(f folder) error {
	content, err := config.ReadFile(f.real, maxFileBytes)
	if err != nil {
		return err
	}
	d.files = append(d.files, File{f.name, content})
	d.bytes += len(content)
	switch {
	case len(d.files) > maxFiles:
		return fmt.Errorf("there are more than %d files in it", maxFiles)
	case d.bytes > maxTotalBytes:
		return fmt.Errorf("its files have more than %d bytes together", maxTotalBytes)
	}
	return nil
}
