package judge

import (
	"fmt"
	"strconv"
	"strings"
)

// history is the operations for every store.
type history struct {
	start int64    // microseconds since the epoch
	files []string // the first is used from the start
	steps []operation
}

// String returns the history in the format of the files in testdata.
func (h *history) String() string { return h.text(nil) }

// text returns the history in that format, each step followed by the result of note.
func (h *history) text(note func(step int) string) string {
	var b strings.Builder
	for i, file := range h.files {
		fmt.Fprintf(&b, "file %d\n", i)
		for line := range strings.Lines(strings.TrimRight(file, "\n") + "\n") {
			b.WriteString("  " + line)
		}
	}
	fmt.Fprintf(&b, "start %d\n", h.start)
	for i := range h.steps {
		b.WriteString(h.steps[i].String())
		if note != nil {
			if n := note(i); n != "" {
				b.WriteString(" -> " + n)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// parseHistory parses the result of text. Lines that begin with # are comments.
func parseHistory(text string) (*history, error) {
	h := &history{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "  "):
			if len(h.files) == 0 {
				return nil, fmt.Errorf("read history: %q stands in no file", line)
			}
			h.files[len(h.files)-1] += line[2:] + "\n"
		case strings.HasPrefix(line, "file "):
			h.files = append(h.files, "")
		case strings.HasPrefix(line, "start "):
			var err error
			if h.start, err = strconv.ParseInt(line[len("start "):], 10, 64); err != nil {
				return nil, fmt.Errorf("read history: %w", err)
			}
		default:
			line, _, _ = strings.Cut(line, " -> ")
			o, err := parseOperation(line)
			if err != nil {
				return nil, fmt.Errorf("read history: %w", err)
			}
			h.steps = append(h.steps, o)
		}
	}
	for _, o := range h.steps {
		if o.kind == reload && o.file >= len(h.files) {
			return nil, fmt.Errorf("read history: there is no file %d", o.file)
		}
	}
	return h, nil
}

// decisions returns the number of decisions of the history.
func (h *history) decisions() (n int64) {
	for i := range h.steps {
		if h.steps[i].kind.decides() {
			n++
		}
	}
	return n
}
