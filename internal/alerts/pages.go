package alerts

import (
	"fmt"
	"regexp"
	"strings"
)

// The markers of a table on a page that is otherwise written by hand.
const (
	begin = "<!-- Written by `go test ./internal/alerts -update` -->\n"
	end   = "<!-- end -->\n"
)

// notInAnchor matches the characters of a heading that its anchor lacks.
var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchor returns the anchor of a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// RunbookIndex returns docs/runbook.md with the table of its sections by alerts.
func RunbookIndex(page string) (string, error) {
	var b strings.Builder
	b.WriteString("| alert | severity | section |\n|---|---|---|\n")
	for _, a := range All() {
		fmt.Fprintf(&b, "| `%s` | %s | [%s](#%s) |\n", a.Name, a.Severity, a.Section, anchor(a.Section))
	}
	return between(page, b.String())
}

// Overview returns docs/alerts.md with the table of alerts.
func Overview(page string) (string, error) {
	var b strings.Builder
	b.WriteString("| alert | severity | fires when | meaning | steps | alarm of CloudWatch |\n|---|---|---|---|---|---|\n")
	for _, a := range All() {
		alarm := ""
		if a.Twin != nil {
			alarm = "`" + a.Twin.Alarm + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | [%s](runbook.md#%s) | %s |\n",
			a.Name, a.Severity, strings.TrimSuffix(a.Summary, "."), a.Meaning, a.Section, anchor(a.Section), alarm)
	}
	return between(page, b.String())
}

// SLOPage returns docs/slo.md with the SLOs and their queries.
func SLOPage(page string) (string, error) {
	var b strings.Builder
	for _, s := range SLOs {
		fmt.Fprintf(&b, "\n**%s**: %s, for %s. The share of bad ones in 30 days:\n\n```promql\n%s\n```\n",
			s.Name, s.Promise, s.good(), s.inWindow("30d"))
	}
	b.WriteString("\n| alerts | severity | fire while the budget burns | in both | the budget of 30 days lasts for |\n|---|---|---|---|---|\n")
	for _, r := range burns {
		fmt.Fprintf(&b, "| `...%s` | %s | %v times as fast as it may, %s in %s | %s and %s | %s |\n",
			r.name, r.severity, r.rate, r.burned, r.long, r.long, r.short, r.lasts)
	}
	return between(page, b.String()+"\n")
}

// between returns a page with another text between its markers.
func between(page, text string) (string, error) {
	before, rest, begins := strings.Cut(page, begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return "", fmt.Errorf("find the markers %q and %q", begin, end)
	}
	return before + begin + text + end + after, nil
}
