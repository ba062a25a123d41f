//go:build clients

package clients

import (
	"cmp"
	"fmt"
	"strings"
)

// matrixTitle begins the section of docs/clients.md that TestMatrix writes.
const matrixTitle = "## Client matrix\n"

const matrixHead = matrixTitle + `
` + "`make clients`" + ` wrote this section: it runs each client against the real binary, with the store
in memory, and fails when an installed client does not pass every step.

- **single**: 100 checks one after the other are decided in order and admit exactly the limit; a denial says when to come back; a bad cost is the client's own kind of error, and the connection goes on.
- **cluster**: the same and all that follows, by the client's cluster mode, to which Limitgate is a cluster of one node.
- **pipeline**: 100 checks sent at once, decided in order.
- **dialect**: ` + "`CL.THROTTLE key 5 10 60 1`" + ` answers ` + "`0 6 5 -1 6`" + `.
- **reconnect**: after ` + "`CLIENT KILL`" + ` of its connections at most one call fails. By hand: the library leaves it to the program to connect again.
- **RESP**: the version of the protocol that the server saw.

` + "`-`" + ` marks a feature that the client lacks. redis-benchmark and ` + "`--pipe`" + ` show no replies: the
units that they took are counted afterwards.

| client | version | settings | RESP | single | cluster | pipeline | dialect | reconnect |
|---|---|---|---|---|---|---|---|---|
`

// matrixSection returns the section of the plain settings.
func matrixSection(lines []line) string {
	var b, missing strings.Builder
	b.WriteString(matrixHead)
	for _, l := range lines {
		if l.missing != "" {
			missing.WriteString(missingRow(l))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", l.client, version(l), cmp.Or(l.settings, "-"), cmp.Or(l.alone.resp, "-"),
			cell(l.alone, "check", "denial", "error"),
			cell(l.clustered, "check", "pipeline", "denial", "error", "dialect", "reconnect"),
			cell(l.alone, "pipeline"), cell(l.alone, "dialect"), cell(l.alone, "reconnect"))
	}
	b.WriteString(missingTable(missing.String()))
	return b.String()
}

func missingRow(l line) string {
	return fmt.Sprintf("| %s | %s |\n", strings.TrimSpace(l.client+" "+l.settings), l.missing)
}

func missingTable(rows string) string {
	if rows == "" {
		return ""
	}
	return "\nNot run:\n\n| client | why |\n|---|---|\n" + rows
}

// cell sums up steps of an outcome: a failed one, or else the result of the first one.
func cell(o outcome, steps ...string) string {
	for _, step := range steps {
		if saw := o.Steps[step]; saw != "" && !good(saw) || saw == "" && len(o.wrong()) > 0 {
			return "FAILED"
		}
	}
	return cmp.Or(o.Steps[steps[0]], "-")
}

// replaceSection returns a page with another section of a title, which comes last if the page
// has none of that title.
func replaceSection(page, title, section string) string {
	before, after, found := strings.Cut(page, "\n"+title)
	if !found {
		return page + "\n" + section
	}
	if _, next, more := strings.Cut(after, "\n## "); more {
		return before + "\n" + section + "\n## " + next
	}
	return before + "\n" + section
}
