package rlsconfig

import (
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/structpb"
)

// metadata reads a mapping into a map, or into a new one if that is nil. Its keys are text, whatever
// they look like, and its values have the types of structpb.Struct.AsMap.
func (y *yamlReader) metadata(to map[string]any, n *yaml.Node, at place) map[string]any {
	if to == nil {
		to = map[string]any{}
	}
	y.entries(n, at, func(key, value *yaml.Node) {
		to[key.Value] = y.value(value, at.in(plain(key.Value)).on(key.Line))
	})
	return to
}

// value reads a value of metadata.
func (y *yamlReader) value(n *yaml.Node, at place) any {
	n = y.follow(n, at)
	switch n.Kind {
	case yaml.MappingNode:
		return y.metadata(nil, n, at)
	case yaml.SequenceNode:
		return y.list(n, at)
	}
	switch s, value, _ := y.scalar(n, at); s.kind {
	case nullScalar:
		return nil
	case boolScalar:
		return s.boolean
	case intScalar, floatScalar:
		return structpb.NewNumberValue(s.float).AsInterface() // NaN and infinities are strings
	default:
		return value
	}
}

// list reads a list of metadata.
func (y *yamlReader) list(n *yaml.Node, at place) []any {
	defer y.leave()
	if !y.enter(at) {
		return nil
	}
	list := make([]any, 0, len(n.Content))
	for i, element := range n.Content {
		if y.stopped {
			break
		}
		list = append(list, y.value(element, at.element(i).on(element.Line)))
	}
	return list
}
