package judge

import (
	"fmt"
	"strconv"
	"strings"
)

// history is what is asked of every store.
type history struct {
	start int64    // microseconds since the epoch
	files []string // limits files; the first is used from the start
	steps []operation
}

// String returns the history as it is kept.
func (h *history) String() string { return h.text(nil) }

// text returns the history as it is kept, with what note returns for each step behind it.
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

// parseHistory reads what text returned. Lines that begin with # are comments.
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

// decisions returns how many decisions the history asks for.
func (h *history) decisions() (n int64) {
	for i := range h.steps {
		if h.steps[i].kind.decides() {
			n++
		}
	}
	return n
}
