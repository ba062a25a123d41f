package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/limitgate/limitgate/internal/edge"
	"github.com/limitgate/limitgate/limit"
)

const edgeAbout = `Renders limits as CloudFormation for the edge of AWS.

Usage: limitgate edge render --kind waf|cloudfront|usage-plans [flags] LIMITS_FILE

waf is a web ACL with rate-based rules: one for each address, and one for each path that
has a limit by address. usage-plans is a usage plan of API Gateway for each plan. cloudfront
is a function and a policy that bring the viewer's address to the origin. The edge never
admits less than the limits. The template goes to standard output. A line on standard error,
and a comment in the template, says each thing that the template cannot say; - is
standard input.

It applies nothing and asks AWS nothing. With --check it prints how a deployed template
differs from the limits, in place of the template: - is deployed, + is rendered.

It exits with 0 when the template was written, or is the one deployed; 2 when it
differs, 1 when something went wrong and 64 when the arguments are wrong.`

// maxTemplateBytes bounds a deployed template: CloudFormation takes 1 MB.
const maxTemplateBytes = 4 << 20

// edgeFlags are the flags of edge render.
type edgeFlags struct {
	kind, scope, check string
	opts               edge.Options
}

// edgeCommands are the commands of edge.
func edgeCommands() []subcommand {
	return []subcommand{{name: "render", run: runEdgeRender}}
}

func runEdge(ctx context.Context, env *environment, args []string) int {
	for _, c := range edgeCommands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, env, args[1:])
		}
	}
	fs := newFlags(env, "edge", edgeAbout, edgeExamples()...)
	new(edgeFlags).register(fs)
	if len(args) > 0 && args[0] == "check" {
		fmt.Fprintln(env.stderr, "limitgate edge: check is a flag of render: limitgate edge render --kind waf --check deployed.yaml limits.yaml")
		return exitUsage
	}
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	text := "say render: limitgate edge render --kind waf limits.yaml"
	if fs.NArg() > 0 {
		text = fmt.Sprintf("there is no command %.64q%s; %s", fs.Arg(0), limit.DidYouMean(fs.Arg(0), []string{"render"}), text)
	}
	fmt.Fprintf(env.stderr, "limitgate edge: %s\n", text)
	return exitUsage
}

func edgeExamples() []string {
	return []string{
		"limitgate edge render --kind waf --scope REGIONAL examples/limits.yaml > waf.yaml",
		"limitgate edge render --kind waf --scope REGIONAL --check waf.yaml examples/limits.yaml",
	}
}

func (f *edgeFlags) register(fs *flag.FlagSet) {
	var kinds []string
	for _, k := range edge.Kinds() {
		kinds = append(kinds, string(k))
	}
	fs.StringVar(&f.kind, "kind", "", "`"+strings.Join(kinds, "|")+"`: what to render")
	fs.StringVar(&f.scope, "scope", "", "`CLOUDFRONT|REGIONAL`: what the web ACL stands before")
	fs.Float64Var(&f.opts.Margin, "margin", edge.DefaultMargin, "`times` what limits admit at most in a window of waf, from 1 on")
	fs.StringVar(&f.opts.APIKeyHeader, "api-key-header", "", "`header` with a tenant's key, for a rule of waf by key")
	fs.StringVar(&f.opts.ForwardedIPHeader, "forwarded-ip-header", "", "`header` with the client's address, which what stands in front overwrites")
	fs.StringVar(&f.check, "check", "", "compare with a deployed template, a `file`, and exit with 2 if it differs")
}

