package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// given is a value of a setting in a source.
type given struct {
	setting *setting
	written string // its name, as written
	text    string
	source  string // in the output of --print-config
	place   string // in errors: "flag --x", "env LIMITGATE_X", "PATH:LINE"
	line    int    // in the settings file; 0 elsewhere
}

// label names the value in an error that does not name the setting.
func (g given) label() string {
	if g.line > 0 {
		return g.place + ": " + g.written
	}
	return g.place
}

// source holds the values of the flags, the environment or the settings file, and their
// mistakes.
type source struct {
	given    []given
	mistakes []mistake
	warnings []string
}

// add adds a value, with the warning about its name, if there is one. A setting that is given
// under two names is a mistake. An empty value under one of several earlier names is none:
// such a name was left empty beside another one.
func (src *source) add(g given, written, warning string) {
	if warning != "" && g.text == "" && len(g.setting.was) > 1 {
		return
	}
	if warning != "" {
		src.warnings = append(src.warnings, warning)
	}
	g.written = written
	for _, other := range src.given {
		if other.setting == g.setting && other.written != written && g.setting.removed == "" {
			src.fail(g.line, "%s: it is the same setting as %s; remove one of them", g.label(), other.written)
			return
		}
	}
	src.given = append(src.given, g)
}

// has reports whether a setting was given under a name.
func (src *source) has(r *setting, written string) bool {
	return slices.ContainsFunc(src.given, func(g given) bool { return g.setting == r && g.written == written })
}

type mistake struct {
	line int // in the settings file; 0 elsewhere
	err  error
}

func (src *source) fail(line int, format string, args ...any) {
	src.mistakes = append(src.mistakes, mistake{line, fmt.Errorf(format, args...)})
}

// errs returns the mistakes, in the order of the lines.
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
		src.given = append(src.given, given{setting: r, text: r.initial, source: "default", place: "the default of " + r.flag()})
	}
	return src
}

// defaultsWithRedis returns the defaults that differ with a Redis, for settings without a
// value from another source.
func (l *loading) defaultsWithRedis(t settings, s *Settings) *source {
	src := new(source)
	for _, g := range defaults(t).given {
		if r := g.setting; r.withRedis != "" && s.UsesRedis() && l.used[r] == g {
			g.text = r.withRedis
			src.given = append(src.given, g)
		}
	}
	return src
}

// configPath returns the value with the path of the settings file; the strongest source
// comes last. Without one it is the zero value.
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

// loading is the state of a Load.
type loading struct {
	used   map[*setting]given // the strongest value so far
	failed map[string]bool    // the settings with an unreadable value
}

// apply parses the values of a source, which overrides those before.
func (l *loading) apply(src *source) {
	for _, g := range src.given {
		if err := g.setting.read(g.text); err != nil {
			src.fail(g.line, "%s: %w", g.label(), err)
			l.failed[g.setting.name] = true
			continue
		}
		l.used[g.setting] = g
	}
}

// validate checks the combination of settings. It leaves out consequences of a value that
// could not be read, which is reported already.
func (l *loading) validate(t settings, s *Settings) []error {
	var errs []error
	for _, p := range s.problems() {
		if !l.failed[p.name] && !l.failed["unsafe_open"] && !l.namesFailed(t, p.text) {
			g := l.used[t.named(p.name)]
			errs = append(errs, fmt.Errorf("%s: %w", g.place, errors.New(p.text)))
		}
	}
	for _, c := range s.clashes() {
		if !l.failed[c.names[0]] && !l.failed[c.names[1]] {
			errs = append(errs, fmt.Errorf("%s and %s%s", l.used[t.named(c.names[0])].label(), l.used[t.named(c.names[1])].label(), c.text))
		}
	}
	return errs
}

// lackOf matches the flag of a setting that a mistake in another one says is lacking.
var lackOf = regexp.MustCompile(`(?:without|by|set) (--[a-z-]+)`)

// namesFailed reports whether the text of a mistake says that a setting is lacking whose value is unreadable: it is a consequence of that.
func (l *loading) namesFailed(t settings, text string) bool {
	for _, m := range lackOf.FindAllStringSubmatch(text, -1) {
		for name := range l.failed {
			if m[1] == t.named(name).flag() || m[1] == "--redis" && name == "redis.sentinel" {
				return true
			}
		}
	}
	return false
}

// writtenAs returns the names of the settings that are not given by a flag, as they are written.
func (l *loading) writtenAs() map[string]string {
	var all map[string]string
	for r, g := range l.used {
		if g.source == "default" || g.written == r.flag() {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[r.name] = g.written
		if g.line > 0 {
			all[r.name] = g.written + " in " + g.place
		}
	}
	return all
}

// origins returns the origin of each setting. Settings that ask for an action of the
// program are left out.
func (l *loading) origins(t settings) []Origin {
	var all []Origin
	for _, r := range t {
		if r.source != flagsOnly {
			g := l.used[r]
			text := g.text
			if r.value.show != nil {
				text = r.value.show(text)
			}
			all = append(all, Origin{Name: r.name, Value: text, Source: g.source})
		}
	}
	return all
}
