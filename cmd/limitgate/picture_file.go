package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/limitgate/limitgate/config"
)

// checkPicture returns an error for the file of a flag that a picture must not replace, one that is neither empty nor an SVG, and for one
// without a folder.
func checkPicture(flag, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		if folder := filepath.Dir(path); path != "" && !isFolder(folder) {
			return fmt.Errorf("--%s: there is no folder %s for %s", flag, config.Quote(folder), config.Quote(path))
		}
		return nil // writing it reports why
	case info.IsDir():
		return nil // writing it reports why
	case !info.Mode().IsRegular():
		return fmt.Errorf("--%s %s is no regular file: name a new one", flag, config.Quote(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	begin := make([]byte, len("<svg"))
	n, _ := io.ReadFull(f, begin)
	if begin = begin[:n]; n > 0 && string(begin) != "<svg" {
		return fmt.Errorf("--%s %s would replace a file that is no SVG: name a new one", flag, config.Quote(path))
	}
	return nil
}
