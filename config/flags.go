package config

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
)

// readFlags parses the flags at the beginning of args as package flag does: one dash or
// two, a value after = or as the next word, switches without one. Unlike that package it
// continues after a mistake, so that all are listed. Help reports a request for help.
func readFlags(t settings, args []string) (src *source, rest []string, help bool) {
	src = new(source)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		name, text, hasText := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
		if name == "help" || name == "h" {
			return nil, nil, true
		}
		r, warning := t.find((*setting).flag, flagName, "--"+name)
		isSwitch := r != nil && r.value.arg == ""
		// The word after an unknown flag is most likely its value.
		if !hasText && !isSwitch && len(args) > 0 && !looksLikeFlag(args[0]) {
			text, args, hasText = args[0], args[1:], true
		}
		switch {
		case r == nil:
			src.failUnknownFlag(t, "--"+name, text)
			continue
		case !hasText && !isSwitch:
			src.fail(0, "flag --%s: the value is missing; write --%[1]s=%s", name, r.value.arg)
			continue
		case src.has(r, "--"+name) && GivenTwice("--"+name, r.value.arg) != "":
			src.fail(0, "flag --%s: %s", name, GivenTwice("--"+name, r.value.arg))
			continue
		case !hasText:
			text = "true"
		}
		place := "flag --" + name
		src.add(given{setting: r, text: text, source: place, place: place}, "--"+name, warning)
	}
	return src, args, false
}

// looksLikeFlag distinguishes a flag from a value that begins with a dash, such as -1.
func looksLikeFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9')
}

func (src *source) failUnknownFlag(t settings, flag, value string) {
	hint := "limitgate serve --help lists them"
	if meant := MeantFlag(flag, t.keys((*setting).flag, flagsOnly)); meant != "" {
		hint = "did you mean " + meant + "?"
		if _, err := strconv.ParseUint(value, 10, 16); err == nil && meant == "--listen" {
			hint = "did you mean --listen=127.0.0.1:" + value + "?"
		}
		if meant == "--redis" && strings.Contains(flag, "cluster") {
			hint += " It takes the nodes of a cluster: --redis=HOST:PORT,..."
		}
	}
	if instead := InsteadOfFlag(flag, true); instead != "" {
		hint = instead
	}
	src.fail(0, "flag %s: unknown flag; %s", plain(flag), hint)
}

// IsList reports whether a flag has a list, by the name of its value in help.
func IsList(argument string) bool { return strings.HasSuffix(argument, ",...") }

// GivenTwice returns the mistake of a flag that is given twice where a person may mean both, or "". Of other flags the last one counts:
// it may stand behind those of a script.
func GivenTwice(flag, argument string) string {
	switch {
	case IsList(argument):
		return "it is given twice; write one list with commas, " + flag + "=" + argument
	case flag == "--limits":
		return "it is given twice, and the limits are those of one file: write all into that"
	}
	return ""
}

// RedisFlags defines the settings of the connections to Redis as flags, for other commands
// than serve. It returns a function that checks their combination after fs has parsed them.
// s.Warnings are then those of earlier names.
func RedisFlags(fs *flag.FlagSet, s *Settings) (check func() error) {
	t := newTable(s)
	var mistakes []error
	failed := func(err error) { mistakes = append(mistakes, err) }
	for _, r := range t {
		if strings.HasPrefix(r.name, "redis.") {
			_ = r.read(r.initial) // the table's test reads every default
			fs.Var(&settingFlag{setting: r, failed: failed}, r.flag()[2:], r.usage)
			for _, old := range r.was {
				if name := flagName(old); name != r.flag() { // a flag without a usage is not in help
					warn := func() { s.Warnings = append(s.Warnings, name+" is called "+r.flag()+" now") }
					fs.Var(&settingFlag{setting: r, warn: warn, failed: failed}, name[2:], "")
				}
			}
		}
	}
	return func() error {
		if len(mistakes) > 0 {
			return mistakes[0]
		}
		for _, p := range s.redisProblems() {
			return fmt.Errorf("%s: %s", t.named(p.name).flag(), p.text)
		}
		return nil
	}
}

// settingFlag is a setting as a flag.Value.
type settingFlag struct {
	setting *setting
	warn    func() // unless nil, called when the flag is set
	failed  func(error)
	text    string
}

// Set parses the value.
func (f *settingFlag) Set(text string) error {
	f.text = text
	if f.warn != nil {
		f.warn()
	}
	if err := f.setting.read(text); err != nil { // package flag would repeat the text
		f.failed(fmt.Errorf("%s: %w", f.setting.flag(), err))
	}
	return nil
}

// String returns the value as written.
func (f *settingFlag) String() string { return f.text }

// IsBoolFlag reports whether the flag needs no value.
func (f *settingFlag) IsBoolFlag() bool { return f.setting.value.arg == "" }

// Argument returns the name of the value in help.
func (f *settingFlag) Argument() string { return f.setting.value.arg }
