package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
)

// TestManualHasAll checks that the manual has every command with its words, and the flags of serve
// and of commands that follow others.
func TestManualHasAll(t *testing.T) {
	flags := map[string][]string{}
	m := manualOf(t.Context())
	m.walk(func(c *manual) {
		words := strings.Join(c.words, " ")
		flags[words] = nil
		for _, f := range c.flags {
			flags[words] = append(flags[words], f.name)
		}
		if words != "" && !strings.Contains(c.about, "Usage:") && words != "hash-password" {
			t.Errorf("%s has no usage:\n%s", words, c.about)
		}
	})
	for _, c := range subcommands() {
		if _, found := flags[c.name]; !found {
			t.Errorf("%s is missing", c.name)
		}
	}
	if got, want := len(flags["serve"]), len(config.Flags()); got != want || len(flags["envoy"]) != want {
		t.Errorf("serve has %d flags and envoy %d, want %d", got, len(flags["envoy"]), want)
	}
	for words, flag := range map[string]string{
		"limits lint": "strict", "limits": "addr", "limits import": "privacy-ip-max-ttl", "bypass token": "rate", "cells drain": "cells",
		"rollout start": "percent", "health": "config", "doctor": "redis", "replay": "svg",
	} {
		if !slices.Contains(flags[words], flag) {
			t.Errorf("%s is without --%s: %v", words, flag, flags[words])
		}
	}
	if slices.Contains(flags["rollout abort"], "percent") {
		t.Error("rollout abort has a flag of rollout start")
	}
}

// TestBashCompletion runs the completion in bash.
func TestBashCompletion(t *testing.T) {
	script, errs, code := command("completion", "bash")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for line, want := range map[string]string{
		"li":                        "limits",
		"c":                         "check cells controlplane completion",
		"limits l":                  "lint",
		"limits lint --str":         "--strict",
		"limits lint f.yaml --str":  "--strict",
		"serve --redis-tls-c":       "--redis-tls-ca --redis-tls-cert",
		"serve --log-level d":       "debug",
		"serve --log-level = d":     "debug",
		"serve --log-level = ":      "debug info warn error",
		"serve --limits ":           "", // files
		"serve --limits = ":         "",
		"serve --shutdown-timeout ": "",
		"rollout abort --per":       "",
		"help roll":                 "rollout",
		"health --a":                "--addr",
		"completion ":               "bash zsh fish",
		"bypass token --na":         "--name",
		"nothing --x":               "",
	} {
		words := append([]string{"limitgate"}, strings.Split(line, " ")...)
		run := `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _limitgate; echo "${COMPREPLY[*]}"`
		out, err := exec.Command("bash", append([]string{"--norc", "-uc", script + run, "bash"}, words...)...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, want %q (%v)", line, got, want, err)
		}
	}
}

// TestCompletionSyntax checks the syntax of completions: bash reads the words of zsh's too, and
// quotes in fish's are in pairs. Shells that this machine has check their own.
func TestCompletionSyntax(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, errs, code := command("completion", shell)
		if code != exitOK || !strings.Contains(script, "despite-veto") || !strings.Contains(script, "privacy-ip-max-ttl") {
			t.Errorf("%s: exit %d: %s", shell, code, errs)
		}
		if path, err := exec.LookPath(shell); err == nil {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(script)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s -n: %v\n%s", shell, err, out)
			}
		}
		if shell != "fish" {
			continue
		}
		for line := range strings.SplitSeq(script, "\n") {
			if n := strings.Count(strings.ReplaceAll(strings.ReplaceAll(line, `\\`, ""), `\'`, ""), "'"); n%2 != 0 {
				t.Errorf("a line of fish has %d quotes: %s", n, line)
			}
		}
	}
	if _, _, code := command("completion", "csh"); code != exitUsage {
		t.Errorf("csh: exit %d", code)
	}
}

// TestMan checks the manual page: every command is a heading, every line that begins with a dot is a
// request that is meant, and every block ends. groff finds nothing wrong, if this machine has it.
func TestMan(t *testing.T) {
	page, errs, code := command("man")
	if code != exitOK || !strings.HasPrefix(page, ".TH LIMITGATE 1") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	requests := []string{".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".I", ".nf", ".fi"}
	for number, line := range strings.Split(page, "\n") {
		if request, _, _ := strings.Cut(line, " "); strings.HasPrefix(line, ".") && !slices.Contains(requests, request) || strings.HasPrefix(line, "'") {
			t.Errorf("line %d is no request: %s", number+1, line)
		}
	}
	if open, closed := strings.Count(page, ".nf\n"), strings.Count(page, ".fi\n"); open != closed || open == 0 {
		t.Errorf("%d blocks begin and %d end", open, closed)
	}
	for _, want := range []string{".SH limitgate serve\n", ".SS limitgate limits lint\n", `\fB\-\-decision\-timeout\fR \fIDURATION\fR`, "LIMITGATE_LISTEN", "exits with"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page is without %q", want)
		}
	}
	if strings.Count(page, "lint lists every mistake") != 1 {
		t.Error("the help of limits is not there once")
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		run := exec.Command(groff, "-ww", "-man", "-Tutf8", "-z")
		run.Stdin, run.Dir = strings.NewReader(page), filepath.Clean(t.TempDir())
		if out, err := run.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff: %v\n%s", err, out)
		}
	}
}
