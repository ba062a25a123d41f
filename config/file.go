package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/limitgate/limitgate/limit"
)

// ReadFile reads a regular file of at most most bytes.
func ReadFile(path string, most int) ([]byte, error) {
	return readRegular(path, bounds{kind: "such", most: int64(most)})
}

// NoFile returns the text of the error for a file that does not exist.
// Near reports that it names one of nearly the same name.
func NoFile(path string) (text string, near bool) {
	if target, err := os.Readlink(path); err == nil {
		at := target
		if !filepath.IsAbs(target) {
			at = filepath.Join(filepath.Dir(path), target)
		}
		if _, err := os.Lstat(at); err == nil {
			return fmt.Sprintf("%.200q is a link to %.200q, which is a link to no file", path, target), true
		}
		return fmt.Sprintf("%.200q is a link to %.200q, which does not exist", path, target), true
	}
	text = fmt.Sprintf("there is no file %.200q", hideURL(path))
	if meant := nearFile(path); meant != "" {
		return text + fmt.Sprintf("; did you mean %.200q?", meant), true
	}
	if first, _, several := strings.Cut(path, ","); several {
		if _, err := os.Stat(first); err == nil {
			return text + ": one file belongs here, and no list of files", true
		}
	}
	return text, false
}

// mostNearFiles bounds the files of a folder whose names are compared with that of one that does not exist.
const mostNearFiles = 1000

// nearFile returns the path of a file with nearly the name of one that does not exist, in the same folder, or "".
func nearFile(path string) string {
	folder, name := filepath.Split(path)
	dir, err := os.Open(cmp.Or(folder, "."))
	if err != nil {
		return ""
	}
	defer func() { _ = dir.Close() }()
	entries, _ := dir.ReadDir(mostNearFiles + 1)
	if len(entries) > mostNearFiles {
		return ""
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0 { // files of Kubernetes are links
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	if near := nearName(name, names); near != "" {
		return folder + near
	}
	return ""
}

// limitsEndings are those of limits files, as endingOf returns them.
var limitsEndings = []string{".yaml", ".json"}

// shortName is the length from which on the name of a file without an ending may be that of one with an ending: two letters of a short
// one make too much of it.
const shortName = 6

// nearName returns the name of a file that is nearly another one, their endings aside, or "". Of several endings it
// is the nearest.
func nearName(name string, names []string) string {
	byStem := map[string][]string{}
	var stems []string
	ending := endingOf(name)
	for _, other := range names {
		stem := stemOf(other)
		if ending == "" && endingOf(other) != "" && stem != name && len(name) < shortName { // such as a password and a limits file
			continue
		}
		differs := ending != "" && endingOf(other) != ending
		if differs && (stem != stemOf(name) || slices.Contains(limitsEndings, ending) && !slices.Contains(limitsEndings, endingOf(other))) {
			continue // a file of another kind
		}
		byStem[stem] = append(byStem[stem], other)
		stems = append(stems, stem)
	}
	near := byStem[limit.Nearest(stemOf(name), stems)]
	if ending == "" && len(name) < shortName {
		near = slices.DeleteFunc(near, func(other string) bool { return stemOf(other) != name && !limit.IsSlip(name, stemOf(other)) })
	}
	if len(near) < 2 {
		return strings.Join(near, "")
	}
	return cmp.Or(limit.Nearest(name, near), near[0])
}

// stemOf returns the name of a file without its ending. That of .name is all of it.
func stemOf(name string) string {
	if stem := strings.TrimSuffix(name, filepath.Ext(name)); stem != "" {
		return stem
	}
	return name
}

// endingOf returns the ending of the name of a file, that of YAML in one spelling, or "".
func endingOf(name string) string {
	ending := strings.TrimPrefix(name, stemOf(name))
	if ending == ".yml" {
		return ".yaml"
	}
	return ending
}

// noFile is the error for a file that does not exist.
type noFile struct {
	path string
	err  error
}

// Error returns NoFile.
func (e *noFile) Error() string {
	text, _ := NoFile(e.path)
	return text
}

// Unwrap returns the error of the system.
func (e *noFile) Unwrap() error { return e.err }

// openRegular opens the file at path, which must be a regular one or a link to one:
// reading anything else may block or never end. The caller closes it.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &noFile{path, err}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := checkRegular(path, info); err != nil {
		return nil, nil, err
	}
	// The file may have been replaced since. Opening a named pipe must not block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = checkRegular(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// checkRegular returns an error with the type of a file that is not a regular one.
func checkRegular(path string, info fs.FileInfo) error {
	kind := "no file that can be read"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%s is %s: name a regular file, or a link to one", path, kind)
}

// bounds is the maximum size of a kind of file, and the hint for a larger one.
type bounds struct {
	kind string
	most int64
	hint string
}

// tooLarge returns the error for a file of size bytes.
func (b bounds) tooLarge(path string, size int64) error {
	return fmt.Errorf("%s has %d bytes, and the largest %s file %d%s", path, size, b.kind, b.most, b.hint)
}

// readRegular reads the regular file at path. It reads nothing of a file that is too
// large, and one byte over the maximum of one that grows meanwhile.
func readRegular(path string, b bounds) ([]byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > b.most {
		return nil, b.tooLarge(path, info.Size())
	}
	content, err := io.ReadAll(io.LimitReader(f, b.most+1))
	if err == nil && int64(len(content)) > b.most {
		err = b.tooLarge(path, int64(len(content)))
	}
	return content, err
}
