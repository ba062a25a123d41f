package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/limitimport"
	"github.com/limitgate/limitgate/limit"
)

const importAbout = `Turns the configuration of another limiter into a limits file.

Usage:

	limitgate limits import [--shadow] nginx|kong|rules FILE
	limitgate limits import [--shadow] [--tenant-key KEY] envoy FOLDER

nginx reads limit_req_zone and limit_req of an nginx.conf, or of what nginx -T prints,
which has all files: write it to a file, so that remarks name lines of it. kong reads the
rate-limiting plugins of a declarative configuration. rules reads a list of {rule_id,
match, rate, per, capacity, on_fail, enabled}, in JSON or YAML. envoy reads the files of
envoyproxy/ratelimit, whose keys become dimensions; serve --rls-config answers Envoy from
them as they are.

The limits file goes to standard output. A line on standard error says each thing that the
file cannot say, or that means something else there; - is standard input. With --shadow
all limits that the file would enforce are in shadow mode: they count beside the other
limiter, and deny nothing.

It exits with 0 when the file says everything, 2 when there are such lines, 1 when
the configuration cannot be read, none of its limits is imported or they cannot be
used, and 64 when the arguments are wrong.`

const defaultTenantKey = "tenant"

// importNames are the names of the software that limits are imported from.
var importNames = []string{"nginx", "kong", "rules", "envoy"}

// importers are the importers of files, by the name of the software.
var importers = map[string]func([]byte) (limitimport.Result, error){"nginx": limitimport.Nginx, "kong": limitimport.Kong, "rules": limitimport.Rules}

func runImport(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits import", importAbout, "limitgate limits import nginx nginx.conf > limits.yaml", "nginx -T > nginx.txt && limitgate limits import nginx nginx.txt > limits.yaml", "limitgate limits import envoy ratelimit/config > limits.yaml")
	ttl := ipMaxTTLFlag(env, fs)
	var folder folderFlags
	folder.defineMerge(fs)
	tenantKey := fs.String("tenant-key", defaultTenantKey, "of envoy: the `key` of descriptors whose value is the tenant")
	shadow := fs.Bool("shadow", false, "put all limits that the file would enforce into shadow mode")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if code, done := checkFolderFlags(env, fs, fs.Arg(1), "rls-merge-domains", "tenant-key"); done {
		return code
	}
	if mistake := importMistake(fs.Args()); mistake != "" {
		fmt.Fprintf(env.stderr, "limitgate limits import: %s\n", mistake)
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
	if errors.Is(err, errFolder) && fs.Arg(0) == "nginx" {
		err = fmt.Errorf("%w; nginx -T prints all files: nginx -T > nginx.txt && limitgate limits import nginx nginx.txt", err)
	}
	if err != nil {
		return fail(env, fmt.Errorf("limits import: %w", err))
	}
	for _, r := range result.Remarks {
		file := path
		if r.File != "" {
			file = r.File
		}
		fmt.Fprintf(env.stderr, "%s:%d: %s\n", file, r.Line, r.Text)
	}
	if *shadow {
		result.File = result.Shadow
		if slices.ContainsFunc(result.Remarks, func(r limitimport.Remark) bool { return strings.Contains(r.Text, "{id: ") }) {
			fmt.Fprintln(env.stderr, "limits that these lines advise need mode: shadow too, as long as the file has it")
		}
	}
	set, _, err := config.ParseLimits("standard output", result.File, limit.CompileOptions{IPMaxTTL: ttl.Microseconds()})
	if err == nil && len(set.Limits) == 0 {
		fmt.Fprintln(env.stderr, "no limit is imported, so there is no limits file")
		return exitError
	}
	_, _ = env.stdout.Write(result.File)
	if err != nil {
		fmt.Fprintf(env.stderr, "the limits file, which is on standard output, cannot be used as it is:\n%s\n", err)
		return exitError
	}
	if len(result.Remarks) > 0 {
		return exitDenied
	}
	return exitOK
}

// importExamples are names of files, by the name of the software.
var importExamples = map[string]string{"nginx": "nginx.conf", "kong": "kong.yaml", "rules": "rules.json"}

// otherLimiters are limiters without an import, by the beginnings of their names, with the reason and their page.
var otherLimiters = []struct{ begin, reason, page string }{
	{"express", "the limits of express-rate-limit are in the code of services", "express-rate-limit"},
	{"upstash", "the limits of upstash/ratelimit are in the code of services", "upstash"},
	{"throttlecrab", "throttlecrab has no limits to import: its clients send them with THROTTLE, which limitgate serve answers as it is", "throttlecrab"},
	{"redis-rate", "the limits of redis_rate are in the code of services", "redis_rate"},
	{"redis", "redis-cell has no limits to import: its clients send them with CL.THROTTLE, which limitgate serve answers as it is", "redis-cell"},
}

// importMistake returns the mistake in the arguments of an import, or "".
func importMistake(args []string) string {
	const example = "limitgate limits import nginx nginx.conf > limits.yaml"
	if len(args) == 0 {
		return importUsage
	}
	from := args[0]
	name := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(from), "go-redis/"), "_", "-")
	for _, other := range otherLimiters {
		if strings.HasPrefix(name, other.begin) {
			return other.reason + "; see docs/moving/" + other.page + ".md"
		}
	}
	switch {
	case !slices.Contains(importNames, from):
		if near := limit.DidYouMean(from, importNames); near != "" {
			return "there is no import of " + config.Quote(from) + near
		}
		last := len(importNames) - 1
		return fmt.Sprintf("there is no import of %s; there are %s and %s: %s", config.Quote(from), strings.Join(importNames[:last], ", "), importNames[last], example)
	case len(args) == 1 && from == "envoy":
		return "a folder is needed: limitgate limits import envoy ratelimit/config > limits.yaml"
	case len(args) == 1:
		return fmt.Sprintf("a file is needed: limitgate limits import %s %s > limits.yaml", from, importExamples[from])
	case len(args) > 2:
		what := "file"
		if from == "envoy" {
			what = "folder"
		}
		return fmt.Sprintf("%s is too many: import %s takes one %s: %s", config.Quote(args[2]), from, what, example)
	}
	return ""
}

