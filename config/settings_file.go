package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// maxSettingsFileBytes is the maximum size of a settings file; a larger file is not one.
const maxSettingsFileBytes = 1 << 20

var settingsBounds = bounds{kind: "settings", most: maxSettingsFileBytes, hint: "; is it the limits file?"}

// ReadSettingsFile reads a settings file for Load. The file must be a regular one, or a
// link to one, and no larger than 1 MiB.
func ReadSettingsFile(path string) ([]byte, error) { return readRegular(path, settingsBounds) }

// settingsFile is a settings file that is being read.
type settingsFile struct {
	source
	table  settings
	path   string
	lines  map[string]int // line of each key
	isJSON bool           // its root is written in braces
}

// readSettingsFile reads the settings file that at names. Without a name there is none.
func readSettingsFile(t settings, at given, readFile func(string) ([]byte, error)) *source {
	f := &settingsFile{table: t, path: at.text, lines: map[string]int{}}
	if f.path == "" {
		return &f.source
	}
	switch content, err := readFile(f.path); {
	case err != nil:
		f.source.fail(0, "%s: read settings file: %w", at.place, err)
	case len(content) > maxSettingsFileBytes:
		f.source.fail(0, "%s: read settings file: %w", at.place, settingsBounds.tooLarge(f.path, int64(len(content))))
	default:
		f.read(content)
	}
	return &f.source
}

func (f *settingsFile) fail(line int, name, format string, args ...any) {
	place := fmt.Sprintf("%s:%d: ", f.path, line)
	if name != "" {
		place += plain(name) + ": "
	}
	f.source.fail(line, "%s%s", place, fmt.Sprintf(format, args...))
}

// read reads the one document of the file.
func (f *settingsFile) read(content []byte) {
	if line := unreadableLine(content); line > 0 {
		f.fail(line, "", "a byte or character that YAML does not allow; a settings file is text in UTF-8")
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil {
		// A file with comments only sets nothing.
		if !errors.Is(err, io.EOF) {
			f.failYAML(content, err)
		}
		return
	}
	for _, n := range document.Content {
		if n.Kind != yaml.MappingNode && hasEquals(content) {
			f.fail(1, "", "%s", ofEquals)
			return
		}
		f.isJSON = n.Style&yaml.FlowStyle != 0
		f.mapping(n, "")
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		f.fail(more.Line, "", "a second YAML document begins; a settings file is one document: remove the line with --- or ...")
	case !errors.Is(err, io.EOF):
		f.failYAML(content, err)
	}
}

// failYAML reports that the file is not YAML.
func (f *settingsFile) failYAML(content []byte, err error) {
	line, message := explainYAML(content, err)
	f.fail(line, "", "%s", message)
}

// mapping reads names and values. Section is the prefix of the names.
func (f *settingsFile) mapping(n *yaml.Node, section string) {
	// A section in which every line is commented out has the value null.
	if n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode && section != "" {
		f.fail(n.Line, section, "it is a section and has no value of its own; its settings are %s", strings.Join(f.settingsOf(section), ", "))
		return
	}
	if n.Kind != yaml.MappingNode {
		f.fail(n.Line, section, "names with values belong here, as in decision_timeout: 5ms")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f.entry(n.Content[i], n.Content[i+1], section)
	}
}

func (f *settingsFile) entry(key, n *yaml.Node, section string) {
	if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
		f.fail(key.Line, section, "the name of a setting belongs here; anchors, aliases and merge keys are not supported")
		return
	}
	name := key.Value
	if section != "" {
		name = section + "." + name
	}
	r, warning := f.table.find((*setting).key, fileName, name)
	// redis was a setting, and is a section now.
	isSection := f.isSection(name) && (r == nil || n.Kind == yaml.MappingNode)
	if line := f.lines[name]; line > 0 {
		f.fail(key.Line, name, "it is already there, on line %d; remove one of them", line)
		return
	}
	f.lines[name] = key.Line
	switch {
	case isSection:
		f.mapping(n, name)
	case r != nil && r.source == flagsOnly:
		f.fail(key.Line, name, "only the flag %s does that", r.flag())
	case r != nil && r.source == outsideFile:
		f.fail(key.Line, name, "it cannot stand in the file itself; use the flag %s or the variable %s", r.flag(), r.env())
	case r != nil:
		if warning != "" {
			warning = fmt.Sprintf("%s:%d: %s", f.path, key.Line, warning)
		}
		f.value(r, n, name, warning)
	case foreignComment(key.Value, f.isJSON) != "":
		f.fail(key.Line, name, "%s", foreignComment(key.Value, f.isJSON))
	default:
		f.failUnknownKey(key.Line, name)
	}
}

