package main

import (
	"flag"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// tableArgument is the name of an argument that is a table.
const tableArgument = "table"

// wrongArguments returns which flags and arguments of a command are missing, or which argument is too many or
// in the place of another one, or "". Wanted are the names of the arguments, in their order.
func wrongArguments(fs *flag.FlagSet, flags []string, wanted ...string) string {
	missing, rest := flagsWithoutValue(fs, flags), slices.Clone(fs.Args())
	table := slices.Index(wanted, tableArgument)
	for _, name := range wanted {
		i := slices.IndexFunc(rest, func(arg string) bool { return isTable(arg) == (name == tableArgument) })
		if i < 0 {
			missing = append(missing, "the "+name)
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	switch {
	case slices.Contains(fs.Args(), config.LimitsTablePrefix):
		return config.NoTableName.Error()
	case slices.Equal(missing, []string{"the " + tableArgument}) && fs.NArg() == len(wanted):
		return fmt.Sprintf("%s is no table, which is written %sTABLE", config.Quote(fs.Arg(table)), config.LimitsTablePrefix)
	case len(missing) > 0:
		return missingText(missing)
	case len(rest) > 0:
		return tooMany(fs, rest[0])
	case table >= 0 && !isTable(fs.Arg(table)):
		return "the table is the " + []string{"first", "second"}[table] + " one"
	}
	return ""
}

// tookLast says that a flag in front of the last argument took that as its value, or returns "".
func tookLast(fs *flag.FlagSet, args []string) string {
	if fs.NArg() > 0 || len(args) < 2 {
		return ""
	}
	f, hasValue := flagNamed(fs, args[len(args)-2])
	value := args[len(args)-1]
	if f == nil || hasValue || isSwitch(f) || f.Name == "limits" && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(value)) {
		return ""
	}
	return fmt.Sprintf(": --%s took %s as its value", f.Name, config.Quote(value))
}

// flagsWithoutValue returns those of some flags that have no value.
func flagsWithoutValue(fs *flag.FlagSet, names []string) (missing []string) {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range names {
		if !given[name] || fs.Lookup(name).Value.String() == "" {
			missing = append(missing, "--"+name)
		}
	}
	return missing
}

// missingText returns that flags or arguments are missing.
func missingText(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0] + " is missing"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " are missing"
}

// missingFlags returns which flags of a command are missing, or that another number of arguments is
// wanted, or "".
func missingFlags(fs *flag.FlagSet, wanted int, names ...string) string {
	switch missing := flagsWithoutValue(fs, names); {
	case len(missing) > 0:
		return missingText(missing)
	case fs.NArg() < wanted:
		return "an argument is missing"
	case fs.NArg() > wanted:
		return tooMany(fs, fs.Arg(wanted))
	}
	return ""
}

// tooMany returns that an argument is one too many, and that a template without quotes may be the reason.
func tooMany(fs *flag.FlagSet, arg string) string {
	text := config.Quote(arg) + " is one argument too many"
	if slices.ContainsFunc(fs.Args(), func(arg string) bool { return strings.HasPrefix(arg, "{") }) {
		text += ", as a template that has a blank stands in quotes"
	}
	return text
}

// hostName matches a name that has a dot, and hostChars what a host may have.
var (
	hostName  = regexp.MustCompile(`^[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)+$`)
	hostChars = regexp.MustCompile(`^[0-9A-Za-z.:-]+$`)
)

// hostAsHelp returns the word behind -h if it is a host, as -h has it in other programs, or "".
func hostAsHelp(args []string) string {
	i := slices.Index(args, "-h")
	if i < 0 || i+1 == len(args) {
		return ""
	}
	addr := args[i+1]
	if _, notIP := netip.ParseAddr(addr); isHostPort(addr) || notIP == nil || addr == "localhost" || hostName.MatchString(addr) {
		return addr
	}
	return ""
}

// noEffect returns that a flag that was given has no effect without another one, or "".
func noEffect(fs *flag.FlagSet, without string, names ...string) (problem string) {
	fs.Visit(func(f *flag.Flag) {
		if problem == "" && slices.Contains(names, f.Name) {
			problem = fmt.Sprintf("--%s has no effect without --%s", f.Name, without)
		}
	})
	return problem
}

// noCommand returns that there is no command of the name of the first argument, and ends with a
// semicolon, or "" without arguments.
func noCommand(fs *flag.FlagSet, all []subcommand) string {
	if fs.NArg() == 0 {
		return ""
	}
	return fmt.Sprintf("there is no command %.64q of %s%s; ", fs.Arg(0), fs.Name(), commandUnderMeant(fs.Arg(0), all))
}

// commandUnderMeant returns the command below another one that a word most likely means, behind "; ", or "".
func commandUnderMeant(word string, all []subcommand) string {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	for meant, words := range map[string][]string{"lint": {"check", "validate", "verify", "test"}, "push": {"apply", "upload", "deploy"}} {
		if slices.Contains(names, meant) && slices.Contains(words, word) {
			return "; did you mean " + meant + "?"
		}
	}
	if word == "list" && slices.Contains(names, "lint") { // as nearly lint as it is
		return ""
	}
	if word == "reload" && slices.Contains(names, "lint") {
		return "; " + otherCommands[word]
	}
	return limit.DidYouMean(word, names)
}

// unknownCommand returns that the first of the arguments of a command, in front of flags, is none of the
// commands that follow its name, or "". Its flags are unknown then.
func unknownCommand(name string, args []string) string {
	i := slices.IndexFunc(subcommands(), func(c subcommand) bool { return c.name == name && c.under != nil })
	if i < 0 || len(args) == 0 || isFlag(args[0]) {
		return ""
	}
	all := subcommands()[i].under()
	if slices.ContainsFunc(all, func(c subcommand) bool { return c.name == args[0] }) {
		return ""
	}
	return fmt.Sprintf("there is no command %.64q of %s%s", args[0], name, commandUnderMeant(args[0], all))
}
