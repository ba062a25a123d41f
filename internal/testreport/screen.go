package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// screen prints results. On a terminal its last line shows the running tests.
type screen struct {
	out      io.Writer
	terminal bool

	mutex sync.Mutex // guards the fields below
	live  string     // the last line on the terminal
}

// isTerminal reports whether a file is a terminal that can clear a line.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

// clearLine moves to the beginning of a line and clears it.
const clearLine = "\r\033[K"

// print writes lines above the live one.
func (s *screen) print(text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.live != "" {
		text = clearLine + text + s.live
	}
	fmt.Fprint(s.out, text)
}

// show replaces the live line. Without a terminal it does nothing.
func (s *screen) show(line string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.terminal || line == s.live {
		return
	}
	s.live = line
	fmt.Fprint(s.out, clearLine+line)
}

// width bounds the live line, which must not wrap.
const width = 78

// progress returns the live line: the packages under test, and the test that has run
// longest.
func progress(t *tally, done int, now time.Time) string {
	packages, test, began := t.oldest()
	if len(packages) == 0 {
		return ""
	}
	for i, name := range packages {
		packages[i] = path.Base(name)
	}
	line := fmt.Sprintf("%d packages done, now %s", done, strings.Join(packages, ", "))
	if test != "" {
		line += fmt.Sprintf(": %.0f s in %s", now.Sub(began).Seconds(), test)
	}
	return line[:min(len(line), width)]
}

// form returns the line of a finished package, after the output of a failed one.
func (r *packageResult) form() string {
	switch {
	case r.state == "skip":
		return fmt.Sprintf("?   \t%s\t[no test files]\n", r.name)
	case r.state == "fail":
		return fmt.Sprintf("%sFAIL\t%s\t%.1fs\n", r.output, r.name, r.seconds)
	case r.leftOut > 0:
		return fmt.Sprintf("ok  \t%s\t%.1fs\t(%d passed, %d left out)\n", r.name, r.seconds, r.passed, r.leftOut)
	default:
		return fmt.Sprintf("ok  \t%s\t%.1fs\n", r.name, r.seconds)
	}
}
