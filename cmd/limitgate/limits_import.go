package main

import (
	"context"
	"fmt"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/limitimport"
	"github.com/limitgate/limitgate/limit"
)

const importAbout = `Turns the configuration of another limiter into a limits file.

Usage: limitgate limits import nginx|kong|rules FILE

nginx reads limit_req_zone and limit_req of an nginx.conf, best as nginx -T prints
it. kong reads the rate-limiting plugins of a declarative configuration. rules reads a
list of {rule_id, match, rate, per, capacity, on_fail, enabled}, in JSON or YAML. The limits
file goes to standard output. A line on standard error says each thing that the file
cannot say, or that means something else there; - is standard input.

It exits with 0 when the file says everything, 2 when there are such lines, 1 when
the configuration cannot be read or its limits cannot be used, and 64 when the
arguments are wrong.`

func runImport(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits import", importAbout, "limitgate limits import nginx nginx.conf > limits.yaml", "nginx -T | limitgate limits import nginx - > limits.yaml")
	ttl := ipMaxTTLFlag(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	readers := map[string]func([]byte) (limitimport.Result, error){"nginx": limitimport.Nginx, "kong": limitimport.Kong, "rules": limitimport.Rules}
	read := readers[fs.Arg(0)]
	if fs.NArg() != 2 || read == nil {
		fmt.Fprintln(env.stderr, "limitgate limits import: nginx, kong or rules, and a file, are needed: limitgate limits import nginx nginx.conf > limits.yaml")
		return exitUsage
	}
	path := fs.Arg(1)
	content, err := readFileOrStdin(env, path)
	if err != nil {
		return fail(env, fmt.Errorf("limits import: %w", err))
	}
	result, err := read(content)
	if err != nil {
		return fail(env, fmt.Errorf("limits import: read %s: %w", path, err))
	}
	for _, r := range result.Remarks {
		fmt.Fprintf(env.stderr, "%s:%d: %s\n", path, r.Line, r.Text)
	}
	_, _ = env.stdout.Write(result.File)
	if _, _, err := config.ParseLimits("limits.yaml", result.File, limit.CompileOptions{IPMaxTTL: ttl.Microseconds()}); err != nil {
		fmt.Fprintf(env.stderr, "the limits file cannot be used as it is:\n%s\n", err)
		return exitError
	}
	if len(result.Remarks) > 0 {
		return exitDenied
	}
	return exitOK
}
