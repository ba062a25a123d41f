package main

import (
	"context"
	"flag"
	"io"
	"strings"

	"github.com/limitgate/limitgate/config"
)

// manual is the help of a command, for the completion of shells and the manual page.
type manual struct {
	words    []string // of the command, none for limitgate itself
	summary  string
	about    string
	examples []string
	flags    []flagHelp
	under    []manual // the commands that follow its words
}

// flagHelp describes a flag.
type flagHelp struct {
	name     string // without dashes
	argument string // the name of its value, empty if it needs none
	help     string
	details  string // of the value
}

// manualOf returns the help of limitgate and all of its commands, as they print it.
func manualOf(ctx context.Context) manual {
	m := manual{under: manualsOf(ctx, nil, subcommands())}
	for i := range m.under {
		if c := &m.under[i]; c.words[0] == limitsRunning.name { // limits --addr has flags of its own
			c.flags = append(c.flags, helpOf(ctx, limitsRunning.run).flags...)
		}
	}
	return m
}

// manualsOf returns the help of commands that follow the words.
func manualsOf(ctx context.Context, words []string, commands []subcommand) (all []manual) {
	for _, c := range commands {
		m := helpOf(ctx, c.run)
		m.words, m.summary = append(words[:len(words):len(words)], c.name), c.summary
		if c.under != nil {
			m.under = manualsOf(ctx, m.words, c.under())
		}
		all = append(all, m)
	}
	return all
}

// helpOf returns the help that a command prints.
func helpOf(ctx context.Context, run func(context.Context, *environment, []string) int) (m manual) {
	run(ctx, &environment{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, manual: &m}, []string{"--help"})
	return m
}

// flagsOf returns the flags of a set, without earlier names.
func flagsOf(fs *flag.FlagSet) (all []flagHelp) {
	fs.VisitAll(func(f *flag.Flag) {
		if f.Usage == "" {
			return
		}
		h := flagHelp{name: f.Name}
		h.argument, h.help = argumentOf(f)
		if f.DefValue != "" && f.DefValue != "false" {
			h.details = "default " + f.DefValue
		}
		all = append(all, h)
	})
	return all
}

// settingFlags returns the flags of serve.
func settingFlags() (all []flagHelp) {
	for _, f := range config.Flags() {
		all = append(all, flagHelp{name: strings.TrimPrefix(f.Name, "--"), argument: f.Argument, help: f.Usage, details: f.Details})
	}
	return all
}

// values returns what the value of a flag can be: files, words, or neither.
func (f flagHelp) values() (files bool, words []string) {
	switch words = strings.Split(f.argument, "|"); {
	case f.argument == "FILE", f.argument == "PATH":
		return true, nil
	case len(words) > 1 && f.argument == strings.ToLower(f.argument):
		return false, words
	}
	return false, nil
}

// walk calls visit for a command and all that follow it.
func (m *manual) walk(visit func(*manual)) {
	visit(m)
	for i := range m.under {
		m.under[i].walk(visit)
	}
}
