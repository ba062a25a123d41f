package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
)

// placed matches a mistake with its place in a file.
var placed = regexp.MustCompile(`^[^ ]+:\d+: `)

// fail prints an error and returns its exit code: exitUsage if it contains a config.Mistake.
func fail(env *environment, err error) int {
	prefix := "limitgate: "
	for line := range strings.SplitSeq(awsclient.Plain(env.withFlag(err)), "\n") {
		if prefix == "" && !placed.MatchString(line) {
			prefix = "limitgate: "
		}
		fmt.Fprintf(env.stderr, "%s%s\n", prefix, table.Printable(line)) // a server may have sent a part of it
		prefix = ""
	}
	if advice := awsclient.Advice(err); advice != "" {
		fmt.Fprintf(env.stderr, "limitgate: %s\n", advice)
	}
	if errors.As(err, new(config.Mistake)) {
		return exitUsage
	}
	return exitError
}

// withFlag returns the text of an error, and what is right in place of a file that cannot be used, with the
// flag that names one that does not exist.
func (env *environment) withFlag(err error) string {
	text := err.Error()
	missing := (*fs.PathError)(nil)
	switch {
	case !errors.As(err, &missing):
		return text
	case errors.Is(missing, fs.ErrPermission):
		return strings.Replace(text, missing.Error(), missing.Error()+" (this user may not "+missing.Op+" it: change the mode or the owner of the file, or of its folder)", 1)
	case errors.Is(missing, fs.ErrExist):
		return strings.Replace(text, missing.Error(), config.Quote(missing.Path)+" exists already: name a new file", 1)
	case errors.Is(missing, syscall.EISDIR):
		return strings.Replace(text, missing.Error(), config.Quote(missing.Path)+" is a folder: name a file", 1)
	case !errors.Is(missing, fs.ErrNotExist):
		return text
	}
	plain, near := config.NoFile(missing.Path)
	name := env.flagOf(missing.Path)
	text = strings.Replace(text, missing.Error(), plain, 1)
	folder := filepath.Dir(missing.Path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return strings.Replace(text, plain, "there is no folder "+config.Quote(folder)+" for "+config.Quote(missing.Path), 1)
	}
	switch {
	case name == "":
		if variable := env.variableOf(missing.Path); variable != "" {
			text += ", by " + variable + " of the environment"
		}
		return text
	case near:
		return strings.Replace(text, plain, strings.Replace(plain, "; did you mean", " for "+name+"; did you mean", 1), 1)
	}
	return strings.Replace(text, plain, plain+": "+name+" FILE", 1)
}

// isBoolFlag reports whether a flag of the command takes no value.
func (env *environment) isBoolFlag(name string) bool {
	if env.flags == nil {
		return false
	}
	f := env.flags.Lookup(strings.TrimLeft(name, "-"))
	if f == nil {
		return false
	}
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// flagOf returns the flag whose value is a path, or ends with one, or "".
func (env *environment) flagOf(path string) string {
	for i, arg := range env.args {
		name, value, found := strings.Cut(arg, "=")
		if !found && i+1 < len(env.args) {
			value = env.args[i+1]
		}
		if isFlag(name) && !env.isBoolFlag(name) && (value == path || strings.HasSuffix(value, ":"+path)) {
			return "--" + strings.TrimLeft(name, "-")
		}
	}
	return ""
}

// variableOf returns the variable of the environment whose value is a path, or "" if there is none, or more than one.
func (env *environment) variableOf(path string) (found string) {
	for _, entry := range env.environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != path || !strings.HasPrefix(name, envPrefix) {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}
