package rlsconfig

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is a mistake in a configuration, or a warning for its author.
type Problem struct {
	File  string // or the name of a resource of xDS
	Line  int    // 0 in a resource, which has no lines
	Field string // such as descriptors[0].rate_limit.unit
	Text  string // the mistake and its correction
	// Warning reports that the configuration can be used: envoyproxy/ratelimit accepts it too,
	// and its effect is seldom intended.
	Warning bool
}

// String returns the problem as file:line: field: text.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(plain(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Field != "" {
		b.WriteString(": " + p.Field)
	}
	b.WriteString(": " + p.Text)
	return b.String()
}

// Problems are the mistakes and warnings of a configuration.
type Problems []Problem

// Err returns an error with one line for each mistake, and nil if there are only warnings.
func (p Problems) Err() error {
	var lines []string
	for _, problem := range p {
		if !problem.Warning {
			lines = append(lines, problem.String())
		}
	}
	if lines == nil {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// place is a part of a configuration.
type place struct {
	file  string
	line  int
	field string
}

// maxField bounds the field of a place: the levels behind it are left out.
const maxField = 1000

// in returns the place of a key of a mapping.
func (p place) in(key string) place {
	if len(p.field) > maxField {
		return p
	}
	if p.field != "" {
		key = p.field + "." + key
	}
	p.field = key
	return p
}

// element returns the place of an element of a list.
func (p place) element(i int) place {
	if len(p.field) <= maxField {
		p.field = fmt.Sprintf("%s[%d]", p.field, i)
	}
	return p
}

// on returns the same field on another line.
func (p place) on(line int) place {
	p.line = line
	return p
}

// seenFrom names the place in a problem of another place.
func (p place) seenFrom(other place) string {
	where := p.field
	if p.line > 0 {
		where = fmt.Sprintf("line %d", p.line)
	}
	if p.file != other.file {
		where += " of " + plain(p.file)
	}
	return where
}

// maxProblems is the maximum number of mistakes that are listed, and of warnings: more are not
// corrected at once.
const maxProblems = 1000

// report collects problems.
type report struct {
	list               Problems
	mistakes, warnings int
	stopped            bool // nothing more is read or compiled
	descriptors        int  // of all files or resources
}

// fail records a mistake.
func (r *report) fail(at place, format string, args ...any) {
	if r.stopped {
		return
	}
	r.mistakes++
	if r.mistakes > maxProblems {
		r.stopped = true
		format, args = "more mistakes follow: mend these first", nil
	}
	r.list = append(r.list, Problem{at.file, at.line, at.field, fmt.Sprintf(format, args...), false})
}

// stop records a mistake, and ends reading.
func (r *report) stop(at place, format string, args ...any) {
	r.fail(at, format, args...)
	r.stopped = true
}

// warn records a warning.
func (r *report) warn(at place, format string, args ...any) {
	r.warnings++
	if r.stopped || r.warnings > maxProblems {
		return
	}
	r.list = append(r.list, Problem{at.file, at.line, at.field, fmt.Sprintf(format, args...), true})
}

// addDescriptor counts a descriptor at a depth, from 1, and reports whether it is within bounds.
func (r *report) addDescriptor(at place, depth int) bool {
	r.descriptors++
	switch {
	case depth > maxDepth:
		r.stop(at, "descriptors nest deeper than %d levels", maxDepth)
	case r.descriptors > maxDescriptors:
		r.stop(at, "there are more than %d descriptors", maxDescriptors)
	}
	return !r.stopped
}

// plain returns text that fits into a line unchanged, and other text quoted and shortened.
func plain(text string) string {
	const most = 200
	if len(text) > most {
		return fmt.Sprintf("%.*q", most, text)
	}
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return fmt.Sprintf("%q", text)
		}
	}
	return text
}
