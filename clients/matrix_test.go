//go:build clients

package clients

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// fewest is the least number of rows that must have run to write the page.
const fewest = 15

// TestMatrix drives all clients and writes the matrix of docs/clients.md.
func TestMatrix(t *testing.T) {
	rows := allRows(t)
	lines := make([]line, len(rows))
	ran := 0
	for i, r := range rows {
		begin := time.Now()
		lines[i] = line{row: r}
		if r.missing == "" {
			ran++
		}
		lines[i].run(t)
		fmt.Printf("%2d/%d %-40s %5.1f s  %s\n", i+1, len(rows), r.client+" "+r.settings, time.Since(begin).Seconds(), lines[i].verdict())
		for _, problem := range lines[i].problems() {
			t.Errorf("%s, %s: %s", r.client, r.settings, problem)
		}
	}
	if ran < fewest {
		t.Errorf("%d rows ran, %d are wanted", ran, fewest)
	}
	if err := os.WriteFile("../docs/clients.md", []byte(page(string(readFile(t, "../docs/clients.md")), lines)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// line is a row with its outcomes.
type line struct {
	row
	alone, clustered outcome
}

func (l *line) run(tb testing.TB) {
	for _, mode := range l.modes() {
		if mode == "single" {
			l.alone = drive(tb, l.row, mode)
		} else {
			l.clustered = drive(tb, l.row, mode)
		}
	}
}

func (l line) problems() (all []string) {
	for _, problem := range l.alone.wrong() {
		all = append(all, "single: "+problem)
	}
	for _, problem := range l.clustered.wrong() {
		all = append(all, "cluster: "+problem)
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
