// Package edge renders limits as CloudFormation templates for the edge of AWS, which sees requests
// before a service asks Limitgate: rules of WAF, a function of CloudFront, usage plans of API Gateway.
//
// The edge never admits less than the limits do: each number is at least what the limits admit at
// most. Each limit that a template does not hold, or holds in another form, has a warning. The
// package calls nothing of AWS.
package edge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/limitgate/limitgate/limit"
)

// Kind is what a template configures.
type Kind string

// The kinds.
const (
	KindWAF        Kind = "waf"         // a web ACL with rate-based rules
	KindCloudFront Kind = "cloudfront"  // the viewer's address as a header for the origin
	KindUsagePlans Kind = "usage-plans" // a usage plan of API Gateway for each plan
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{KindWAF, KindCloudFront, KindUsagePlans} }

// The scopes of a web ACL.
const (
	ScopeCloudFront = "CLOUDFRONT"
	ScopeRegional   = "REGIONAL"
)

// The bounds of Options.Margin.
const (
	MinMargin     = 1
	MaxMargin     = 1000
	DefaultMargin = 2
)

// Options are how limits are rendered.
type Options struct {
	Kind  Kind
	Scope string // of a web ACL
	// Margin multiplies what limits admit at most in a window of WAF, which counts late and
	// approximately.
	Margin float64
	// APIKeyHeader is the header with the key of a tenant, "" for none.
	APIKeyHeader string
	// ForwardedIPHeader is the header with the client's address, "" for the address of the
	// connection. The function of CloudFront writes it.
	ForwardedIPHeader string
}

// Warning is a part of a limits file that a template does not say, or says in another form.
type Warning struct {
	Line int // of the limits file
	Text string
}

// Format returns the warning as file:line: text.
func (w Warning) Format(file string) string {
	return printable(fmt.Sprintf("%s:%d: %s", file, w.Line, w.Text))
}

// Result is a template and the warnings of it, by their lines.
type Result struct {
	Template []byte
	Warnings []Warning
}

// Render renders a set of limits. A Result without a template has the warnings that say why.
func Render(set *limit.Set, opts Options) (Result, error) {
	if opts.Kind == KindWAF && !(opts.Margin >= MinMargin && opts.Margin <= MaxMargin) {
		return Result{}, fmt.Errorf("render edge: a margin is a number from %d to %d", MinMargin, MaxMargin)
	}
	var t template
	switch opts.Kind {
	case KindWAF:
		t = webACL(set, opts)
	case KindCloudFront:
		t = viewerAddress(set, opts)
	case KindUsagePlans:
		t = usagePlans(set)
	default:
		return Result{}, fmt.Errorf("render edge: there is no kind %q", opts.Kind)
	}
	slices.SortStableFunc(t.warnings, func(a, b Warning) int { return a.Line - b.Line })
	if len(t.resources) == 0 {
		return Result{Warnings: t.warnings}, errNothing(len(t.warnings))
	}
	text, err := t.text(set.File, opts.Kind)
	if n := len(text); n > maxTemplateBytes {
		t.warnings = append(t.warnings, Warning{1, fmt.Sprintf("the template has %d bytes: CloudFormation takes at most %d", n, maxTemplateBytes)})
	}
	return Result{Template: text, Warnings: t.warnings}, err
}

// errNothing returns the error for limits that make no resource, by the number of warnings that say why.
func errNothing(warnings int) error {
	if warnings == 0 {
		return errors.New("render edge: the file has no limits to render: limitgate limits lint prints those that it has")
	}
	return errors.New("render edge: no limit of the file has a form there: the lines above say why")
}

// template is a template before it is text.
type template struct {
	description string
	notes       []string // what is true of each template of the kind, a line each
	parameters  object
	resources   object
	outputs     object
	warnings    []Warning
}

func (t *template) warn(l *limit.Limit, format string, args ...any) {
	t.warnings = append(t.warnings, Warning{l.Line, name(l) + ": " + fmt.Sprintf(format, args...)})
}

// text returns the template in YAML, below its notes and warnings as comments.
func (t *template) text(file string, kind Kind) ([]byte, error) {
	var b strings.Builder
	line := func(text string) { b.WriteString(strings.TrimRight("# "+printable(text), " ") + "\n") }
	line(fmt.Sprintf("Written by limitgate edge render --kind %s from %s.", kind, file))
	line("")
	for _, n := range t.notes {
		line(n)
	}
	if len(t.warnings) > 0 {
		line("")
		line("What the limits file says, and this template does not say or says in another form:")
	}
	for _, w := range t.warnings[:min(maxComments, len(t.warnings))] {
		line(w.Format(file))
	}
	if more := len(t.warnings) - maxComments; more > 0 {
		line(fmt.Sprintf("%d more, which limitgate edge render prints", more))
	}
	whole := object{{key: "AWSTemplateFormatVersion", value: "2010-09-09"}, {key: "Description", value: t.description}}
	for _, part := range []field{{key: "Parameters", value: t.parameters}, {key: "Resources", value: t.resources}, {key: "Outputs", value: t.outputs}} {
		if fields, _ := part.value.(object); len(fields) > 0 {
			whole = append(whole, part)
		}
	}
	body, err := whole.yaml()
	if err != nil {
		return nil, fmt.Errorf("render edge: %w", err)
	}
	return append([]byte(b.String()), body...), nil
}

// Bounds of a template. CloudFormation has all but maxComments, which bounds the comments.
const (
	maxTemplateBytes = 1_000_000
	maxResources     = 500
	maxOutputs       = 200
	maxComments      = 200
)

// name names a limit for people.
func name(l *limit.Limit) string {
	switch {
	case l.Tenant != "":
		return fmt.Sprintf("%s (override of tenant %s)", l.ID, l.Tenant)
	case l.Plan != "":
		return fmt.Sprintf("%s (plan %s)", l.ID, l.Plan)
	}
	return l.ID
}

// printable replaces characters that would end a comment, or change a terminal or the direction of text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, text)
}
