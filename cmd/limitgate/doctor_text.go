package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/limitgate/limitgate/cluster/doctor"
)

const (
	// textWidth is the width at which lines of the report are wrapped.
	textWidth = 100
	// The widths of the columns before the text of a finding.
	severityWidth, checkWidth = 6, 13
)

// colours are the terminal colour codes of each severity.
var colours = [...]string{doctor.SeverityOK: "32", doctor.SeverityNote: "36", doctor.SeverityWarn: "33", doctor.SeverityFail: "31"}

// writeReport prints a report for people.
func writeReport(w io.Writer, r *doctor.Report, coloured bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "store  %s\n", describeStore(r))
	if len(r.Masters) > 0 {
		fmt.Fprintf(&b, "mode   %s\n\n", r.Mode)
		writeMasters(&b, r)
	}
	b.WriteString("\n")
	count := [4]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
		word := fmt.Sprintf("%-*s", severityWidth, f.Severity)
		if coloured {
			word = "\x1b[" + colours[f.Severity] + "m" + word + "\x1b[0m"
		}
		fmt.Fprintf(&b, "%s%-*s%s\n", word, checkWidth, f.Check, wrap(findingText(r, &f), severityWidth+checkWidth))
	}
	verdict := "limitgate can use this store"
	switch {
	case r.Verdict == doctor.SeverityFail && len(r.Masters) == 0:
		verdict = "limitgate cannot use this store"
	case r.Verdict == doctor.SeverityFail:
		verdict = "limitgate does not work well with this store: mend what fails"
	}
	fmt.Fprintf(&b, "\n%s (fail %d, warn %d, note %d)\n", verdict, count[doctor.SeverityFail], count[doctor.SeverityWarn], count[doctor.SeverityNote])
	_, err := io.WriteString(w, b.String())
	return err
}

// describeStore describes the store in a few words.
func describeStore(r *doctor.Report) string {
	var kind string
	switch r.Kind {
	case "cluster":
		kind = fmt.Sprintf("cluster of %d masters", len(r.Masters))
	case "redis":
		kind = "single Redis, no cluster"
	default:
		return "none found"
	}
	var versions []string
	seen := map[string]bool{}
	for _, m := range r.Masters {
		if v := m.Server + " " + m.Version; m.Version != "" && !seen[v] {
			seen[v] = true
			versions = append(versions, v)
		}
	}
	if len(versions) > 0 {
		kind += ", " + strings.Join(versions, ", ")
	}
	return kind
}

// writeMasters prints the measurements of each master.
func writeMasters(w io.Writer, r *doctor.Report) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "MASTER\tSLOTS\tREPLICAS\tROUND TRIP min/median/p99\tDECISION alone/batched\tCLOCK")
	for _, m := range r.Masters {
		trip, cost, clock := "-", "-", "-"
		if t := m.RoundTrip; t.Exchanges > 0 {
			trip = fmt.Sprintf("%s / %s / %s", short(t.Min), short(t.Median), short(t.P99))
		}
		if d := m.Decision; d.Calls > 0 {
			cost = fmt.Sprintf("%s / %s", short(d.Alone), short(d.Batched))
		}
		if m.Clock.Within > 0 {
			clock = signed(m.Clock.Offset.Round(100 * time.Microsecond))
		}
		replicas := "-" // those of a master that does not answer are not known
		if n := len(m.Replicas); n > 0 || m.Error == "" {
			replicas = strconv.Itoa(n)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Addr, shortSlots(m.Slots), replicas, trip, cost, clock)
	}
	_ = tw.Flush()
}

// shortSlots omits all but the first of many ranges.
func shortSlots(text string) string {
	const most = 3
	switch ranges := strings.Fields(text); {
	case len(ranges) == 0:
		return "-"
	case len(ranges) > most:
		return fmt.Sprintf("%s and %d ranges", ranges[0], len(ranges)-1)
	default:
		return text
	}
}

// signed formats a difference with its sign.
func signed(d time.Duration) string {
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}

// short rounds a duration to its significant digits.
func short(d time.Duration) time.Duration {
	switch {
	case d < 100*time.Microsecond:
		return d.Round(100 * time.Nanosecond)
	case d < time.Millisecond:
		return d.Round(time.Microsecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}

// findingText returns the text of a finding, with its nodes unless it applies to all of
// them.
func findingText(r *doctor.Report, f *doctor.Finding) string {
	if len(f.Nodes) == 0 || len(f.Nodes) == len(r.Masters) && f.Check != "address" {
		return f.Text
	}
	return strings.Join(f.Nodes, ", ") + ": " + f.Text
}

// wrap breaks text between words into lines that begin at a column.
func wrap(text string, column int) string {
	var b strings.Builder
	at := column
	for i, word := range strings.Fields(text) {
		width := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+width > textWidth:
			b.WriteString("\n" + strings.Repeat(" ", column))
			at = column
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += width
	}
	return b.String()
}
