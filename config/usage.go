package config

import (
	"fmt"
	"io"
	"strings"
)

// About is the beginning of the help of limitgate serve: its purpose, and an example.
const About = `Answers RL.CHECK and its family to Redis clients, until it gets SIGTERM or SIGINT.
SIGHUP reads the limits file again.

Usage: limitgate serve [flags]

It exits with 0 when it was told to end, 1 when it cannot serve and 64 when the
settings are wrong. The first signal lets decisions under way end, a second one
ends it at once.

Without flags it keeps its buckets in memory, uses a sample of limits and is
reached from this machine only.

A setting is a flag, a variable in the environment, or a key in the settings
file that --config names, and the first of these counts. --decision-timeout 5ms
is decision_timeout: 5ms in the file; --privacy-ip-max-ttl 1h is ip_max_ttl: 1h
under privacy:.

Example:

	limitgate serve --limits limits.yaml --redis 10.0.0.1:6379,10.0.0.2:6379
`

// Usage writes the help of limitgate serve: its purpose, an example, and the flags in
// groups, each with its variable, default and bounds.
func Usage(w io.Writer) {
	var b strings.Builder
	b.WriteString(About)
	group := ""
	for _, r := range newTable(new(Settings)) {
		if r.group != group {
			group = r.group
			fmt.Fprintf(&b, "\n%s:\n\n", group)
		}
		b.WriteString("  " + r.flag())
		if r.value.arg != "" {
			b.WriteString(" " + r.value.arg)
		}
		if details := r.details(); details != "" {
			b.WriteString("  (" + details + ")")
		}
		fmt.Fprintf(&b, "\n        %s\n", r.usage)
	}
	_, _ = io.WriteString(w, b.String())
}

// details lists the properties that help puts in parentheses.
func (r *setting) details() string {
	var all []string
	if r.initial != "" && r.source != flagsOnly {
		text := "default " + r.initial
		if r.withRedis != "" {
			text += ", with --redis " + r.withRedis
		}
		all = append(all, text)
	}
	if r.value.bounds != "" {
		all = append(all, r.value.bounds)
	}
	if r.source != flagsOnly {
		all = append(all, r.env())
	}
	if r.short != "" {
		all = append(all, "key "+r.name)
	}
	return strings.Join(all, ", ")
}

// Flag is a flag of limitgate serve.
type Flag struct {
	// Name begins with --. Argument is the name of its value, empty if it needs none.
	Name, Argument string
	// Usage is its effect, and Details its default, its bounds and its variable.
	Usage, Details string
}

// Flags returns the flags of limitgate serve in the order of its help.
func Flags() (all []Flag) {
	for _, r := range newTable(new(Settings)) {
		all = append(all, Flag{Name: r.flag(), Argument: r.value.arg, Usage: r.usage, Details: r.details()})
	}
	return all
}
