package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// Origin says where the value of a setting comes from.
type Origin struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // "default", "file PATH:LINE", "env NAME" or "flag --name"
}

// foreign are variables of the same prefix that belong to building and testing.
var foreign = []string{"LIMITGATE_APT", "LIMITGATE_REDIS_BIN", "LIMITGATE_LONG", "LIMITGATE_SEED"}

// Load reads the settings: a flag beats the environment, which beats the
// settings file, which beats the default. It lists every mistake at once. It
// returns what follows the flags, and flag.ErrHelp when help was asked for.
func Load(args, environ []string, readFile func(string) ([]byte, error)) (*Settings, []Origin, []string, error) {
	l := loader{settings: table(), readFile: readFile, given: map[string][]Origin{}}
	rest, err := l.readFlags(args)
	if err != nil {
		return nil, nil, nil, err
	}
	l.readEnviron(environ)
	l.readSettingsFile()
	s, origins := l.resolve()
	if len(l.errs) == 0 {
		l.errs = append(l.errs, s.check()...)
	}
	if err := errors.Join(l.errs...); err != nil {
		return nil, nil, nil, err
	}
	return s, origins, rest, nil
}

// loader collects what each source says.
type loader struct {
	settings []setting
	readFile func(string) ([]byte, error)
	// given are the values of each setting, the one that wins first.
	given map[string][]Origin
	errs  []error
}

func (l *loader) failf(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

func (l *loader) give(name, value, source string) {
	l.given[name] = append(l.given[name], Origin{name, value, source})
}

func (l *loader) readFlags(args []string) ([]string, error) {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for _, s := range l.settings {
		record := func(v string) error {
			l.given[s.name] = []Origin{{s.name, v, "flag --" + s.flag()}}
			return nil
		}
		if s.isBool {
			fs.BoolFunc(s.flag(), s.help, record)
		} else {
			fs.Func(s.flag(), s.help, record)
		}
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("limitgate serve: %w; limitgate serve --help lists the flags", err)
	}
	return fs.Args(), nil
}

func (l *loader) readEnviron(environ []string) {
	names := map[string]string{}
	var known []string
	for _, s := range l.settings {
		if !s.flagOnly {
			names[s.env()] = s.name
			known = append(known, s.env())
		}
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "LIMITGATE_") || slices.Contains(foreign, name) {
			continue
		}
		if setting, ok := names[name]; ok {
			l.give(setting, value, "env "+name)
			continue
		}
		l.failf("env %.64s: unknown variable%s", name, didYouMean(name, known))
	}
}

func didYouMean(word string, known []string) string {
	if near := limit.Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// readSettingsFile reads the file that a flag or the environment names.
func (l *loader) readSettingsFile() {
	given := l.given["config"]
	if len(given) == 0 || given[0].Value == "" {
		return
	}
	path := given[0].Value
	content, err := l.readFile(path)
	if err != nil {
		l.failf("%s: read settings file: %w", given[0].Source, err)
		return
	}
	d := &limitsDecoder{}
	root, ok := d.document(content)
	if ok {
		l.readMapping(d, root, path, "")
	}
	for _, p := range d.problems {
		l.errs = append(l.errs, errors.New(p.Format(path)))
	}
}

// readMapping gives the scalars of a mapping; mappings in it make dotted names.
func (l *loader) readMapping(d *limitsDecoder, n *yaml.Node, path, prefix string) {
	names := map[string]*setting{}
	var known []string
	for i := range l.settings {
		if s := &l.settings[i]; !s.flagOnly && s.name != "config" {
			names[s.name] = s
			known = append(known, s.name)
		}
	}
	d.entries(n, prefix, func(key, value *yaml.Node, field string) {
		value = resolveAlias(value)
		s := names[field]
		switch {
		case s == nil && value.Kind == yaml.MappingNode && slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, field+".") }):
			l.readMapping(d, value, path, field)
		case s == nil:
			d.fail(key, shorten(field), "unknown key%s", didYouMean(field, known))
		default:
			if v, ok := d.settingValue(value, field); ok {
				l.give(s.name, v, fmt.Sprintf("file %s:%d", path, key.Line))
			}
		}
	})
}

// settingValue reads a scalar, or a list of them as a comma-separated one.
func (d *limitsDecoder) settingValue(n *yaml.Node, field string) (string, bool) {
	if n.Kind == yaml.SequenceNode {
		var items []limit.Text
		d.texts(&items)(n, field)
		var parts []string
		for _, t := range items {
			parts = append(parts, t.Value)
		}
		return strings.Join(parts, ","), true
	}
	var t limit.Text
	d.text(&t)(n, field)
	return t.Value, t.Set()
}

// resolve takes the value that wins for each setting.
func (l *loader) resolve() (*Settings, []Origin) {
	s := &Settings{}
	var origins []Origin
	for i := range l.settings {
		row := &l.settings[i]
		o := Origin{row.name, row.fallback, "default"}
		if given := l.given[row.name]; len(given) > 0 {
			o = given[0]
		}
		if err := row.set(s, o.Value); err != nil {
			l.failf("%s: %s: %w", o.Source, row.name, err)
		}
		if !row.flagOnly {
			origins = append(origins, o)
		}
	}
	return s, origins
}