func runEdgeRender(_ context.Context, env *environment, args []string) int {
	var f edgeFlags
	fs := newFlags(env, "edge render", edgeAbout, edgeExamples()...)
	f.register(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if err := f.complete(fs); err != nil {
		fmt.Fprintf(env.stderr, "limitgate edge render: %s; limitgate edge render --help says more\n", err)
		return exitUsage
	}
	path := fs.Arg(0)
	set, _, err := loadLimits(env, path, limit.CompileOptions{})
	if err != nil {
		return failLimits(env, err)
	}
	result, err := edge.Render(set, f.opts)
	var lines []string
	if err == nil && f.check != "" { // an error has no remarks in front of it
		if lines, err = f.difference(env, result.Template); err != nil {
			return fail(env, err)
		}
	}
	for _, w := range result.Warnings {
		fmt.Fprintln(env.stderr, w.Format(path))
	}
	if err != nil {
		return fail(env, err)
	}
	if f.check == "" {
		_, _ = env.stdout.Write(result.Template)
		return exitOK
	}
	for _, line := range lines {
		fmt.Fprintln(env.stdout, line)
	}
	if len(lines) > 0 {
		return exitDenied
	}
	return exitOK
}

// complete checks the flags, and which of them go with a kind.
func (f *edgeFlags) complete(fs *flag.FlagSet) error {
	f.opts.Kind, f.opts.Scope = edge.Kind(strings.ToLower(f.kind)), strings.ToUpper(f.scope)
	given := map[string]bool{}
	fs.Visit(func(flag *flag.Flag) { given[flag.Name] = true })
	switch f.opts.Kind {
	case edge.KindWAF:
	case edge.KindCloudFront, edge.KindUsagePlans:
		for _, name := range []string{"scope", "margin", "api-key-header"} {
			if given[name] {
				return fmt.Errorf("--%s goes with --kind waf alone", name)
			}
		}
		if f.opts.Kind == edge.KindUsagePlans && given["forwarded-ip-header"] {
			return errors.New("--forwarded-ip-header goes with --kind waf and cloudfront: a usage plan counts by key")
		}
	case "":
		return errors.New("--kind is needed: waf, cloudfront or usage-plans")
	default:
		return fmt.Errorf("there is no kind %.64q%s: say waf, cloudfront or usage-plans", f.kind, limit.DidYouMean(f.kind, []string{"waf", "cloudfront", "usage-plans"}))
	}
	if f.opts.Kind == edge.KindWAF {
		if err := f.checkWAF(); err != nil {
			return err
		}
	}
	for _, name := range []string{f.opts.APIKeyHeader, f.opts.ForwardedIPHeader} {
		if name == "" {
			continue
		}
		if err := edge.CheckHeader(f.opts.Kind, name); err != nil {
			return err
		}
	}
	if fs.NArg() != 1 {
		return errors.New("one limits file is needed: limitgate edge render --kind waf --scope REGIONAL limits.yaml")
	}
	if f.check == "-" && fs.Arg(0) == "-" {
		return errors.New("standard input can be the limits file or the deployed template, not both")
	}
	return nil
}

func (f *edgeFlags) checkWAF() error {
	switch f.opts.Scope {
	case edge.ScopeCloudFront, edge.ScopeRegional:
	case "":
		return errors.New("--scope is needed: CLOUDFRONT for a distribution, REGIONAL for a load balancer or an API")
	default:
		return fmt.Errorf("there is no scope %.64q: say CLOUDFRONT or REGIONAL", f.scope)
	}
	if !(f.opts.Margin >= edge.MinMargin && f.opts.Margin <= edge.MaxMargin) {
		return fmt.Errorf("--margin is a number from %d to %d: below %[1]d, the edge would deny what the limits admit", edge.MinMargin, edge.MaxMargin)
	}
	return nil
}

// difference returns how a deployed template differs from a rendered one.
func (f *edgeFlags) difference(env *environment, rendered []byte) ([]string, error) {
	deployed, err := readTemplate(env, f.check)
	if err != nil {
		return nil, err
	}
	lines, err := edge.Diff(deployed, rendered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.check, err)
	}
	return lines, nil
}

// readTemplate reads a deployed template; - is standard input.
func readTemplate(env *environment, path string) ([]byte, error) {
	in := env.stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("open deployed template: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	text, err := readAtMost(in, maxTemplateBytes)
	if err != nil {
		return nil, fmt.Errorf("read deployed template: %w", err)
	}
	return text, nil
}

// readAtMost reads all of an input, and returns an error if that is more than most bytes.
func readAtMost(in io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return content, err
}
