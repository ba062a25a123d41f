package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/config"
)

// parseFlags parses args, whose flags may stand anywhere before an argument --. Done reports
// that the command ends with the code.
func parseFlags(env *environment, fs *flag.FlagSet, args []string) (code int, done bool) {
	// The flag package prints its own errors and usage. Suppress them.
	help := fs.Usage
	fs.Usage, env.flags = func() {}, fs
	switch err := parseAnywhere(fs, args); {
	case errors.Is(err, flag.ErrHelp) && fs.Lookup("addr") == nil && unknownCommand(fs.Name(), args) != "": // not limits TENANT --addr
		fmt.Fprintf(env.stderr, "limitgate %s: %s; limitgate %[1]s --help lists them\n", fs.Name(), unknownCommand(fs.Name(), args))
		return exitUsage, true
	case errors.Is(err, flag.ErrHelp) && fs.Lookup("addr") != nil && hostAsHelp(args) != "":
		host := hostAsHelp(args)
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, "PORT")
		}
		fmt.Fprintf(env.stderr, "limitgate %s: -h is --help; an address is --addr %.64s\n", fs.Name(), host)
		return exitUsage, true
	case errors.Is(err, flag.ErrHelp):
		help()
		return exitOK, true
	case err != nil:
		text, lists := flagMistake(fs, err), "lists the flags"
		if unknown := unknownCommand(fs.Name(), args); unknown != "" && strings.HasPrefix(err.Error(), errNoFlag) {
			text, lists = unknown, "says more"
		}
		fmt.Fprintf(env.stderr, "limitgate %s: %s; limitgate %[1]s --help %[3]s\n", fs.Name(), text, lists)
		return exitUsage, true
	}
	return 0, false
}

// These begin the errors of package flag for a flag that is not defined, and for one without its value.
const (
	errNoFlag  = "flag provided but not defined: "
	errNoValue = "flag needs an argument: "
)

// The other errors of package flag.
var (
	errFlagValue  = regexp.MustCompile(`(?s)^invalid value ("(?:[^"\\]|\\.)*") for flag -([^:]+): (.*)$`)
	errFlagSwitch = regexp.MustCompile(`(?s)^invalid boolean value ".*" for -([^:]+): `)
)

// flagMistake describes an error of package flag, and says what would be right.
func flagMistake(fs *flag.FlagSet, err error) string {
	text := err.Error()
	if name, unknown := strings.CutPrefix(text, errNoFlag); unknown {
		return unknownFlag(fs, "--"+strings.TrimLeft(name, "-"))
	}
	if name, missing := strings.CutPrefix(text, errNoValue); missing {
		name = strings.TrimLeft(name, "-")
		argument, _ := argumentOf(fs.Lookup(name))
		return fmt.Sprintf("flag --%s: the value is missing; write --%[1]s %s", name, argument)
	}
	if of := errFlagSwitch.FindStringSubmatch(text); of != nil {
		return "flag --" + of[1] + " takes no value; write the flag alone, or leave it out"
	}
	of := errFlagValue.FindStringSubmatch(text)
	if of == nil {
		return text
	}
	given, _ := strconv.Unquote(of[1])
	flag, value, reason := "flag --"+of[2]+": ", config.Quote(given), of[3]
	switch {
	case reason == "parse error":
		return flag + notOfType(fs.Lookup(of[2]), given)
	case reason == "value out of range":
		return flag + value + " is out of bounds"
	case strings.Contains(reason, value):
		return flag + reason
	}
	return flag + value + ": " + reason
}

// notOfType returns what is wrong with a text that a flag does not parse.
func notOfType(f *flag.Flag, text string) string {
	_, example, _ := strings.Cut(f.Usage, "such as ")
	var value any
	if g, ok := f.Value.(flag.Getter); ok {
		value = g.Get()
	}
	switch value.(type) {
	case time.Duration:
		if initial, err := time.ParseDuration(f.DefValue); err == nil && initial > 0 {
			example = cmp.Or(example, config.ShowDuration(initial))
		}
		most := time.Duration(math.MaxInt64)
		if f.Name == "timeout" {
			most = mostWait
		}
		return config.NotDuration(text, cmp.Or(example, "5s"), most)
	case float64:
		return config.Quote(text) + " is not a number; write for example 100 or 1.5"
	}
	if f.DefValue != "0" {
		example = cmp.Or(example, f.DefValue)
	}
	return config.NotWhole(text, cmp.Or(example, "100"), 1, math.MaxInt)
}

// parseAnywhere parses args, and leaves those that are no flags in fs.Args.
func parseAnywhere(fs *flag.FlagSet, args []string) error {
	if err := checkValues(fs, args); err != nil {
		return err
	}
	var others []string
	all := args
	for len(args) > 0 {
		if arg := args[0]; !isFlag(arg) {
			others, args = append(others, arg), args[1:]
			continue
		}
		if err := fs.Parse(args); err != nil {
			return err
		}
		// Parse stops at the first argument that is no flag, or behind --.
		if n := len(args) - fs.NArg(); args[n-1] == "--" {
			others = append(others, fs.Args()...)
			break
		}
		args = fs.Args()
	}
	if err := checkOnce(fs, all); err != nil {
		return err
	}
	return fs.Parse(append([]string{"--"}, others...))
}

// checkValues returns the error for a flag without a value that another flag of the command follows: package flag
// takes that for the value.
func checkValues(fs *flag.FlagSet, args []string) error {
	for i := 0; i+1 < len(args) && args[i] != "--"; i++ {
		f, hasValue := flagNamed(fs, args[i])
		if f == nil || hasValue || isSwitch(f) {
			continue
		}
		i++
		if next, _ := flagNamed(fs, args[i]); next != nil || slices.Contains([]string{"--help", "-help", "-h"}, args[i]) {
			return errors.New(errNoValue + "-" + f.Name)
		}
	}
	return nil
}

// flagNamed returns the flag that an argument names, or nil, and whether its value stands in the same argument.
func flagNamed(fs *flag.FlagSet, arg string) (f *flag.Flag, hasValue bool) {
	if !isFlag(arg) {
		return nil, false
	}
	name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return fs.Lookup(name), hasValue
}

// isSwitch reports whether a flag needs no value.
func isSwitch(f *flag.Flag) bool {
	is, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && is.IsBoolFlag()
}

// checkOnce returns an error for a flag that args, which were parsed, give twice where a person may mean both.
func checkOnce(fs *flag.FlagSet, args []string) error {
	given := map[string]bool{}
	for _, arg := range args {
		if arg == "--" {
			break
		}
		f, _ := flagNamed(fs, arg)
		if f == nil {
			continue
		}
		argument := ""
		if v, ok := f.Value.(interface{ Argument() string }); ok {
			argument = v.Argument()
		}
		if twice := config.GivenTwice("--"+f.Name, argument); twice != "" && given[f.Name] {
			return fmt.Errorf("flag --%s: %s", f.Name, twice)
		}
		given[f.Name] = true
	}
	return nil
}

// isFlag reports whether an argument is a flag, and not a - or a negative number.
func isFlag(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && (arg[1] < '0' || arg[1] > '9')
}
