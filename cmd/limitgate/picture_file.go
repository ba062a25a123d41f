package main

import (
	"fmt"
	"io"
	"os"

	"github.com/limitgate/limitgate/config"
)

// checkPicture returns an error for the file of a flag that a picture must not replace: one that is neither empty nor an SVG.
func checkPicture(flag, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil || info.IsDir():
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