func (f *settingsFile) isSection(name string) bool {
	return slices.ContainsFunc(f.table, func(r *setting) bool { return strings.HasPrefix(r.name, name+".") })
}

// settingsOf returns the names of the settings of a section.
func (f *settingsFile) settingsOf(section string) []string {
	names := f.table.keys((*setting).key, anywhere)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, section+".") })
}

func (f *settingsFile) failUnknownKey(line int, name string) {
	section, last, nested := strings.Cut(name, ".")
	switch r, _ := f.table.find((*setting).env, envName, name); {
	case slices.Contains([]string{"serve", "limitgate", "settings", "config"}, name):
		f.fail(line, name, "unknown key; settings stand in column 1, without %s: above them", name)
		return
	case slices.Contains(documentKeys, name):
		f.fail(line, name, "unknown key; it is one of a limits file: name that by --limits")
		return
	case r != nil:
		f.fail(line, name, "unknown key; that is its variable, and its key is %s", r.name)
		return
	}
	switch other := f.table.settingOfOther(name, anywhere); {
	case other != nil:
		f.fail(line, name, "unknown key; did you mean %s?", other.key())
	case nested && f.isSection(section):
		f.fail(line, name, "unknown key; %s", nearIn(last, f.settingsOf(section), section+"."))
	default:
		keys := f.table.keys((*setting).key, anywhere)
		hint := "limitgate serve --help lists the settings"
		if meant := inSections(name, keys); len(meant) > 0 {
			hint = "did you mean " + strings.Join(meant, " or ") + "?"
		} else if near := limit.Nearest(name, keys); near != "" {
			hint = "did you mean " + near + "?"
		}
		f.fail(line, name, "unknown key; %s", hint)
	}
}

// inSections returns the keys of sections that end with a name, or else with nearly that name.
func inSections(name string, keys []string) []string {
	bySetting := map[string][]string{}
	for _, key := range keys {
		if _, setting, nested := strings.Cut(key, "."); nested {
			bySetting[setting] = append(bySetting[setting], key)
		}
	}
	if same := bySetting[name]; len(same) > 0 || limit.Nearest(name, keys) != "" {
		return same
	}
	return bySetting[limit.Nearest(name, slices.Sorted(maps.Keys(bySetting)))]
}

// nearIn returns which of the names of a section a word means, or all of them.
func nearIn(word string, names []string, prefix string) string {
	var short []string
	for _, name := range names {
		short = append(short, strings.TrimPrefix(name, prefix))
	}
	if near := limit.Nearest(word, short); near != "" {
		return "did you mean " + prefix + near + "?"
	}
	return "the settings here are " + strings.Join(names, ", ")
}

// value reads the value of a setting, which has a name in the file, as text, if its shape fits.
func (f *settingsFile) value(r *setting, n *yaml.Node, name, warning string) {
	text := n.Value
	if n.Kind == yaml.SequenceNode && r.value.shape == stringList {
		words := make([]string, len(n.Content))
		for i, item := range n.Content {
			if wrong := wrongShape(item, r.value.shape); wrong != "" {
				f.fail(item.Line, name, "%s", wrong)
				return
			}
			words[i] = item.Value
		}
		text = strings.Join(words, ",")
	} else if wrong := wrongShape(n, r.value.shape); wrong != "" {
		f.fail(n.Line, name, "%s", wrong)
		return
	}
	place := fmt.Sprintf("%s:%d", f.path, n.Line)
	f.add(given{setting: r, text: text, source: "file " + place, place: place, line: n.Line}, name, warning)
}

// wrongShape returns why a node cannot hold a value of that shape, or "" if it can.
func wrongShape(n *yaml.Node, want shape) string {
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch {
	case n.Kind == yaml.AliasNode:
		return "aliases are not supported; write the value out"
	case n.Kind != yaml.ScalarNode:
		return "one value belongs here, not a list or names with values"
	case n.Style&yaml.TaggedStyle != 0:
		return "tags are not supported; remove " + plain(n.Tag)
	case n.ShortTag() == "!!null":
		return `the value is missing; write one, "" for an empty one, or remove the line`
	case want == unquoted && quoted:
		return Quote(n.Value) + " is in quotes, and so a string; remove the quotes"
	case want == stringOnly && n.ShortTag() != "!!str":
		return plain(n.Value) + " is not a string; write it in quotes"
	}
	return ""
}
