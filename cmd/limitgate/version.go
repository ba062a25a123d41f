package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/limitgate/limitgate/config"
)

// The linker sets these, see the Makefile. An empty one is unknown.
var (
	version = "dev"
	commit  = "" // the hash of it
	date    = "" // of the commit, so that two builds of it are the same
)

// build describes the program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

const versionAbout = `Prints the version, the commit and its date, the version of Go, and the platform.

Usage: limitgate version [--json]

It exits with 0, and with 64 when the arguments are wrong.`

func runVersion(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "version", versionAbout, "limitgate version --json")
	asJSON := fs.Bool("json", false, "print JSON")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(env.stderr, "limitgate version: %s is not a flag; limitgate version --help lists them\n", config.Quote(fs.Arg(0)))
		return exitUsage
	}
	b := build{version, commit, date, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if *asJSON {
		_ = json.NewEncoder(env.stdout).Encode(b)
		return exitOK
	}
	fmt.Fprintf(env.stdout, "limitgate %s %s %s", b.Version, b.Go, b.Platform)
	if b.Commit != "" {
		fmt.Fprintf(env.stdout, " commit %s", b.Commit)
	}
	if b.Date != "" {
		fmt.Fprintf(env.stdout, " of %s", b.Date)
	}
	fmt.Fprintln(env.stdout)
	return exitOK
}
