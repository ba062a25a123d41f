package accesslog

import "os"

// IsTerminal reports whether f is a terminal, going by whether it is a
// character device. That is enough to keep a progress bar out of files and
// pipes. It is not exact: /dev/null and other character devices also count as
// terminals. A nil or closed f is none. It may be called concurrently.
func IsTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