const importUsage = "nginx, kong or rules, and a file, or envoy and a folder, are needed: limitgate limits import nginx nginx.conf > limits.yaml"

// importFile imports a file.
func importFile(env *environment, path string, read func([]byte) (limitimport.Result, error)) (limitimport.Result, error) {
	content, err := readConfiguration(env, path)
	if err != nil {
		return limitimport.Result{}, err
	}
	result, err := read(content)
	if err != nil {
		return limitimport.Result{}, fmt.Errorf("read %s: %w", path, err)
	}
	return result, nil
}

// errFolder is the error of a folder in the place of a file, behind its path.
var errFolder = errors.New("is a folder: name a file")

// readConfiguration reads the configuration of another limiter; - is standard input.
func readConfiguration(env *environment, path string) ([]byte, error) {
	const most = config.MaxLimitsFileBytes
	if path == "-" {
		content, err := readAtMost(env.stdin, most)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return content, nil
	}
	if isTable(path) {
		return nil, fmt.Errorf("%s is a table of limits: name a file of another limiter", config.Quote(path))
	}
	if isFolder(path) {
		return nil, fmt.Errorf("%s %w", config.Quote(path), errFolder)
	}
	if strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://") {
		return nil, fmt.Errorf("%s is a URL: store what it has in a file first, as curl -o FILE URL does", config.Quote(path))
	}
	content, err := config.ReadFile(path, most)
	if bytes.HasPrefix(content, []byte("\x1f\x8b")) {
		err = fmt.Errorf("%s is a gzip file: unpack it first", config.Quote(path))
	}
	return content, err
}

// importEnvoy imports a folder of envoyproxy/ratelimit. Its error has a line for each mistake.
func importEnvoy(path string, flags folderFlags, tenantKey string) (limitimport.Result, error) {
	if content, err := config.ReadLimitsFile(path); err == nil {
		if kind, read := config.KindOf(content); kind != "" {
			return limitimport.Result{}, fmt.Errorf("%s is %s, and no folder of Envoy's limits: limitgate %s %s", config.Quote(path), kind, read, path)
		}
	}
	c, problems, err := readEnvoy(path, flags)
	if err == nil {
		err = problems.Err()
	}
	if err != nil {
		return limitimport.Result{}, err
	}
	if keys := limitimport.EnvoyKeys(c.Config); tenantKey != defaultTenantKey && !slices.Contains(keys, tenantKey) {
		return limitimport.Result{}, fmt.Errorf("--tenant-key: no descriptor has the key %s%s; the keys are %.200s", config.Quote(tenantKey), limit.DidYouMean(tenantKey, keys), table.Printable(strings.Join(keys, ", ")))
	}
	return limitimport.Envoy(c.Config, problems, tenantKey), nil
}
