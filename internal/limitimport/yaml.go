package limitimport

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/config"
)

// errNginx is the error for a configuration of nginx in the place of another file.
var errNginx = errors.New("it looks like a configuration of nginx: limitgate limits import nginx FILE")

// readYAML returns the root of a file of one YAML document, or nil if it is empty. With the error for
// further documents it returns the root of the first one.
func readYAML(content []byte) (*yaml.Node, error) {
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil && config.IsNginx(content):
		return nil, errNginx
	case err != nil:
		return nil, unreadable(content, err)
	}
	var root *yaml.Node
	if len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
		return root, nil
	case err != nil:
		return root, unreadable(content, err)
	}
	return root, at(max(more.Line, 1), errors.New("a second YAML document begins: one file is one document, so remove the line that separates them"))
}

// unreadable returns the error of a file that the decoder of YAML refuses.
func unreadable(content []byte, err error) error {
	line, message := config.ExplainYAML(content, err)
	return at(line, errors.New(message))
}

// repeated returns the first key that stands in a mapping twice, or nil.
func repeated(n *yaml.Node) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			return key
		}
		seen[key.Value] = true
	}
	return nil
}

// value returns an entry of a mapping, or nil.
func value(n *yaml.Node, key string) *yaml.Node {
	if n = resolved(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolved(n.Content[i+1])
		}
	}
	return nil
}

// nullTag is the tag of an absent value, which programs write as null.
const nullTag = "!!null"

// resolved returns the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// items returns a list of a mapping.
func items(n *yaml.Node, key string) []*yaml.Node {
	if list := value(n, key); list != nil && list.Kind == yaml.SequenceNode {
		return list.Content
	}
	return nil
}

// scalar returns a scalar of a mapping, or "".
func scalar(n *yaml.Node, key string) string {
	if v := value(n, key); v != nil && v.Kind == yaml.ScalarNode && v.Tag != nullTag {
		return v.Value
	}
	return ""
}

// isSet reports whether a mapping has an entry that is not empty.
func isSet(n *yaml.Node, key string) bool {
	v := value(n, key)
	return v != nil && (v.Kind != yaml.ScalarNode || scalar(n, key) != "")
}

// nameOf returns the name of a referenced entity, which is a scalar or a mapping with a name.
func nameOf(n *yaml.Node, key string) string {
	if name := scalar(n, key); name != "" {
		return name
	}
	if name := scalar(value(n, key), "name"); name != "" {
		return name
	}
	return scalar(value(n, key), "username")
}
