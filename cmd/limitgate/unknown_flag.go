package main

import (
	"flag"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/config"
)

// flagAdvice says what to write in place of flags that a command does not have, but people expect.
type flagAdvice struct {
	flags, commands []string // a command that ends with a space stands for all that begin with it
	text            string   // %s is the command
}

var (
	logFlags    = []string{"--log", "--logs", "--log-file", "--access-log", "--file", "--input", "--in"}
	outputFlags = []string{"--o", "--out", "--output"}
	rowFlags    = []string{"--n", "--limit", "--count", "--number", "--rows", "--top"}
)

var flagAdvices = []flagAdvice{
	{[]string{"--dim"}, []string{"check", "explain", "limits explain"}, "write DIM NAME VALUE behind the ip"},
	{[]string{"--dim"}, []string{"limits suggest"}, "limits are suggested by tenant, op and ip alone: --tenant and --op take templates of other fields of the log"},
	{[]string{"--cost"}, []string{"check", "explain", "limits explain"}, "the cost stands behind the ip, without a name"},
	{[]string{"--tenant", "--op", "--ip"}, []string{"check", "explain", "limits explain"}, "tenant, op and ip are arguments, in this order and without flags"},
	{[]string{"--ip"}, []string{"replay", "limits suggest"}, "the ip of a request is the client of its line"},
	{[]string{"--cost"}, []string{"replay", "limits suggest"}, "each line costs one unit, as a check without a cost does"},
	{[]string{"--tz", "--timezone", "--utc"}, []string{"replay", "limits suggest"}, "all times are in UTC"},
	{[]string{"--top"}, []string{"replay"}, "--json has each limit, and the ten buckets that denied most"},
	{logFlags, []string{"replay", "limits suggest"}, "the log is the last argument, without a flag"},
	{outputFlags, []string{"limits ", "edge", "edge ", "replay"}, "it writes to standard output: limitgate %s ... > FILE"},
	{rowFlags, []string{"top", "denied"}, "write the number of rows alone: limitgate %s 20"},
	{[]string{"--addr"}, []string{"replay"}, "--against HOST:PORT sends the requests to a running limitgate"},
	{[]string{"--dry-run"}, []string{"limits push"}, "limitgate limits diff shows what it would change"},
	{[]string{"--dry-run"}, []string{"limits rollback", "limits confirm"}, "without --yes it shows what it would change, and asks"},
	{[]string{"--version", "--revision"}, []string{"limits rollback"}, "--to takes the version"},
	{[]string{"--audit", "--bucket"}, []string{"controlplane"}, "--audit-bucket names the bucket of the audit"},
}

// unknownFlag describes a flag that does not exist.
func unknownFlag(fs *flag.FlagSet, name string) string {
	if advice := adviceFor(fs.Name(), name); advice != "" {
		if name == "--o" || isNumber(name[2:]) {
			name = name[1:] // as it is most likely written
		}
		return "unknown flag " + name + "; " + advice
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
	if instead := config.InsteadOfFlag(name, false); instead != "" && slices.Contains(names, "--redis") {
		return "unknown flag " + name + "; " + instead
	}
	if meant := config.MeantFlag(name, names); meant != "" && !isNumber(name[2:]) {
		return "unknown flag " + name + "; did you mean " + meant + "?"
	}
	return "unknown flag " + name
}

// adviceFor returns the advice for a flag that a command does not have, or "".
func adviceFor(command, name string) string {
	if isNumber(name[2:]) { // a negative number
		name = rowFlags[0]
	}
	of := func(c string) bool { return c == command || strings.HasSuffix(c, " ") && strings.HasPrefix(command, c) }
	for _, a := range flagAdvices {
		if slices.Contains(a.flags, name) && slices.ContainsFunc(a.commands, of) {
			return strings.ReplaceAll(a.text, "%s", command)
		}
	}
	return ""
}

// isNumber reports whether the name of a flag is a number.
func isNumber(name string) bool {
	_, err := strconv.Atoi(name)
	return err == nil
}
