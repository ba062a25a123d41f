package rlsenv

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Notice reports a variable that is not taken as it is.
type Notice struct {
	// Name is the variable. Text is a sentence about it, without any part of a value that may have a secret.
	Name, Text string
	// Refused reports that Parse fails because of it.
	Refused bool
}

// Parse returns the settings that environ has, which is in the form of os.Environ. The error has a
// line for each variable that is refused, and notices have them too. Neither contains any part of a
// value that may have a secret: they repeat only those of numbers, switches, times and words to choose from.
func Parse(environ []string) (s *Settings, notices []Notice, err error) {
	p := &problems{environ: map[string]string{}}
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		if _, found := p.environ[name]; !found { // of several the first counts, as in package os
			p.environ[name] = text
		}
	}
	d := new(draft)
	for _, v := range variables(d) {
		p.read(v)
	}
	s = d.finish(p)
	p.misspelled()
	if err := p.err(); err != nil {
		return nil, p.notices, err
	}
	return s, p.notices, nil
}

// problems are the notices of an environment.
type problems struct {
	environ map[string]string
	notices []Notice
}

// given reports whether a variable is set. It may be set to nothing.
func (p *problems) given(name string) bool {
	_, found := p.environ[name]
	return found
}

// read reads a variable.
func (p *problems) read(v variable) {
	usual, _ := v.value.read(v.initial)
	text, found := p.environ[v.name]
	if !found {
		return
	}
	switch got, ok := v.value.read(text); {
	case !ok:
		p.refuse(v.name, fmt.Sprintf("%s is not %s; write for example %s%s", v.value.subject(text), v.value.form, v.value.example, linkHint(v.name, text)))
	case got == usual || v.fate == taken:
	case v.fate == refused:
		p.refuse(v.name, v.text)
	default:
		p.note(v.name, v.text)
	}
}

// linkHint explains a value that Kubernetes sets in the pods of a namespace with a Service whose
// name is the beginning of a variable's.
func linkHint(name, text string) string {
	if strings.HasSuffix(name, "_PORT") && strings.HasPrefix(text, "tcp://") {
		return "; if Kubernetes sets it for a Service, set enableServiceLinks: false in the pod"
	}
	return ""
}

func (p *problems) note(name, text string) {
	p.notices = append(p.notices, Notice{Name: name, Text: text})
}

// refuse adds a notice about a variable that makes Parse fail, unless one is there already, about it
// or a variable whose value this one depends on.
func (p *problems) refuse(name, text string, dependsOn ...string) {
	if p.refuses(name) || slices.ContainsFunc(dependsOn, p.refuses) {
		return
	}
	p.notices = append(p.notices, Notice{Name: name, Text: text, Refused: true})
}

// refuses reports whether Parse fails because of a variable.
func (p *problems) refuses(name string) bool {
	return slices.ContainsFunc(p.notices, func(n Notice) bool { return n.Refused && n.Name == name })
}

// named is the text of a variable.
type named struct{ name, text string }

// idle adds notices about variables that have no effect without another one, which is NAME or
// NAME=VALUE.
func (p *problems) idle(without string, all ...named) {
	name, _, _ := strings.Cut(without, "=")
	for _, n := range all {
		if n.text != "" && !p.refuses(name) {
			p.note(n.name, "it has no effect without "+without)
		}
	}
}

// err returns an error with a line for each variable that is refused, or nil.
func (p *problems) err() error {
	var all []error
	for _, n := range p.notices {
		if n.Refused {
			all = append(all, fmt.Errorf("env %s: %s", n.Name, n.Text))
		}
	}
	return errors.Join(all...)
}
