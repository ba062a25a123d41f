package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/internal/accesslog"
)

const (
	// unparsedShown bounds the lines in a report on what could not be read, and unparsedKinds the reasons that are counted.
	unparsedShown = 5
	unparsedKinds = 100
	// unparsedShare is the share of a log, one of so many lines, from which on a report that is without them is warned of.
	unparsedShare = 5
)

// unparsed counts the lines that could not be read, by their reasons. It has no text of a line, which begins with an address.
type unparsed struct {
	total int64
	kinds []unparsedKind // in the order of their first lines
}

// unparsedKind is lines with one reason.
type unparsedKind struct {
	begin  string // of all reasons, up to what they quote
	reason string // of the first one
	line   int    // its number
	count  int64
}

// add counts a line. Reasons are compared up to what they quote of it.
func (u *unparsed) add(bad *accesslog.ParseError) {
	u.total++
	begin, _, _ := strings.Cut(bad.Reason, `"`)
	i := slices.IndexFunc(u.kinds, func(k unparsedKind) bool { return k.begin == begin })
	switch {
	case i >= 0:
		u.kinds[i].count++
	case len(u.kinds) < unparsedKinds:
		u.kinds = append(u.kinds, unparsedKind{begin, bad.Reason, bad.Line, 1})
	}
}

// first describes the first line that could not be read.
func (u *unparsed) first() string {
	return fmt.Sprintf("line %d: %s", u.kinds[0].line, u.kinds[0].reason)
}

// sample describes the most frequent reasons, each by its first line.
func (u *unparsed) sample() (lines []string) {
	kinds := slices.Clone(u.kinds)
	slices.SortStableFunc(kinds, func(a, b unparsedKind) int { return cmp.Compare(b.count, a.count) })
	rest := u.total
	for _, k := range kinds[:min(len(kinds), unparsedShown)] {
		rest -= k.count
		text := fmt.Sprintf("line %d: %s", k.line, k.reason)
		if k.count > 1 {
			text += fmt.Sprintf(" (%d more like it)", k.count-1)
		}
		lines = append(lines, text)
	}
	if rest > 0 {
		lines = append(lines, fmt.Sprintf("and %d for other reasons", rest))
	}
	return lines
}

// warn warns of a log of which a large share could not be read.
func (u *unparsed) warn(lines int64, opts *Options) {
	if u.total*unparsedShare >= lines && u.total > 0 && opts.Warn != nil {
		opts.Warn(fmt.Sprintf("%d of %d lines (%d %%) were left out, as their format cannot be read: the rest may be another kind of traffic", u.total, lines, 100*u.total/max(lines, 1)))
	}
}

func writeUnparsed(w io.Writer, count int64, sample []string) {
	if count == 0 {
		return
	}
	fmt.Fprintf(w, "%s left out, whose format cannot be read:\n", lines(count, "was", "were"))
	for _, line := range sample {
		fmt.Fprintf(w, "  %s\n", line)
	}
}
