package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// maxPartDepth bounds how deep the parts of a table nest: limits do so less than ten deep.
const maxPartDepth = 100

var errPartDepth = fmt.Errorf("it nests deeper than %d", maxPartDepth)

// jsonNode returns what JSON says as the node that a YAML parser would make of it, of which
// JSON is a part: for a large table it takes a fraction of the time and the memory.
func jsonNode(body []byte) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	n, err := nodeOf(decoder, token, 0)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return n, nil
}

// nodeOf returns the node that begins with a token.
func nodeOf(decoder *json.Decoder, token json.Token, depth int) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: 1}
	switch v := token.(type) {
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "!!float", v.String()
		if _, err := v.Int64(); err == nil {
			n.Tag = "!!int"
		}
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	case nil:
		n.Tag, n.Value = "!!null", "null"
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		return n, fill(decoder, n, depth+1)
	}
	return n, nil
}

// fill reads the elements of a list, or the names and values of a mapping, up to its end.
func fill(decoder *json.Decoder, n *yaml.Node, depth int) error {
	if depth > maxPartDepth {
		return errPartDepth
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		element, err := nodeOf(decoder, token, depth)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, element)
	}
	_, err := decoder.Token() // the bracket
	return err
}
