//go:build clients

package clients

import (
	"cmp"
	"fmt"
	"strings"
)

// secureTitle begins the section of docs/clients.md that TestMatrix writes with -clients-secure.
const secureTitle = "## Client matrix with TLS and users\n"

const secureHead = secureTitle + `
` + "`make clients SECURE=1`" + ` wrote this section. The proxy takes only TLS connections that show a
certificate, and its [users](users.md) may use no other tenants than those of the steps. Its store
is a Redis Cluster with TLS, a user with the [least rights](redis-acl.md) and a password in a file,
which is replaced, and refused from then on, in the step **reconnect**. There the proxy must also
list the client's connections under the right user. A client passes with all steps of the matrix
above.

- **single**, **cluster**: in that mode, with a user and a password, by the library's options or its AUTH.
- **certificate**: in the mode single, as the user of its certificate, without AUTH.

| client | version | settings | single | cluster | certificate |
|---|---|---|---|---|---|
`

// secureSection returns the section of the settings of production. Settings of one client with
// equal results share a row.
func secureSection(lines []line) string {
	var b, notes, missing strings.Builder
	for i, l := range lines {
		if l.missing != "" {
			missing.WriteString(missingRow(l))
			continue
		}
		if i+1 < len(lines) && sharesRow(l, lines[i+1]) {
			lines[i+1].settings = l.settings + ", " + lines[i+1].settings
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.client, version(l), cmp.Or(l.settings, "-"), secureResults(l))
		if l.noCertificate != "" {
			fmt.Fprintf(&notes, "\n%s: %s, so it ran against a proxy without `--tls-client-ca`.\n", l.client, l.noCertificate)
		}
	}
	return secureHead + b.String() + notes.String() + missingTable(missing.String())
}

func sharesRow(l, next line) bool {
	return next.missing == "" && l.client == next.client && version(l) == version(next) && secureResults(l) == secureResults(next)
}

func version(l line) string { return cmp.Or(l.alone.Version, l.clustered.Version, "-") }

// secureResults has a cell for each mode.
func secureResults(l line) string {
	var cells []string
	for _, o := range []outcome{l.alone, l.clustered, l.certified} {
		switch {
		case len(o.wrong()) > 0:
			cells = append(cells, "FAILED")
		case len(o.Steps) == 0:
			cells = append(cells, "-")
		default:
			cells = append(cells, "ok")
		}
	}
	return strings.Join(cells, " | ")
}
