package rlsenv

import "strings"

// Row is a variable of ratelimit.
type Row struct {
	// Name is the variable, and Default its text if it is not set.
	Name, Default string
	// Fate is taken, not needed or refused.
	Fate string
	// Meaning is what Limitgate does with it, or the reason why it needs or takes no value but
	// the default.
	Meaning string
}

// Table returns a row for each variable of ratelimit.
func Table() []Row {
	var all []Row
	for _, v := range variables(new(draft)) {
		all = append(all, Row{v.name, v.initial, v.fate.String(), v.text})
	}
	return all
}

// Markdown returns the table for a page of documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| variable | default | | in Limitgate |\n|---|---|---|---|\n")
	for _, r := range Table() {
		initial := ""
		if r.Default != "" {
			initial = "`" + r.Default + "`"
		}
		b.WriteString("| `" + r.Name + "` | " + initial + " | " + r.Fate + " | " + r.Meaning + " |\n")
	}
	return b.String()
}
