package linear

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// lines writes operations with their times in seconds since begin.
func lines(b *strings.Builder, ops []Operation, begin int64) {
	for i := range ops {
		o := &ops[i]
		until := "             "
		if o.Known {
			until = clock(o.Received, begin)
		}
		fmt.Fprintf(b, "  %s  %s  %s\n", clock(o.Sent, begin), until, o)
	}
}

// String returns the explanation as text.
func (e *Explanation) String() string {
	begin := e.Stuck.Sent
	for _, o := range slices.Concat(e.Before, e.Smallest) {
		begin = min(begin, o.Sent)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "no order of whole decisions explains the answer of\n")
	lines(&b, []Operation{e.Stuck}, begin)
	fmt.Fprintf(&b, "the smallest history without an order (sent, received):\n")
	lines(&b, e.Smallest, begin)
	fmt.Fprintf(&b, "from the states that were possible before it:\n")
	for _, s := range e.States {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	if e.Unanswered > 0 {
		fmt.Fprintf(&b, "%d calls before it have no answer of the store; that they are executed later does not help\n", e.Unanswered)
	}
	return b.String()
}

// Save writes a history without an order to a folder, as text and as drawn by porcupine,
// and returns the file with the text and its beginning.
func (h *History) Save(folder string) (path, summary string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", "", fmt.Errorf("make folder of histories: %w", err)
	}
	ops, horizon := h.ordered()
	e, ok := Explain(h)
	summary = "the history is too large to be made small\n"
	drawn := ops
	if ok {
		summary = e.String()
		drawn = slices.DeleteFunc(slices.Clone(ops), func(o Operation) bool { return o.Sent > e.Stuck.Received })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tenant %s\n\n%s\nall operations\n", h.Tenant, summary)
	lines(&b, ops, ops[0].Sent)
	path = filepath.Join(folder, h.Tenant+".txt")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return "", "", fmt.Errorf("write history: %w", err)
	}
	m := h.model(ops[0].Sent, horizon, excuse{forgot: h.SlotsMove})
	_, info := porcupine.CheckOperationsVerbose(m.porcupine(), m.operations(drawn), drawTimeout)
	if err := porcupine.VisualizePath(m.porcupine(), info, filepath.Join(folder, h.Tenant+".html")); err != nil {
		return "", "", fmt.Errorf("draw history: %w", err)
	}
	return path, summary, nil
}

// drawTimeout bounds the search of porcupine for its drawing.
const drawTimeout = 10 * time.Second
