package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/limitimport"
	"github.com/limitgate/limitgate/limit"
)

const importAbout = `Turns the configuration of another limiter into a limits file.

Usage:

	limitgate limits import nginx|kong|rules FILE
	limitgate limits import envoy [--tenant-key KEY] FOLDER

nginx reads limit_req_zone and limit_req of an nginx.conf, best as nginx -T prints
it. kong reads the rate-limiting plugins of a declarative configuration. rules reads a
list of {rule_id, match, rate, per, capacity, on_fail, enabled}, in JSON or YAML. envoy reads
the files of envoyproxy/ratelimit, whose keys become dimensions; serve --rls-config
answers Envoy from them as they are. The limits
file goes to standard output. A line on standard error says each thing that the file
cannot say, or that means something else there; - is standard input.

It exits with 0 when the file says everything, 2 when there are such lines, 1 when
the configuration cannot be read or its limits cannot be used, and 64 when the
arguments are wrong.`

// importers are the importers of files, by the name of the software.
var importers = map[string]func([]byte) (limitimport.Result, error){"nginx": limitimport.Nginx, "kong": limitimport.Kong, "rules": limitimport.Rules}

func runImport(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits import", importAbout, "limitgate limits import nginx nginx.conf > limits.yaml", "nginx -T | limitgate limits import nginx - > limits.yaml", "limitgate limits import envoy ratelimit/config > limits.yaml")
	ttl := ipMaxTTLFlag(fs)
	var folder folderFlags
	folder.defineMerge(fs)
	tenantKey := fs.String("tenant-key", "tenant", "of envoy: the `key` of descriptors whose value is the tenant")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if code, done := checkFolderFlags(env, fs, fs.Arg(1), "rls-merge-domains", "tenant-key"); done {
		return code
	}
	if fs.NArg() != 2 || importers[fs.Arg(0)] == nil && fs.Arg(0) != "envoy" {
		if strings.HasPrefix(strings.ToLower(fs.Arg(0)), "redis") {
			fmt.Fprintln(env.stderr, "limitgate limits import: redis-cell has no limits to import: its clients send them with CL.THROTTLE, which limitgate serve answers as it is")
			return exitUsage
		}
		if fs.NArg() > 0 && fs.Arg(0) != "envoy" && importers[fs.Arg(0)] == nil {
			fmt.Fprintf(env.stderr, "limitgate limits import: there is no import of %s%s; there are nginx, kong, rules and envoy: limitgate limits import nginx nginx.conf > limits.yaml\n", config.Quote(fs.Arg(0)), didYouMean(fs.Arg(0), []string{"nginx", "kong", "rules", "envoy"}))
			return exitUsage
		}
		fmt.Fprintln(env.stderr, "limitgate limits import: nginx, kong or rules, and a file, or envoy and a folder, are needed: limitgate limits import nginx nginx.conf > limits.yaml")
		return exitUsage
	}
	path := fs.Arg(1)
	var result limitimport.Result
	var err error
	if read := importers[fs.Arg(0)]; read != nil {
		result, err = importFile(env, path, read)
	} else {
		result, err = importEnvoy(path, folder, *tenantKey)
	}
	if err != nil {
		return fail(env, err)
	}
	for _, r := range result.Remarks {
		file := path
		if r.File != "" {
			file = r.File
		}
		fmt.Fprintf(env.stderr, "%s:%d: %s\n", file, r.Line, r.Text)
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

// importFile imports a file.
func importFile(env *environment, path string, read func([]byte) (limitimport.Result, error)) (limitimport.Result, error) {
	content, err := readFileOrStdin(env, path)
	if err != nil {
		return limitimport.Result{}, fmt.Errorf("limits import: %w", err)
	}
	result, err := read(content)
	if err != nil {
		return limitimport.Result{}, fmt.Errorf("limits import: read %s: %w", path, err)
	}
	return result, nil
}

// importEnvoy imports a folder of envoyproxy/ratelimit. Its error has a line for each mistake.
func importEnvoy(path string, flags folderFlags, tenantKey string) (limitimport.Result, error) {
	c, problems, err := readEnvoy(path, flags)
	if err == nil {
		err = problems.Err()
	}
	if err != nil {
		return limitimport.Result{}, fmt.Errorf("limits import: %w", err)
	}
	return limitimport.Envoy(c.Config, tenantKey), nil
}
