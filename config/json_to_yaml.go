package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// maxPartDepth is the maximum nesting depth of the parts of a table: limits nest less
// than ten deep.
const maxPartDepth = 100

var errPartDepth = fmt.Errorf("it nests deeper than %d", maxPartDepth)

// jsonNodes turns JSON into the nodes that a YAML parser would produce, JSON being a
// subset of YAML: for a large table it takes a fraction of the time and the memory. It is
// not safe for concurrent use.
type jsonNodes struct {
	source  bytes.Reader
	decoder jsontext.Decoder
	nodes   []*yaml.Node // all nodes allocated so far
	used    int          // the number of nodes in use by the present value
}

// read returns the node of a value. The next call overwrites it.
func (j *jsonNodes) read(body []byte) (*yaml.Node, error) {
	j.used = 0
	j.source.Reset(body)
	// Duplicate names are reported later, with all other mistakes.
	j.decoder.Reset(&j.source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	n, err := j.node(0)
	if err != nil {
		return nil, err
	}
	if _, err := j.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return n, nil
}

// node reads a value at a nesting depth.
func (j *jsonNodes) node(depth int) (*yaml.Node, error) {
	token, err := j.decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	n := j.next()
	switch token.Kind() {
	case jsontext.KindString:
		n.Tag, n.Value = "!!str", token.String()
	case jsontext.KindNumber:
		n.Tag, n.Value = "!!float", token.String()
		if _, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			n.Tag = "!!int"
		}
	case jsontext.KindTrue, jsontext.KindFalse:
		n.Tag, n.Value = "!!bool", token.String()
	case jsontext.KindNull:
		n.Tag, n.Value = "!!null", "null"
	case jsontext.KindBeginArray:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		return n, j.fill(n, jsontext.KindEndArray, depth+1)
	default:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		return n, j.fill(n, jsontext.KindEndObject, depth+1)
	}
	return n, nil
}

// fill reads the elements of a list, or the names and values of a mapping, up to its end.
func (j *jsonNodes) fill(n *yaml.Node, end jsontext.Kind, depth int) error {
	if depth > maxPartDepth {
		return errPartDepth
	}
	for j.decoder.PeekKind() != end {
		element, err := j.node(depth)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, element)
	}
	_, err := j.decoder.ReadToken() // the closing bracket
	return err
}

// next returns an unused node, for a scalar.
func (j *jsonNodes) next() *yaml.Node {
	if j.used == len(j.nodes) {
		j.nodes = append(j.nodes, &yaml.Node{})
	}
	n := j.nodes[j.used]
	j.used++
	*n = yaml.Node{Kind: yaml.ScalarNode, Line: 1, Content: n.Content[:0]}
	return n
}
