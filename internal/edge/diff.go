package edge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/config"
)

// Diff returns the difference between a template that is deployed and one that is rendered, a line
// for each value: "- path: value" is deployed alone, "+ path: value" rendered alone. Comments and the
// order of keys do not count. The deployed template is YAML or JSON, or what the API of CloudFormation
// returns for it, with TemplateBody.
func Diff(deployed, rendered []byte) ([]string, error) {
	was, err := valuesOf(deployed)
	if err != nil {
		return nil, fmt.Errorf("read deployed template: %w", err)
	}
	is, err := valuesOf(rendered)
	if err != nil {
		return nil, fmt.Errorf("read rendered template: %w", err)
	}
	paths := maps.Clone(was)
	maps.Copy(paths, is)
	var out []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		old, hadOld := was[path]
		value, has := is[path]
		if hadOld && has && old == value {
			continue
		}
		if hadOld {
			out = append(out, "- "+path+": "+old)
		}
		if has {
			out = append(out, "+ "+path+": "+value)
		}
	}
	return out, nil
}

var errNoTemplate = errors.New("it is not a template of CloudFormation: it has no Resources")

// valuesOf returns the scalars of a template by their paths.
func valuesOf(text []byte) (map[string]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		line, message := config.ExplainYAML(text, err)
		return nil, fmt.Errorf("line %d: %s", line, message)
	}
	if len(doc.Content) == 0 {
		return nil, errNoTemplate
	}
	root := doc.Content[0]
	if body := entry(root, "TemplateBody"); body != nil {
		if body.Kind == yaml.ScalarNode {
			return valuesOf([]byte(body.Value))
		}
		root = body
	}
	if entry(root, "Resources") == nil {
		return nil, errNoTemplate
	}
	c := collector{values: map[string]string{}}
	return c.values, c.collect("", root, 0)
}

// maxDepth bounds the nesting of a template, and maxNodes its keys and values: its text has at most
// 1 MB, but aliases repeat parts of it.
const (
	maxDepth = 100
	maxNodes = 1 << 18
)

// collector collects the scalars of a template by their paths.
type collector struct {
	values map[string]string
	nodes  int // that it has seen
}

func (c *collector) collect(path string, n *yaml.Node, depth int) error {
	if c.nodes++; depth > maxDepth || c.nodes > maxNodes {
		return errors.New("it is nested too deeply, or too large")
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return c.collect(path, n.Alias, depth+1)
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := c.collect(join(path, n.Content[i].Value), n.Content[i+1], depth+1); err != nil {
				return err
			}
		}
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		seen := map[string]bool{}
		for i, item := range n.Content {
			name := label(item, i)
			if seen[name] {
				name += "#" + strconv.Itoa(i)
			}
			seen[name] = true
			if err := c.collect(path+"["+name+"]", item, depth+1); err != nil {
				return err
			}
		}
	default:
		c.values[path] = scalar(n)
	}
	return nil
}

// label names an item of a list: by its Name, so that another item in front changes no path behind it.
func label(item *yaml.Node, i int) string {
	if name := entry(item, "Name"); name != nil && name.Kind == yaml.ScalarNode {
		return printable(name.Value)
	}
	return strconv.Itoa(i)
}

// scalar returns a value as text. A tag of a reference stays, and numbers are the same with quotes.
func scalar(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "{}"
	case n.Kind == yaml.SequenceNode:
		return "[]"
	case strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!"):
		return printable(n.Tag + " " + strings.TrimSpace(n.Value))
	}
	return strconv.Quote(strings.TrimSpace(n.Value))
}

func join(path, key string) string {
	if path == "" {
		return printable(key)
	}
	return path + "." + printable(key)
}

// entry returns the value of a key of a mapping, or nil.
func entry(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
