package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

const manAbout = `Prints the manual page of limitgate and all of its commands, in roff.

Usage: limitgate man

It exits with 0, and with 64 when the arguments are wrong.`

func runMan(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "man", manAbout, "limitgate man > /usr/local/share/man/man1/limitgate.1", "limitgate man | man -l -")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(env.stderr, "limitgate man: %.64q is one argument too many\n", fs.Arg(0))
		return exitUsage
	}
	printMan(env.stdout, manualOf(ctx))
	return exitOK
}

// printMan prints the page.
func printMan(w io.Writer, m manual) {
	fmt.Fprintf(w, ".TH LIMITGATE 1 \"\" \"limitgate %s\" \"Limitgate\"\n", roffText(version))
	fmt.Fprint(w, ".SH NAME\nlimitgate \\- a rate limiter that any Redis client can ask\n")
	fmt.Fprint(w, ".SH SYNOPSIS\n.B limitgate\n.I COMMAND\n[arguments]\n.SH DESCRIPTION\n")
	for _, c := range m.under {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roffText(c.words[0]), roffText(c.summary))
	}
	m.walk(func(c *manual) {
		if len(c.words) == 0 {
			return
		}
		heading := ".SS"
		if len(c.words) == 1 {
			heading = ".SH"
		}
		fmt.Fprintf(w, "%s %s\n", heading, roffText("limitgate "+strings.Join(c.words, " ")))
		if parent := m.find(c.words[:len(c.words)-1]); c.about != parent.about {
			printManBlock(w, c.about+"\n\n"+strings.Join(c.examples, "\n"))
		}
		for _, f := range c.flags {
			printManFlag(w, f)
		}
	})
}

// find returns the help of the command with the words, which exists.
func (m *manual) find(words []string) (found *manual) {
	m.walk(func(c *manual) {
		if strings.Join(c.words, " ") == strings.Join(words, " ") {
			found = c
		}
	})
	return found
}

// printManBlock prints lines as they are.
func printManBlock(w io.Writer, text string) {
	fmt.Fprint(w, ".PP\n.nf\n")
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		fmt.Fprintln(w, roffText(strings.ReplaceAll(line, "\t", "    ")))
	}
	fmt.Fprint(w, ".fi\n")
}

// printManFlag prints a flag, its effect and its details.
func printManFlag(w io.Writer, f flagHelp) {
	fmt.Fprintf(w, ".TP\n\\fB%s\\fR", roffText("--"+f.name))
	if f.argument != "" {
		fmt.Fprintf(w, " \\fI%s\\fR", roffText(f.argument))
	}
	fmt.Fprintf(w, "\n%s", roffText(f.help))
	if f.details != "" {
		fmt.Fprintf(w, " (%s)", roffText(f.details))
	}
	fmt.Fprintln(w)
}

// roffText escapes a text, so that no line of it is a request.
func roffText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
