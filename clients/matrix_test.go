//go:build clients

package clients

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var secure = flag.Bool("clients-secure", false, "run the clients with the settings of production: TLS, users and certificates on both sides")

// fewest is the least number of rows that must have run to write the page.
const fewest = 15

// TestMatrix drives all clients and writes the matrix of docs/clients.md, or with -clients-secure
// the table of the settings of production.
func TestMatrix(t *testing.T) {
	rows := installable(t)
	var p *production
	if *secure {
		p = newProduction(t)
		for i := range rows {
			rows[i] = rows[i].secured()
		}
	} else {
		rows = append(rows, unreachable()...)
	}
	lines := make([]line, len(rows))
	ran := 0
	for i, r := range rows {
		begin := time.Now()
		lines[i] = line{row: r}
		if r.missing == "" {
			ran++
		}
		lines[i].run(t, p)
		fmt.Printf("%2d/%d %-40s %5.1f s  %s\n", i+1, len(rows), r.client+" "+r.settings, time.Since(begin).Seconds(), lines[i].verdict())
		for _, problem := range lines[i].problems() {
			t.Errorf("%s, %s: %s", r.client, r.settings, problem)
		}
	}
	if ran < fewest {
		t.Errorf("%d rows ran, %d are wanted", ran, fewest)
	}
	written := string(readFile(t, "../docs/clients.md"))
	if *secure {
		written = replaceSection(written, secureTitle, secureSection(lines))
	} else {
		written = replaceSection(written, matrixTitle, matrixSection(lines))
	}
	if err := os.WriteFile("../docs/clients.md", []byte(written), 0o644); err != nil {
		t.Fatal(err)
	}
}

// line is a row with its outcomes.
type line struct {
	row
	alone, clustered outcome
	// certified is the outcome of the user of a certificate, in the mode single.
	certified outcome
}

// run drives the client with the settings of production, or with plain ones if p is nil.
func (l *line) run(tb testing.TB, p *production) {
	a := plainAccess()
	if p != nil {
		a = p.byPassword(l.row)
	}
	for _, mode := range l.modes() {
		if mode == "single" {
			l.alone = drive(tb, l.row, mode, a)
		} else {
			l.clustered = drive(tb, l.row, mode, a)
		}
	}
	if p != nil && l.missing == "" && l.noCertificate == "" {
		l.certified = drive(tb, l.row, "single", p.byCertificate())
	}
}

func (l line) problems() (all []string) {
	for _, problem := range l.alone.wrong() {
		all = append(all, "single: "+problem)
	}
	for _, problem := range l.clustered.wrong() {
		all = append(all, "cluster: "+problem)
	}
	for _, problem := range l.certified.wrong() {
		all = append(all, "certificate: "+problem)
	}
	return all
}

func (l line) verdict() string {
	switch {
	case l.missing != "":
		return "not run: " + l.missing
	case len(l.problems()) > 0:
		return "FAILED: " + strings.Join(l.problems(), "; ")
	default:
		return "ok"
	}
}
