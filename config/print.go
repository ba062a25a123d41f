package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// PrintConfig prints every setting, its value and where that comes from. Of
// secrets there is only the path.
func PrintConfig(w io.Writer, origins []Origin, asJSON bool) {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(origins)
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "SETTING\tVALUE\tSOURCE")
	for _, o := range origins {
		value := o.Value
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", o.Name, value, o.Source)
	}
	_ = tw.Flush()
}

// Usage prints the help of serve.
func Usage(w io.Writer) {
	fmt.Fprint(w, `Answers RL.CHECK and its family to any Redis client. Without flags it decides
in memory, by a sample limits file, on loopback.

Usage: limitgate serve [flags]

Example:

	limitgate serve --limits limits.yaml --redis 10.0.0.1:6379,10.0.0.2:6379

A flag beats the environment, which beats the settings file, which beats the
default; --print-config shows where each value comes from. The environment
variable of --decision-timeout is LIMITGATE_DECISION_TIMEOUT, its key in the
settings file decision_timeout. SIGHUP, and any change of the limits file,
loads the limits again; a mistake in it keeps the last good ones.
`)
	group := ""
	for _, s := range table() {
		if s.group != group {
			group = s.group
			fmt.Fprintf(w, "\n%s:\n", group)
		}
		kind, help := argumentOf(&s)
		line := "  --" + s.flag() + kind
		fmt.Fprintf(w, "%-34s %s", line, help)
		if s.fallback != "" && !s.isBool {
			fmt.Fprintf(w, " (default %s)", s.fallback)
		}
		fmt.Fprintln(w)
	}
}

// argumentOf returns what stands behind a flag, and its help without the
// quotes that mark the argument's name.
func argumentOf(s *setting) (kind, help string) {
	before, rest, found := strings.Cut(s.help, "`")
	name, after, closed := strings.Cut(rest, "`")
	switch {
	case found && closed:
		return " " + strings.ToUpper(name), before + name + after
	case s.isBool:
		return "", s.help
	default:
		return " VALUE", s.help
	}
}
