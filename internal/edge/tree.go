package edge

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// object is a mapping in the order in which it is written.
type object []field

// field is an entry of an object. Its value is a scalar, an object or a list.
type field struct {
	key     string
	value   any
	comment string // above it
}

// list is a sequence.
type list []any

// remarked is a value of a list with a comment above it.
type remarked struct {
	comment string
	value   any
}

// yaml returns an object as text.
func (o object) yaml() ([]byte, error) {
	node, err := nodeOf(o)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return b.Bytes(), enc.Close()
}

func nodeOf(value any) (*yaml.Node, error) {
	switch v := value.(type) {
	case object:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, f := range v {
			child, err := nodeOf(f.value)
			if err != nil {
				return nil, err
			}
			key := &yaml.Node{HeadComment: f.comment}
			key.SetString(f.key)
			n.Content = append(n.Content, key, child)
		}
		return n, nil
	case list:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			child, err := nodeOf(item)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		return n, nil
	case remarked:
		n, err := nodeOf(v.value)
		if err == nil {
			n.HeadComment = v.comment
		}
		return n, err
	}
	n := &yaml.Node{}
	if err := n.Encode(value); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return n, nil
}
