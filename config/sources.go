package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// given is a value that a source gives to a setting.
type given struct {
	setting *setting
	text    string
	source  string // as --print-config shows it
	place   string // as errors name it: "flag --x", "env LIMITGATE_X", "PATH:LINE"
	line    int    // in the settings file; 0 elsewhere
}

// label names the value in an error that does not name the setting.
func (g given) label() string {
	if g.line > 0 {
		return g.place + ": " + g.setting.name
	}
	return g.place
}

// source is what the flags, the environment or the settings file say, and what
// is wrong with it.
type source struct {
	given    []given
	mistakes []mistake
}

type mistake struct {
	line int // in the settings file; 0 elsewhere
	err  error
}

func (src *source) fail(line int, format string, args ...any) {
	src.mistakes = append(src.mistakes, mistake{line, fmt.Errorf(format, args...)})
}

// errs returns what is wrong, in the order of the lines.
func (src *source) errs() []error {
	slices.SortStableFunc(src.mistakes, func(a, b mistake) int { return cmp.Compare(a.line, b.line) })
	errs := make([]error, len(src.mistakes))
	for i, m := range src.mistakes {
		errs[i] = m.err
	}
	return errs
}

func defaults(t settings) *source {
	src := new(source)
	for _, r := range t {
		src.given = append(src.given, given{setting: r, text: r.initial, source: "default", place: "default of " + r.name})
	}
	return src
}

// defaultsWithRedis returns the defaults that are others with a Redis, of settings
// that nothing else gives a value.
func (l *loading) defaultsWithRedis(t settings, s *Settings) *source {
	src := new(source)
	for _, g := range defaults(t).given {
		if r := g.setting; r.withRedis != "" && len(s.Redis) > 0 && l.used[r] == g {
			g.text = r.withRedis
			src.given = append(src.given, g)
		}
	}
	return src
}

// configPath returns what says where the settings file is, the strongest source
// last; it is the zero value when nothing does.
func configPath(sources ...*source) given {
	var path given
	for _, src := range sources {
		for _, g := range src.given {
			if g.setting.name == "config" {
				path = g
			}
		}
	}
	return path
}

// loading is a Load under way.
type loading struct {
	used   map[*setting]given // the strongest value so far
	failed map[string]bool    // the settings that have an unreadable value
}

// apply reads the values of a source, which is stronger than those before.
func (l *loading) apply(src *source) {
	for _, g := range src.given {
		if err := g.setting.value.read(g.text); err != nil {
			src.fail(g.line, "%s: %w", g.label(), err)
			l.failed[g.setting.name] = true
			continue
		}
		l.used[g.setting] = g
	}
}

// validate checks the settings together. It leaves out what follows from a value
// that could not be read, and is told already.
func (l *loading) validate(t settings, s *Settings) []error {
	var errs []error
	for _, p := range s.problems() {
		if !l.failed[p.name] && !l.failed["unsafe_open"] {
			g := l.used[t.find(nameOf, p.name)]
			errs = append(errs, fmt.Errorf("%s: %w", g.place, errors.New(p.text)))
		}
	}
	return errs
}

// origins returns where each setting comes from. What is no setting of the
// proxy, only a question to the program, is left out.
func (l *loading) origins(t settings) []Origin {
	var all []Origin
	for _, r := range t {
		if r.from != flagsOnly {
			g := l.used[r]
			all = append(all, Origin{Name: r.name, Value: g.text, Source: g.source})
		}
	}
	return all
}

func nameOf(r *setting) string { return r.name }
